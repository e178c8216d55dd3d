"""What SQL writes, DuckDB reads, on the four databases; changes of rows are those that DuckDB itself makes."""

from __future__ import annotations

import re

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from penstock import Lake
from penstock.errors import InvalidError, UnsupportedError
from support import effort
from support.catalogs import Catalog
from support.compare import assert_same_tables
from support.writing import attached

from .conftest import Sql, evolving_insert

COLUMNS = "id BIGINT NOT NULL, region STRING DEFAULT 'no''where', total DOUBLE, day DATE, d DECIMAL(38,4)"
ROWS = (
    "(1, 'a''b/=% $ 🦆', 'NaN'::DOUBLE, DATE '1969-12-31', 1234567890123456789012345678901234.5678),"
    " (2, '', -0.0::DOUBLE, DATE '9999-12-31', -0.0001), (3, NULL, NULL, NULL, NULL), (4, 'EU', 1.5, NULL, 0),"
    " (5, 'EU', 2.5, DATE '2020-02-29', 7)"
)
# Statements that both languages have, each a snapshot.
CHANGES = (
    "DELETE FROM t WHERE region = 'EU' AND total > 2",
    "UPDATE t SET total = total * 2, region = upper(region) WHERE id < 3",
    "DELETE FROM t AS x WHERE EXISTS (SELECT 1 FROM t AS y WHERE y.id = x.id + 2 AND y.total = 1.5)",
    "UPDATE t SET day = DATE '1970-01-01', d = (SELECT max(id) FROM t) WHERE day IS NULL",
    "MERGE INTO t USING (SELECT id + 2 AS id, region FROM t) AS s ON t.id = s.id"
    " WHEN MATCHED AND t.id = 3 THEN DELETE WHEN MATCHED THEN UPDATE SET region = s.region"
    " WHEN NOT MATCHED AND s.id > 5 THEN INSERT (id, region) VALUES (s.id, 'new')",
    "MERGE INTO t USING (SELECT 4 AS k, 'x' AS v UNION ALL SELECT 90, 'y') AS s ON t.id = s.k"
    " WHEN MATCHED THEN UPDATE SET region = v WHEN NOT MATCHED THEN INSERT (id, region, total) VALUES (k, v, 0)"
    " WHEN NOT MATCHED BY SOURCE AND t.id = 1 THEN UPDATE SET total = -1",
    "INSERT INTO t (id) SELECT id + 1000 FROM t WHERE id < 3",
    "DELETE FROM t WHERE id IN (SELECT id FROM t WHERE region = 'new')",
    "DELETE FROM t",
)


def spark_sql(statement: str) -> str:
    """A statement of both languages, with the lake's table by its whole name."""
    named = re.sub(r"(FROM|INTO|UPDATE) t\b", r"\1 sales.main.t", statement).replace("'NaN'::DOUBLE", "double('NaN')")
    return named.replace("-0.0::DOUBLE", "-0.0D").replace("a''b", "a\\'b")


@pytest.mark.one_catalog
@pytest.mark.parametrize("inlined_rows", [0, 100] if effort.is_full() else [0])
def test_changes_are_those_of_duckdb(catalog: Catalog, spark: SparkSession, inlined_rows: int) -> None:
    with catalog.reference(data_inlining_row_limit=0) as judge, judge.connection.cursor() as own:
        own.execute(f"CREATE TEMP TABLE t ({COLUMNS.replace('STRING', 'VARCHAR')})")
        own.execute(f"INSERT INTO t VALUES {ROWS}")
        expected = [own.execute("FROM t").fetchall()]
        for statement in CHANGES:
            own.execute(statement)
            expected.append(own.execute("FROM t").fetchall())
    with attached(catalog, spark, name="sales", data_inlining_row_limit=inlined_rows):
        spark.sql(f"CREATE TABLE sales.t ({COLUMNS.replace(chr(39) * 2, chr(92) + chr(39))})")
        spark.sql(spark_sql(f"INSERT INTO t VALUES {ROWS}"))
        assert shown(spark) == in_order(expected[0])
        for statement, rows in zip(CHANGES, expected[1:], strict=True):
            spark.sql(spark_sql(statement))
            assert shown(spark) == in_order(rows), statement
    assert_same_tables(catalog, spark, "t")


def shown(spark: SparkSession) -> list[str]:
    return in_order([tuple(row) for row in spark.sql("SELECT * FROM sales.t").collect()])


