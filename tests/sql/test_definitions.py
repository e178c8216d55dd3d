"""CREATE, ALTER, DROP, SHOW and DESCRIBE: what SQL defines, DuckDB shows, and SHOW CREATE TABLE can be run."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from penstock import Lake
from penstock.errors import InvalidError, NotFoundError, PenstockError, UnsupportedError
from support.catalogs import Catalog
from support.reference import METADATA
from support.writing import attached

from .conftest import Sql, create_view, view_statements_are_refused

CREATE = (
    "CREATE TABLE sales.t (id BIGINT NOT NULL COMMENT 'it\\'s', `a b` STRING DEFAULT 'x\\'y', ts TIMESTAMP_NTZ,"
    " s STRUCT<x: INT COMMENT 'inner', l: ARRAY<STRING>>, n DECIMAL(38,2) DEFAULT 1.5)"
    " PARTITIONED BY (`a b`, bucket(4, id), years(ts)) COMMENT 'all of it'"
    " TBLPROPERTIES ('ducklake.parquet_compression' = 'zstd', 'ducklake.sorted_by' = 'ts DESC, \"a b\"', 'mine' = '1')"
)


@pytest.mark.one_catalog
def test_create(catalog: Catalog, spark: SparkSession, sql: Sql) -> None:
    with attached(catalog, spark, name="sales") as lake:
        newest = lake.current_snapshot().id
        sql(CREATE)
        assert lake.current_snapshot().id == newest + 1
        assert lake.table("t").option("parquet_compression") == "zstd"
        again = spark.sql("SHOW CREATE TABLE sales.t").first()[0]  # type: ignore[index]
        described = sql("DESCRIBE EXTENDED sales.t")
        sql("ALTER TABLE sales.t RENAME TO u")
        sql(again)
        assert spark.sql("SHOW CREATE TABLE sales.t").first()[0] == again  # type: ignore[index]
        assert spark.table("sales.t").schema == spark.table("sales.u").schema
        assert lake.table("t").partition_spec is not None
        assert [key.expression for key in lake.table("t").sort_order] == ["ts", '"a b"']
    with catalog.reference() as reference:
        columns = reference.rows("DESCRIBE t")
        assert [(name, kind, null) for name, kind, null, *_ in columns] == [
            ("id", "BIGINT", "NO"),
            ("a b", "VARCHAR", "YES"),
            ("ts", "TIMESTAMP", "YES"),
            ("s", "STRUCT(x INTEGER, l VARCHAR[])", "YES"),
            ("n", "DECIMAL(38,2)", "YES"),
        ]
        assert reference.value("SELECT comment FROM duckdb_tables() WHERE table_name = 't'") == "all of it"
        reference.execute("INSERT INTO t (id) VALUES (7)")
        assert reference.rows('SELECT id, "a b", n FROM t') == [(7, "x'y", pytest.approx(1.5))]
    told = {row[0]: row[1] for row in described}
    assert told["Comment"] == "all of it"
    assert told["Provider"] == "ducklake"
    assert "ducklake.sorted_by=ts DESC NULLS LAST" in told["Table Properties"]
    assert "mine=1" in told["Table Properties"]
    assert "0 rows" in told["Statistics"]


@pytest.mark.one_catalog
def test_alter(catalog: Catalog, spark: SparkSession, sql: Sql) -> None:
    with attached(catalog, spark, name="sales") as lake:
        sql("CREATE TABLE sales.t (id INT, note STRING, s STRUCT<a: INT>, must INT NOT NULL DEFAULT 0)")
        sql("INSERT INTO sales.t VALUES (1, 'x', named_struct('a', 1), 1)")
        for change in (
            "ADD COLUMNS (b STRING DEFAULT 'new' COMMENT 'c', c DOUBLE)",
            "ADD COLUMN s.z STRUCT<deep: ARRAY<INT>>",
            "RENAME COLUMN note TO `re mark`",
            "RENAME COLUMN s.a TO aa",
            "ALTER COLUMN id TYPE BIGINT",
            "ALTER COLUMN s.aa TYPE BIGINT",
            "ALTER COLUMN must DROP NOT NULL",
            "ALTER COLUMN c SET DEFAULT 2.5D",
            "ALTER COLUMN b DROP DEFAULT",
            "ALTER COLUMN `re mark` COMMENT 'it''s'",
            "DROP COLUMN IF EXISTS nope",
            "SET TBLPROPERTIES ('comment' = 'text', 'own' = 'x', 'ducklake.target_file_size' = '10MB')",
            "UNSET TBLPROPERTIES ('own')",
            "CLUSTER BY (id, b)",
        ):
            newest = lake.current_snapshot().id
            sql(f"ALTER TABLE sales.t {change}")
            assert lake.current_snapshot().id <= newest + 1, change
        older = spark.version < "4.3"
        sql("ALTER TABLE sales.t ALTER COLUMN c COMMENT 'see'" if older else "COMMENT ON COLUMN sales.t.c IS 'see'")
        sql("INSERT INTO sales.t (id) VALUES (2)")
        assert sql("SELECT id, `re mark`, s, b, c FROM sales.t ORDER BY id") == [
            (1, "x", (1, None), "new", None),
            (2, None, None, None, 2.5),
        ]
        assert lake.table("t").column_tags("c") == {"comment": "see"}
        assert lake.table("t").option("target_file_size") != "512MB"
        assert [key.expression for key in lake.table("t").sort_order] == ["id", "b"]
    with catalog.reference() as reference:
        assert reference.rows("SELECT id, b, c FROM t ORDER BY id") == [(1, "new", None), (2, None, 2.5)]
        assert reference.value("SELECT comment FROM duckdb_tables() WHERE table_name = 't'") == "text"


def test_schemas(lake: Lake, file_catalog: Catalog, spark: SparkSession, sql: Sql) -> None:
    sql("CREATE NAMESPACE sales.crm")
    sql("CREATE SCHEMA IF NOT EXISTS sales.crm")
    with pytest.raises(AnalysisException, match="SCHEMA_ALREADY_EXISTS"):
        sql("CREATE SCHEMA sales.crm")
    sql("CREATE TABLE sales.crm.t (a INT)")
    with pytest.raises(InvalidError, match="schema crm holds t"):
        sql("DROP SCHEMA sales.crm")
    sql("DROP SCHEMA sales.crm CASCADE")
    with pytest.raises(AnalysisException, match="SCHEMA_NOT_FOUND"):
        sql("DROP SCHEMA sales.crm")
    sql("DROP SCHEMA IF EXISTS sales.crm")
    with pytest.raises(AnalysisException, match="SCHEMA_NOT_FOUND"):
        sql("CREATE TABLE sales.crm.t (a INT)")
    if not view_statements_are_refused(lake):
        with pytest.raises(AnalysisException, match="SCHEMA_NOT_FOUND"):
            sql("CREATE VIEW sales.crm.v AS SELECT 1 AS a")
    lake.close()
    with file_catalog.reference() as reference:
        assert reference.rows(f"SELECT schema_name FROM {METADATA}.ducklake_schema WHERE end_snapshot IS NULL") == [
            ("main",)
        ]


REFUSED = {
    "CREATE TABLE sales.x (a INT) USING csv": (UnsupportedError, "not csv; leave USING out"),
    "CREATE TABLE sales.x (a INT) LOCATION '/tmp/x'": (UnsupportedError, "below its data path"),
    "CREATE TABLE sales.x (a INT) TBLPROPERTIES ('ducklake.nope' = '1')": (InvalidError, "ducklake.nope is no option"),
    "CREATE TABLE sales.x (a INT) TBLPROPERTIES ('ducklake.parquet_compression' = 'zip')": (InvalidError, "zip"),
    "CREATE TABLE sales.x (a INT) PARTITIONED BY (truncate(3, a))": (PenstockError, "truncate"),
    "CREATE TABLE sales.x (a INT) PARTITIONED BY (nope)": (AnalysisException, "nope"),
    "CREATE TABLE sales.x (a INT) PARTITIONED BY (years(a))": (InvalidError, "year"),
    "CREATE TABLE sales.x (a INT, A INT)": (AnalysisException, "COLUMN_ALREADY_EXISTS"),
    "CREATE TABLE sales.x (a INT PRIMARY KEY)": (AnalysisException, "does not support table constraint"),
    "CREATE TABLE sales.x (a INT GENERATED ALWAYS AS (1))": (AnalysisException, "generated"),
    "CREATE TABLE sales.a.b.x (a INT)": (PenstockError, "no schemas inside them"),
    "CREATE SCHEMA sales.c COMMENT 'x'": (UnsupportedError, "schemas have no comment"),
    "ALTER SCHEMA sales.main SET PROPERTIES ('a' = 'b')": (UnsupportedError, "no properties"),
    "DROP SCHEMA sales.main CASCADE": (InvalidError, "main is part of every lake"),
    "ALTER TABLE sales.t ADD COLUMN b INT FIRST": (UnsupportedError, "DuckLake adds columns at the end"),
    "ALTER TABLE sales.t ADD COLUMN a INT": (AnalysisException, "FIELD_ALREADY_EXISTS"),
    "ALTER TABLE sales.t ALTER COLUMN a TYPE TINYINT": (AnalysisException, "NOT_SUPPORTED_CHANGE_COLUMN"),
    "ALTER TABLE sales.t DROP COLUMN a": (InvalidError, "a"),
    "ALTER TABLE sales.t ALTER COLUMN a SET NOT NULL": (AnalysisException, "nullable column to non-nullable"),
    "ALTER TABLE sales.t SET TBLPROPERTIES ('ducklake.encrypted' = 'true')": (InvalidError, "no option of a table"),
    "ALTER TABLE sales.t RENAME TO crm.t": (UnsupportedError, "cannot move to schema crm"),
    "ALTER TABLE sales.nope ADD COLUMN a INT": (AnalysisException, "TABLE_OR_VIEW_NOT_FOUND"),
    "CREATE FUNCTION sales.f AS 'x.Y'": (AnalysisException, "sales"),
    "INSERT INTO sales.nope VALUES (1)": (AnalysisException, "TABLE_OR_VIEW_NOT_FOUND"),
    "CALL sales.system.nope()": (NotFoundError, "there is no procedure system.nope"),
}


@pytest.mark.parametrize("statement", REFUSED)
def test_what_is_refused_changes_nothing(lake: Lake, spark: SparkSession, sql: Sql, statement: str) -> None:
    sql("CREATE TABLE sales.t (a INT)")
    newest, options = lake.current_snapshot(), lake.options().collect()
    error, match = REFUSED[statement]
    with pytest.raises(error, match=match):
        sql(statement)
    assert lake.current_snapshot() == newest
    assert lake.options().collect() == options


def test_views_are_read_by_every_release(lake: Lake, spark: SparkSession, sql: Sql) -> None:
    sql("CREATE TABLE sales.t AS SELECT id, id % 2 AS k FROM range(10)")
    lake.create_view("v", "SELECT id, k, k FROM t WHERE id > 5", dialect="spark", column_aliases=["n", "k k", "again"])
    lake.create_schema("crm")
    lake.create_view("crm.w", "SELECT max(n) AS m FROM main.v", dialect="spark")
    assert sql("SELECT n, `k k` FROM sales.v WHERE `k k` = 0 AND again = 0") == [(6, 0), (8, 0)]
    assert sql("SELECT m, sales.crm.w.m FROM sales.crm.w") == [(9, 9)]
    assert sql("SELECT count(*) FROM sales.v a JOIN sales.v b ON a.n = b.n") == [(4,)]
    sql("CREATE TEMPORARY VIEW v AS SELECT 'temporary' AS n")
    sql("USE sales")
    try:
        assert sql("SELECT n FROM v") == [("temporary",)]
        sql("DROP VIEW v")
        assert sql("SELECT min(n) FROM v") == sql("SELECT min(n) FROM main.v") == [(6,)]
        assert sql("WITH v AS (SELECT 1 AS n) SELECT n FROM v") == [(1,)]
        sql("USE crm")
        assert sql("SELECT * FROM w") == [(9,)]
    finally:
        sql("USE spark_catalog")
        spark.catalog.dropTempView("v")
    sql("DELETE FROM sales.t WHERE id = 9")
    assert sql("SELECT * FROM sales.crm.w") == [(8,)]
    with lake.transaction():
        sql("INSERT INTO sales.t SELECT m + 10, 0 FROM sales.crm.w")
        assert sql("SELECT * FROM sales.crm.w") == [(18,)]


def test_views(lake: Lake, file_catalog: Catalog, spark: SparkSession, sql: Sql) -> None:
    if view_statements_are_refused(lake):
        return
    sql("CREATE TABLE sales.t AS SELECT id, id % 2 AS k FROM range(10)")
    sql("CREATE VIEW sales.v (n COMMENT 'number', `k k`) COMMENT 'few' AS SELECT id, k FROM sales.t WHERE id > 5")
    assert sql("SELECT n, `k k` FROM sales.v WHERE `k k` = 0") == [(6, 0), (8, 0)]
    assert sql("SELECT count(*) FROM sales.main.v") == [(4,)]
    lake.sql("CREATE VIEW w AS SELECT max(n) AS m FROM v")
    assert sql("SELECT * FROM sales.w") == [(9,)]
    assert sql("SHOW VIEWS IN sales.main") == [("main", "v", False), ("main", "w", False)]
    with pytest.raises(AnalysisException, match="ALREADY_EXISTS"):
        sql("CREATE VIEW sales.v AS SELECT 1 AS a")
    sql("CREATE VIEW IF NOT EXISTS sales.v AS SELECT 1 AS a")
    sql("ALTER VIEW sales.w RENAME TO main.x")
    sql("CREATE OR REPLACE VIEW sales.v AS SELECT id AS n FROM sales.t WHERE id = 3")
    assert sql("SELECT * FROM sales.x") == [(3,)]
    assert sorted((view.name, view.dialect) for view in lake.views()) == [("v", "spark"), ("x", "spark")]
    sql("DROP VIEW sales.x")
    sql("DROP VIEW IF EXISTS sales.x")
    lake.close()
    with file_catalog.reference() as reference:
        assert reference.value("SELECT count(*) FROM t") == 10
    with attached(file_catalog, spark, name="sales"):
        assert sql("SELECT * FROM sales.v") == [(3,)]


def test_partitions_are_shown(lake: Lake, spark: SparkSession, sql: Sql) -> None:
    lake.set_option("data_inlining_row_limit", 0)
    sql("CREATE TABLE sales.t (id INT, `p p` STRING, ts TIMESTAMP_NTZ) PARTITIONED BY (`p p`, years(ts))")
    sql("INSERT INTO sales.t VALUES (1, 'a/b', TIMESTAMP_NTZ'1969-01-01'), (2, NULL, NULL), (3, 'x', NULL)")
    assert sql("SHOW PARTITIONS sales.t") == [
        ("p p=a%2Fb/year=1969",),
        ("p p=null/year=null",),
        ("p p=x/year=null",),
    ]
    assert sql("SHOW PARTITIONS sales.t PARTITION (`p p` = 'x')") == [("p p=x/year=null",)]
    with pytest.raises(Exception, match="come and go with its rows"):
        sql("ALTER TABLE sales.t ADD PARTITION (`p p` = 'new', year = '2000')")
    sql("CREATE TABLE sales.plain (a INT)")
    with pytest.raises(AnalysisException, match="PARTITION"):
        sql("SHOW PARTITIONS sales.plain")


def test_a_view_that_is_no_query_is_not_run(lake: Lake, sql: Sql) -> None:
    sql("CREATE TABLE sales.t (a INT) TBLPROPERTIES ('self' = 'x', 'name' = 'y')")
    lake.create_view("v", "DROP TABLE sales.main.t", dialect="spark")
    with pytest.raises(AnalysisException):
        sql("SELECT * FROM sales.v")
    assert sql("SHOW TBLPROPERTIES sales.t ('self')") == [("self", "x")]
    lake.create_view("o", "SELECT a FROM t", dialect="oracle")
    with pytest.raises(UnsupportedError, match=r"view main\.o is written in the dialect oracle.*SELECT a"):
        sql("SELECT * FROM sales.o")


def test_views_keep_to_their_columns_and_schemas(lake: Lake, spark: SparkSession, sql: Sql) -> None:
    sql("CREATE TABLE sales.t AS SELECT 1 AS id, 's' AS s, 5 AS n")
    if view_statements_are_refused(lake):
        return
    sql("CREATE VIEW sales.v AS SELECT * FROM sales.t")
    sql("ALTER TABLE sales.t ADD COLUMN more INT")
    assert sql("SELECT * FROM sales.v") == [(1, "s", 5)]
    sql("ALTER TABLE sales.t DROP COLUMN s")
    with pytest.raises(AnalysisException, match="INCOMPATIBLE_VIEW_SCHEMA_CHANGE"):
        sql("SELECT * FROM sales.v")
    sql("CREATE SCHEMA sales.crm")
    sql("CREATE TABLE sales.crm.o AS SELECT 1 AS a")
    sql("CREATE TABLE sales.o AS SELECT 2.5D AS a")
    sql("USE sales.crm")
    try:
        sql("CREATE VIEW sales.main.w AS SELECT * FROM o")
    finally:
        sql("USE spark_catalog")
    assert sql("SELECT * FROM sales.w") == [(1,)]
    assert spark.table("sales.main.w").schema.simpleString() == "struct<a:int>"


def test_views_that_refer_to_themselves(lake: Lake, sql: Sql) -> None:
    create_view(lake, "a", "SELECT 1 AS x")
    create_view(lake, "b", "SELECT * FROM sales.a")
    if view_statements_are_refused(lake):
        lake.create_view("a", "SELECT * FROM sales.b", dialect="spark", replace=True)
        with pytest.raises(InvalidError, match="refers to itself"):
            sql("SELECT * FROM sales.b")
        return
    for name in ("a", "b"):
        with pytest.raises(InvalidError, match="refers to itself"):
            sql(f"CREATE OR REPLACE VIEW sales.a AS SELECT * FROM sales.{name}")
    assert sql("SELECT * FROM sales.b") == [(1,)]