def in_order(rows: list[tuple[object, ...]]) -> list[str]:
    return sorted(repr(row) for row in rows)


TRANSFORMS = {
    "identity": ("p", "p STRING"),
    "two": ("p, q", "p STRING, q INT"),
    "bucket": ("bucket(4, p)", "p STRING"),
    "calendar": ("years(ts), months(ts), days(ts), hours(ts)", "ts TIMESTAMP_NTZ"),
}


@pytest.mark.parametrize(
    ("name", "inlined_rows"),
    [(name, rows) for n, name in enumerate(TRANSFORMS) for rows in ((0, 100) if effort.is_full() else (n % 2 * 100,))],
)
def test_overwritten_partitions(
    file_catalog: Catalog, spark: SparkSession, sql: Sql, name: str, inlined_rows: int
) -> None:
    by, columns = TRANSFORMS[name]
    values = {
        "identity": ["'a/b'", "'x=y'", "NULL", "''"],
        "two": ["'a', 1", "'a', NULL", "NULL, 1", "'b', 2"],
        "bucket": ["'a'", "'b'", "NULL", "'d'"],
        "calendar": [
            "TIMESTAMP_NTZ'1969-12-31 23:00:00'", "TIMESTAMP_NTZ'2020-02-29 01:00:00'", "NULL",
            "TIMESTAMP_NTZ'2020-02-29 02:00:00'",
        ],
    }[name]  # fmt: skip
    with attached(file_catalog, spark, name="sales", data_inlining_row_limit=inlined_rows) as lake:
        sql(f"CREATE TABLE sales.t (id BIGINT, {columns})")
        rows = ", ".join(f"({number}, {value})" for number, value in enumerate(values))
        sql(f"INSERT INTO sales.t VALUES {rows}")  # before there were partitions
        lake.table("t").set_partitioned_by(
            *by.replace("years", "year")
            .replace("months", "month")
            .replace("days", "day")
            .replace("hours", "hour")
            .split(", ")
        ) if name != "bucket" else lake.table("t").set_partitioned_by(by)
        sql(f"INSERT INTO sales.t VALUES {rows.replace('(', '(1')}")
        frame = spark.sql(f"SELECT 100L AS id, {values[0]} UNION ALL SELECT 200L, {values[2]}")
        frame = frame.toDF(*spark.table("sales.t").columns)
        frame.writeTo("sales.t").overwritePartitions()
        kept = [id for (id,) in sql("SELECT id FROM sales.t ORDER BY id")]
        same = {"bucket": kept}.get(name, [1, 3, 11, 13, 100, 200])
        assert kept == same
        if name == "bucket":
            assert {100, 200} <= set(kept)
            assert not {0, 2, 10, 12} & set(kept)
        sql("INSERT OVERWRITE sales.t SELECT id, * EXCEPT (id) FROM sales.t WHERE id = 100")
        assert sql("SELECT id FROM sales.t") == [(100,)]
    assert_same_tables(file_catalog, spark, "t")


def test_every_way_to_write(lake: Lake, file_catalog: Catalog, spark: SparkSession, sql: Sql) -> None:
    frame = spark.sql("SELECT 1L AS id, 'EU' AS region")
    frame.writeTo("sales.t").partitionedBy(F.col("region")).tableProperty("mine", "x").create()
    frame.writeTo("sales.t").option("distribution", "none").append()
    frame.writeTo("sales.t").overwrite(F.col("id") == 1)
    assert sql("SELECT * FROM sales.t") == [(1, "EU")]
    frame.write.insertInto("sales.t")
    frame.write.mode("append").saveAsTable("sales.t")
    assert sql("SELECT count(*) FROM sales.t") == [(3,)]
    frame.write.insertInto("sales.t", overwrite=True)
    frame.selectExpr("id + 1 AS id", "region").mergeInto(
        "sales.t", F.expr("t.id = 2")
    ).whenNotMatched().insertAll().merge()
    assert sql("SELECT * FROM sales.t") == [(1, "EU"), (2, "EU")]
    frame.select("id").writeTo("sales.t").createOrReplace()
    assert sql("SELECT * FROM sales.t") == [(1,)]
    frame.write.mode("overwrite").saveAsTable("sales.t")
    frame.write.saveAsTable("sales.new")
    assert sql("SELECT * FROM sales.t") == sql("SELECT * FROM sales.new") == [(1, "EU")]
    with pytest.raises(InvalidError, match="has no option mergeschema"):
        frame.writeTo("sales.t").option("mergeSchema", "true").append()
    with pytest.raises(InvalidError, match="'wild' is none of"):
        frame.writeTo("sales.t").option("distribution", "wild").append()
    lake.close()
    assert_same_tables(file_catalog, spark, "t", "new")


def test_a_table_and_its_rows_are_one_snapshot_or_nothing(lake: Lake, spark: SparkSession, sql: Sql) -> None:
    newest = lake.current_snapshot().id
    sql("CREATE TABLE sales.t PARTITIONED BY (p) COMMENT 'c' AS SELECT id, id % 2 AS p FROM range(100)")
    assert lake.current_snapshot().id == newest + 1
    sql("CREATE OR REPLACE TABLE sales.t AS SELECT count(*) AS n FROM sales.t")
    assert lake.current_snapshot().id == newest + 2
    assert sql("SELECT * FROM sales.t") == [(100,)]
    for statement in (
        "CREATE TABLE sales.bad AS SELECT CAST(raise_error('no') AS INT) AS x",
        "CREATE OR REPLACE TABLE sales.t AS SELECT CAST(raise_error('no') AS INT) AS x",
        "INSERT OVERWRITE sales.t SELECT raise_error('no') FROM sales.t",
    ):
        with pytest.raises(Exception, match="no"):
            sql(statement)
    assert lake.current_snapshot().id == newest + 2
    assert sql("SELECT * FROM sales.t") == [(100,)]
    assert sql("SHOW TABLES IN sales.main") == [("main", "t", False)]


def test_names_in_subqueries_are_not_taken_for_the_tables(lake: Lake, sql: Sql) -> None:
    """A correlated name is the outer table's, whatever the tables inside are called."""
    sql("CREATE TABLE sales.t AS SELECT id, id AS k FROM range(6)")
    sql("CREATE TABLE sales.u AS SELECT id, named_struct('id', 99L, 'k', 99L) AS target FROM range(3)")
    sql("DELETE FROM sales.t WHERE EXISTS (SELECT 1 FROM sales.u AS target WHERE target.id = t.k)")
    assert sql("SELECT id FROM sales.t") == [(3,), (4,), (5,)]
    sql(
        "DELETE FROM sales.t WHERE EXISTS"
        " (SELECT 1 FROM sales.u WHERE u.id + 3 = t.id AND u.target.id = 99 AND u.id < 1)"
    )
    assert sql("SELECT id FROM sales.t") == [(4,), (5,)]
    sql("UPDATE sales.t AS source SET k = (SELECT max(source.id) FROM sales.u AS source) + source.id WHERE id = 4")
    assert sql("SELECT * FROM sales.t") == [(4, 6), (5, 5)]
    sql(
        "MERGE INTO sales.t AS source USING (SELECT 5L AS id, 1L AS id2, 2L AS `rowid`) AS target"
        " ON source.id = target.id WHEN MATCHED THEN UPDATE SET k = target.id2 + target.rowid"
    )
    assert sql("SELECT * FROM sales.t") == [(4, 6), (5, 3)]
    sql("DELETE FROM sales.t WHERE rowid IN (SELECT rowid FROM sales.t WHERE id = 4)")
    assert sql("SELECT id FROM sales.t") == [(5,)]


@pytest.mark.one_catalog
def test_new_columns_come_with_the_rows(catalog: Catalog, spark: SparkSession, sql: Sql) -> None:
    with attached(catalog, spark, name="sales") as lake:
        sql("CREATE TABLE sales.t (id INT, s STRUCT<a: INT>)")
        sql("INSERT INTO sales.t VALUES (1, named_struct('a', 1))")
        newest = lake.current_snapshot().id
        added = "SELECT 2L AS id, named_struct('a', 2, 'b', 'x') AS s, DATE'1969-12-31' AS day"
        sql(evolving_insert(spark, added))
        assert lake.current_snapshot().id == newest + 1
        assert spark.table("sales.t").schema.simpleString() == "struct<id:bigint,s:struct<a:int,b:string>,day:date>"
        sql(
            "MERGE WITH SCHEMA EVOLUTION INTO sales.t USING (SELECT 2L AS id, 'é' AS extra UNION ALL SELECT 3L, 'z') s"
            " ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
        assert lake.current_snapshot().id == newest + 2
        assert sql("SELECT id, s.b, day IS NULL, extra FROM sales.t ORDER BY id") == [
            (1, None, True, None),
            (2, "x", False, "é"),
            (3, None, True, "z"),
        ]
        for failing in ("SELECT 4L AS id, CAST(raise_error('no') AS INT) AS bad", "SELECT 'text' AS id, 1 AS bad"):
            with pytest.raises(Exception, match=r"no|id"):
                sql(evolving_insert(spark, failing))
        assert lake.current_snapshot().id == newest + 2
        assert "bad" not in spark.table("sales.t").columns
        with lake.transaction():
            sql(evolving_insert(spark, "SELECT 5L AS id, 1.5D AS more"))
            assert sql("SELECT more FROM sales.t WHERE id = 5") == [(1.5,)]
        assert lake.current_snapshot().id == newest + 3
    assert_same_tables(catalog, spark, "t")


def test_conditions_that_spark_computes_once(lake: Lake, sql: Sql) -> None:
    sql("CREATE TABLE sales.t AS SELECT id, id AS v FROM range(20)")
    sql("CREATE TABLE sales.s AS SELECT id AS k, id * 2 AS high FROM range(3)")
    sql("DELETE FROM sales.t WHERE id + 0 BETWEEN 3 AND 5 OR id NOT BETWEEN 0 AND 15")
    sql("UPDATE sales.t SET v = nullif(v, 7) WHERE id BETWEEN 6 AND 8")
    sql("DELETE FROM sales.t WHERE EXISTS (SELECT 1 FROM sales.s WHERE t.id BETWEEN s.k + 9 AND s.high + 9)")
    sql("""MERGE INTO sales.t USING sales.s ON t.id = s.k AND t.id BETWEEN 1 AND 2
           WHEN MATCHED AND s.high BETWEEN 2 AND 3 THEN UPDATE SET v = nvl2(nullif(s.high, 0), 100, 0)
           WHEN MATCHED THEN DELETE""")
    left = [(0, 0), (1, 100), (6, 6), (7, None), (8, 8), (14, 14), (15, 15)]
    assert sql("SELECT id, v FROM sales.t ORDER BY id") == left
    before = lake.current_snapshot()
    with pytest.raises(AnalysisException, match=r"cannot compare .*rand.*, which differs each time"):
        sql("DELETE FROM sales.t WHERE id + rand() BETWEEN 0 AND 1")
    assert lake.current_snapshot() == before


@pytest.mark.parametrize(
    "assigned", ["id = 1, id = 2", "id = 1, ID = 2", "n.a = 1, n.a = 2", "n.a = 1, n = NULL", "n = NULL, n.b = 1"]
)
def test_what_is_set_twice(lake: Lake, sql: Sql, assigned: str) -> None:
    sql("CREATE TABLE sales.t AS SELECT 1 AS id, struct(1 AS a, 2 AS b) AS n")
    before = lake.current_snapshot()
    with pytest.raises(InvalidError, match="set twice; set it once"):
        sql(f"UPDATE sales.t SET {assigned}")
    assert lake.current_snapshot() == before
    sql("UPDATE sales.t SET n.a = 3, n.b = 4")
    assert sql("SELECT n.a, n.b FROM sales.t") == [(3, 4)]


@pytest.mark.parametrize("name", ["_penstock_row", "_PENSTOCK_FILE", "_tmp_metadata_row_index"])
def test_columns_with_names_of_penstocks_own(lake: Lake, sql: Sql, name: str) -> None:
    sql(f"CREATE TABLE sales.t (id INT, n TIMESTAMP_NTZ, `{name}` BIGINT)")
    sql("INSERT INTO sales.t VALUES (1, NULL, 10), (2, NULL, 20)")
    before, rows = lake.current_snapshot(), sql("SELECT * FROM sales.t")
    for statement in (
        "UPDATE sales.t SET id = id + 1",
        "DELETE FROM sales.t WHERE id = 2",
        "MERGE INTO sales.t USING (SELECT 1 AS k) s ON t.id = s.k WHEN MATCHED THEN DELETE",
    ):
        with pytest.raises(UnsupportedError, match=rf"main\.t cannot be changed while it has a column {name}.*rename"):
            sql(statement)
    assert lake.current_snapshot() == before
    sql(f"ALTER TABLE sales.t RENAME COLUMN `{name}` TO other")
    sql("DELETE FROM sales.t WHERE id = 2")
    assert sql("SELECT * FROM sales.t") == rows[:1]
