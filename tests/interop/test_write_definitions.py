"""Schemas, tables, views, macros, comments and names, made here: the extension's rows, and what it can go on with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812

from penstock import InvalidError, Lake, NotFoundError, UnsupportedError
from penstock.ducklake.model.objects import MacroImplementation, MacroParameter
from support import dumps
from support.catalogs import Catalog
from support.compare import TableName, assert_same_tables
from support.reference import METADATA, Reference, identifier
from support.side_by_side import Step, assert_same_catalogs
from support.writing import attached, files_of, leaving_nothing

HOSTILE = ("it's", 'a "quoted" name', "a.b", "a/b=c%20$1", "😀 emoji", " spaces ", "MixedCase", "back`tick\\", "select")
COLUMNS = ("id", *HOSTILE)


def macro(sql: str, *names: str, kind: str = "scalar", dialect: str = "duckdb") -> MacroImplementation:
    parameters = tuple(MacroParameter(name, "unknown", "NULL", "unknown") for name in names)
    return MacroImplementation(dialect, sql, kind, parameters)


ADD = MacroImplementation(
    "duckdb",
    "(a + b)",
    "scalar",
    (MacroParameter("a", "unknown", "NULL", "unknown"), MacroParameter("b", "unknown", "3", "int32")),
)
ORDERS = """id BIGINT NOT NULL, s STRUCT<a: INT, b: ARRAY<STRING>, l: ARRAY<STRUCT<x: INT>>>,
            m MAP<STRING, STRUCT<v: INT>>, d DECIMAL(5,2) DEFAULT 1.5, x TIMESTAMP_NTZ DEFAULT now(),
            g STRING DEFAULT 'it\\'s', e BOOLEAN DEFAULT true, u UUID, n UINT64 DEFAULT 18446744073709551615"""
DEFINITIONS: list[Step] = [
    ("CREATE SCHEMA s", lambda lake: lake.create_schema("s")),
    ("CREATE SCHEMA IF NOT EXISTS S", lambda lake: lake.create_schema("S", if_not_exists=True)),
    ("""CREATE SCHEMA "a/b=% '""😀" """, lambda lake: lake.create_schema("a/b=% '\"😀")),
    (
        "CREATE TABLE s.orders (id BIGINT NOT NULL, s STRUCT(a INTEGER, b VARCHAR[], l STRUCT(x INTEGER)[]),"
        " m MAP(VARCHAR, STRUCT(v INTEGER)), d DECIMAL(5,2) DEFAULT 1.5, x TIMESTAMP DEFAULT now(),"
        " g VARCHAR DEFAULT 'it''s', e BOOLEAN DEFAULT true, u UUID, n UBIGINT DEFAULT 18446744073709551615)",
        lambda lake: lake.create_table("s.orders", ORDERS),
    ),
    (
        "CREATE TABLE IF NOT EXISTS s.ORDERS (a INTEGER)",
        lambda lake: lake.create_table("s.ORDERS", "a INT", if_not_exists=True),
    ),
    ('CREATE TABLE "t. ""T" ("a.b" INTEGER)', lambda lake: lake.create_table('"t. ""T"', "`a.b` INT")),
    (
        (
            "BEGIN", "CREATE TABLE parts (a INTEGER, b VARCHAR, c TIMESTAMPTZ)",
            "ALTER TABLE parts SET PARTITIONED BY (a, bucket(4, b), year(c))",
            "ALTER TABLE parts SET SORTED BY (b DESC, lower(b) NULLS FIRST)", "COMMIT",
        ),
        lambda lake: lake.create_table(
            "parts", "a INT, b STRING, c TIMESTAMP", partitioned_by=["a", "bucket(4, b)", "year(c)"],
            sorted_by=["b DESC", "lower(b) NULLS FIRST"],
        ),
    ),
    ("CREATE TABLE few AS SELECT 1 AS x, 'é' AS y", lambda lake: lake.create_table("few", rows(lake, "1 x, 'é' y"))),
    (
        "CREATE TABLE none AS SELECT 1 AS x WHERE false",
        lambda lake: lake.create_table("none", rows(lake, "1 AS x").where("false")),
    ),
    (
        "CREATE TABLE many AS SELECT i::BIGINT AS x FROM range(20) r(i)",
        lambda lake: lake.create_table("many", lake.spark.range(0, 20, 1, 1).toDF("x")),
    ),
    ("COMMENT ON TABLE s.orders IS 'first'", lambda lake: lake.table("s.orders").set_comment("first")),
    ("COMMENT ON TABLE s.orders IS 'it''s'", lambda lake: lake.table("s.orders").set_comment("it's")),
    ("COMMENT ON TABLE s.orders IS NULL", lambda lake: lake.table("s.orders").set_comment(None)),
    ("COMMENT ON COLUMN s.orders.id IS 'k'", lambda lake: lake.table("s.orders").set_column_tags("id", comment="k")),
    ("COMMENT ON COLUMN s.orders.s IS 'x'", lambda lake: lake.table("s.orders").set_column_tags("s", comment="x")),
    ("COMMENT ON COLUMN s.orders.s IS NULL", lambda lake: lake.table("s.orders").set_column_tags("s", comment=None)),
    ("ALTER TABLE s.orders RENAME TO sales", lambda lake: lake.table("s.orders").rename("sales")),
    ("ALTER TABLE s.sales RENAME TO Sales", lambda lake: lake.table("s.sales").rename("Sales")),
    ("CREATE VIEW v AS SELECT 1 AS a", lambda lake: lake.create_view("v", "SELECT 1 AS a", dialect="duckdb")),
    (
        "CREATE OR REPLACE VIEW v AS SELECT 2 AS a",
        lambda lake: lake.create_view("v", "SELECT 2 AS a", dialect="duckdb", replace=True),
    ),
    (
        "CREATE VIEW IF NOT EXISTS v AS SELECT 3 AS a",
        lambda lake: lake.create_view("v", "SELECT 3 AS a", dialect="duckdb", if_not_exists=True),
    ),
    (
        'CREATE VIEW s.w (x, "y""z") AS SELECT 2 AS a, 3',
        lambda lake: lake.create_view("s.w", "SELECT 2 AS a, 3", dialect="duckdb", column_aliases=["x", 'y"z']),
    ),
    ("COMMENT ON VIEW v IS 'seen'", lambda lake: lake.set_view_comment("v", "seen")),
    ("ALTER VIEW v RENAME TO v2", lambda lake: lake.rename_view("v", "v2")),
    ("CREATE MACRO plus(a, b := 3) AS a + b", lambda lake: lake.create_macro("plus", ADD)),
    (
        "CREATE MACRO overloaded(a) AS a, (a, b) AS a + b",
        lambda lake: lake.create_macro("overloaded", macro("a", "a"), macro("(a + b)", "a", "b")),
    ),
    (
        "CREATE MACRO plus(a) AS TABLE SELECT a AS x",
        lambda lake: lake.create_macro("plus", macro("SELECT a AS x", "a", kind="table")),
    ),
    ("CREATE MACRO s.id(a) AS a", lambda lake: lake.create_macro("s.id", macro("a", "a"))),
    ("DROP MACRO plus", lambda lake: lake.drop_macro("plus", kind="scalar")),
    ("DROP MACRO TABLE plus", lambda lake: lake.drop_macro("plus")),
    ("DROP VIEW v2", lambda lake: lake.drop_view("v2")),
    ("DROP VIEW IF EXISTS v2", lambda lake: lake.drop_view("v2", if_exists=True)),
    ("CREATE OR REPLACE TABLE few (y INTEGER)", lambda lake: lake.create_table("few", "y INT", replace=True)),
    ("DROP TABLE parts", lambda lake: lake.drop_table("parts")),
    ("DROP TABLE IF EXISTS parts", lambda lake: lake.drop_table("parts", if_exists=True)),
    ("DROP SCHEMA s CASCADE", lambda lake: lake.drop_schema("S", cascade=True)),
    ("DROP SCHEMA IF EXISTS s", lambda lake: lake.drop_schema("s", if_exists=True)),
]  # fmt: skip


def rows(lake: Lake, select: str) -> object:
    return lake.spark.sql(f"SELECT {select}")


def test_the_rows_are_the_extensions(
    catalog: Catalog, spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    assert_same_catalogs(catalog, spark, tmp_path / "twin", request, DEFINITIONS)


@pytest.mark.one_catalog
def test_names_and_kinds_of_schemas(catalog: Catalog, spark: SparkSession) -> None:
    """Tables from DDL, a StructType, a PyArrow schema and a DataFrame, under names that hurt."""
    every = 1 if catalog.kind == "duckdb" else 3  # what differs in the others is how the catalog takes names
    names = [TableName(HOSTILE[n + 1], HOSTILE[n]) for n in (0, 2, 4, 6)][::every]
    texts = [T.StructField(name, T.StringType(), metadata={"comment": name}) for name in HOSTILE]
    kinds = [
        ", ".join(["id INT NOT NULL", *(f"{_backticked(name)} STRING COMMENT {_string(name)}" for name in HOSTILE)]),
        T.StructType([T.StructField("id", T.IntegerType(), False), *texts]),
        pa.schema([pa.field("id", pa.int32(), False), *(pa.field(name, pa.string()) for name in HOSTILE)]),
        spark.sql(f"SELECT 7 AS id, {', '.join(f'{_string(name)} AS {_backticked(name)}' for name in HOSTILE)}"),
    ]
    few = spark.createDataFrame([(1, *HOSTILE), (2, *[None] * 9)], kinds[1])
    many = few.crossJoin(spark.range(8).select()).coalesce(1)
    with attached(catalog, spark) as lake:
        with lake.transaction():
            for name, kind in zip(names, kinds[::every], strict=True):
                lake.create_schema(name.schema)
                lake.create_table(str(name), kind, comment=str(name)).append(few)
        with lake.transaction():
            for name in names:
                table = lake.table(str(name))
                table.set_partitioned_by(identifier(HOSTILE[0]), f"bucket(4, {identifier(HOSTILE[3])})")
                table.set_sorted_by(f"{identifier(HOSTILE[1])} DESC", f"lower({identifier(HOSTILE[2])})")
                table.append(many)
            assert lake.table(str(names[-1])).read().count() == 19
        paths = {name: lake.table(str(name)).info for name in names}
        assert lake.table(str(names[0])).column_tags("a.b") == {"comment": "a.b"}
        assert lake.table(str(names[0]).upper().replace("`", "``")).info.name == names[0].table
    for name, info in paths.items():
        assert info.schema.path == f"{catalog.data_path}{_directory(name.schema, info.schema.uuid)}/"
        assert info.path == f"{info.schema.path}{_directory(name.table, info.uuid)}/"
    with catalog.reference() as reference:
        comments = dict(reference.rows("SELECT table_name, comment FROM duckdb_tables() WHERE database_name = 'lk'"))
        assert comments == {name.table: str(name) for name in names}
        of_columns = (
            "SELECT column_name, comment FROM duckdb_columns() WHERE database_name = 'lk' AND comment IS NOT NULL"
        )
        assert set(reference.rows(of_columns)) == {(name, name) for name in HOSTILE}
        if catalog.kind != "mysql":  # where the extension can do no more
            for name in names:
                _go_on(reference, name)
            # Apart: in one transaction with another ALTER, the extension writes the table twice and reads it no more.
            reference.execute(f"ALTER TABLE {names[0]} RENAME TO {identifier(names[1].table)}")
            names.append(TableName(names[1].table, names[0].schema))
    assert_same_tables(catalog, spark, *names)


def _go_on(reference: Reference, name: TableName) -> None:
    reference.execute(
        "BEGIN",
        f"INSERT INTO {name} (id, {identifier(HOSTILE[3])}) VALUES (100, 'x'), (101, NULL)",
        f"INSERT INTO {name} (id, {identifier(HOSTILE[0])}) SELECT i, '/=%' FROM range(20) r(i)",
        f"ALTER TABLE {name} ADD COLUMN {identifier('new ' + name.table)} VARCHAR DEFAULT 'it''s'",
        f"ALTER TABLE {name} RENAME COLUMN {identifier(HOSTILE[1])} TO {identifier(HOSTILE[1] + '?')}",
        "COMMIT",
    )


def _directory(name: str, uuid: str) -> str:
    return name if name == "MixedCase" else uuid


def _backticked(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _string(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def test_views_and_macros(catalog: Catalog, spark: SparkSession) -> None:
    """Those in DuckDB's dialect run there, wherever DuckDB stands; others are kept for those who know their dialect."""
    with attached(catalog, spark) as lake, lake.transaction():
        lake.create_schema("s")
        lake.create_table("s.t", spark.sql("SELECT 5 AS a, 'x' AS b"))
        lake.create_view("s.near", "SELECT a, b FROM t", dialect="duckdb", column_aliases=["x y", 'q"'])
        lake.create_view("far", "FROM s.t SELECT a + 1 AS c", dialect="duckdb")
        lake.create_view("lost", "SELECT 1", dialect="duckdb")
        lake.rename_view("lost", "found")
        lake.drop_view("found")
        lake.create_view("sparks", "SELECT a RLIKE '5' FROM s.t")
        lake.set_view_tags("far", comment="it's far", owner="me")
        lake.create_macro("plus", ADD)
        lake.create_macro("plus", macro("SELECT a + x AS y FROM lk.s.t", "x", kind="table"))
        lake.create_macro("s.later", macro("transform(a, x -> x + 1)", "a", dialect="spark"))
        lake.create_macro(
            "s.nothing", MacroImplementation("duckdb", "a", "scalar", (MacroParameter("a", "varchar", None, None),))
        )
        assert [macro.name for macro in lake.macros()] == ["plus", "plus", "later", "nothing"]
        lake.drop_macro("S.LATER")
    with catalog.reference() as reference:
        for place in ("memory", "lk"):
            reference.execute(f"USE {place}")
            assert reference.rows('SELECT "x y", "q""" FROM lk.s.near') == [(5, "x")]
            assert reference.rows("SELECT c FROM lk.far") == [(6,)]
            assert reference.rows("SELECT lk.plus(1), lk.plus(1, 1), lk.s.nothing('n')") == [(4, 2, "n")]
            assert reference.rows("FROM lk.plus(2)") == [(7,)]
        reference.execute("USE lk")
        views = "SELECT view_name, comment FROM duckdb_views() WHERE database_name = 'lk' ORDER BY view_name"
        assert reference.rows(views) == [("far", "it's far"), ("near", None), ("sparks", None)]
        with pytest.raises(duckdb.Error):
            reference.execute("FROM sparks")
        if catalog.kind != "mysql":
            reference.execute(
                "ALTER VIEW far RENAME TO away", "DROP VIEW s.near", "CREATE VIEW theirs AS SELECT c FROM away",
                "DROP MACRO plus", "CREATE OR REPLACE MACRO s.nothing(b) AS b", "COMMENT ON VIEW away IS NULL",
            )  # fmt: skip
    if catalog.kind != "mysql":
        with attached(catalog, spark, read_only=True) as lake:
            views = {view.name: (view.dialect, view.sql, view.tags) for view in lake.views()}
            assert views["away"] == ("duckdb", "FROM s.t SELECT a + 1 AS c", {"owner": "me"})
            assert views["sparks"] == ("spark", "SELECT a RLIKE '5' FROM s.t", {})
            assert set(views) == {"away", "sparks", "theirs"}
            kinds = {
                (macro.name, macro.implementations[0].type): macro.implementations[0].sql for macro in lake.macros()
            }
            assert kinds == {("plus", "table"): "SELECT a + x AS y FROM lk.s.t", ("nothing", "scalar"): "b"}


def _typed(kind: str, default: str | None, of: str) -> MacroImplementation:
    return MacroImplementation("duckdb", "a", "scalar", (MacroParameter("a", kind, default, of),))


ERRORS: list[tuple[Callable[[Lake], object], str, type[Exception]]] = [
    (lambda lake: lake.create_schema("S"), "schema s already exists", InvalidError),
    (lambda lake: lake.create_schema(""), "cannot be the name of a schema", InvalidError),
    (lambda lake: lake.drop_schema("nope"), "schema nope does not exist; there are main, s", NotFoundError),
    (lambda lake: lake.drop_schema("main"), "main is part of every lake", InvalidError),
    (lambda lake: lake.drop_schema("s"), "schema s holds u, w, f, f; drop them first, or pass cascade", InvalidError),
    (lambda lake: lake.create_table("T", "a INT"), "table main.T already exists", InvalidError),
    (lambda lake: lake.create_table("v", "a INT"), "view main.v already exists", InvalidError),
    (lambda lake: lake.create_table("v", "a INT", replace=True), "v is a view", InvalidError),
    (lambda lake: lake.create_table("v", "a INT", if_not_exists=True), "view main.v already exists", InvalidError),
    (lambda lake: lake.create_table("nope.t", "a INT"), r"schema nope does not exist; create it", NotFoundError),
    (lambda lake: lake.create_table('""', "a INT"), "cannot be the name of a table", InvalidError),
    (lambda lake: lake.create_table("a.b.c", "a INT"), "has 3 parts", NotFoundError),
    (lambda lake: lake.create_table("x", "a INT, A INT"), "two columns named 'A'", InvalidError),
    (lambda lake: lake.create_table("x", "row_id INT"), "'row_id' is reserved", InvalidError),
    (lambda lake: lake.create_table("x", "a INTERVAL DAY"), "DuckLake does not have", UnsupportedError),
    (lambda lake: lake.create_table("x", "a NOPE"), "not a list of columns", InvalidError),
    (lambda lake: lake.create_table("x", T.StructType([])), "at least one column", InvalidError),
    (lambda lake: lake.create_table("x", "a INT", partitioned_by=["b"]), "no column 'b'", NotFoundError),
    (lambda lake: lake.create_table("x", "a INT", partitioned_by=["a", "a"]), "leave one out", InvalidError),
    (lambda lake: lake.create_table("x", "a INT", partitioned_by=["truncate(3, a)"]), "no transform", UnsupportedError),
    (lambda lake: lake.create_table("x", "a INT", sorted_by=["a + b"]), "no column 'b'", InvalidError),
    (lambda lake: lake.create_table("x", "a STRUCT<b: INT>", sorted_by=["a.b"]), "whole columns", InvalidError),
    (lambda lake: lake.create_table("x", "a INT", sorted_by=["sum(a)"]), "cannot be sorted by", InvalidError),
    (lambda lake: lake.create_table("x", "a INT", sorted_by=["a, a"]), "single expression", InvalidError),
    (lambda lake: lake.create_table("x", "a INT", sorted_by=["bround(a)"]), "that both Spark and", InvalidError),
    (lambda lake: lake.create_table("x", failing(lake)), "broken", Exception),
    (lambda lake: lake.drop_table("nope"), "table nope does not exist; there are main.t, s.u", NotFoundError),
    (lambda lake: lake.drop_table("v"), "v is a view", InvalidError),
    (lambda lake: lake.drop_table("v", if_exists=True), "v is a view", InvalidError),
    (lambda lake: lake.table("nope"), "main.nope does not exist", NotFoundError),
    (lambda lake: lake.table("V"), "main.v is a view, not a table; its SQL is 'SELECT 1', in the dialect spark",
     NotFoundError),
    (lambda lake: lake.table("t").rename("V"), "view main.V already exists", InvalidError),
    (lambda lake: lake.table("t").rename(""), "cannot be the name", InvalidError),
    (lambda lake: lake.table("t").set_column_tags("b", comment="x"), "no column 'b'", NotFoundError),
    (lambda lake: lake.create_view("v", "SELECT 1"), "view main.v already exists", InvalidError),
    (lambda lake: lake.create_view("t", "SELECT 1", replace=True), "table main.t already exists", InvalidError),
    (lambda lake: lake.create_view("x", "SELECT ((", dialect="duckdb"), "that DuckDB can read", InvalidError),
    (lambda lake: lake.create_view("x", "DROP TABLE t", dialect="duckdb"), "not one query", InvalidError),
    (lambda lake: lake.create_view("nope.x", "SELECT 1"), "schema nope does not exist", NotFoundError),
    (lambda lake: lake.rename_view("v", "T"), "table main.T already exists", InvalidError),
    (lambda lake: lake.rename_view("nope", "x"), "view nope does not exist; there are main.v, s.w", NotFoundError),
    (lambda lake: lake.drop_view("nope"), "view nope does not exist", NotFoundError),
    (lambda lake: lake.drop_view("t", if_exists=True), "t is a table", InvalidError),
    (lambda lake: lake.set_view_comment("t", "x"), "view t does not exist", NotFoundError),
    (lambda lake: lake.create_macro("s.f", macro("a", "a")), "macro s.f already exists", InvalidError),
    (lambda lake: lake.create_macro("x"), "needs implementations", InvalidError),
    (lambda lake: lake.create_macro("x", macro("1"), macro("SELECT a", "a", kind="table")), "all scalar", InvalidError),
    (lambda lake: lake.create_macro("x", macro("a", "a"), macro("b", "b")), "same number", InvalidError),
    (lambda lake: lake.create_macro("x", macro("a RLIKE b", "a", "b", dialect="spark")), "not the lake", InvalidError),
    (lambda lake: lake.create_macro("x", macro("SELECT 1")), "not the lake", InvalidError),
    (lambda lake: lake.create_macro("x", macro("1", kind="table")), "not the lake", InvalidError),
    (lambda lake: lake.create_macro("x", macro("a", "a", "A")), "name of its own", InvalidError),
    (lambda lake: lake.create_macro("x", _typed("nope", None, "unknown")), "write a DuckLake type", InvalidError),
    (lambda lake: lake.create_macro("x", _typed("unknown", "x", "int32")), "Could not convert", InvalidError),
    (lambda lake: lake.create_macro("x", _typed("unknown", "NULL", "int32")), "has no default", InvalidError),
    (lambda lake: lake.drop_macro("s.f"), 'kind="scalar" or kind="table"', InvalidError),
    (lambda lake: lake.drop_macro("f"), "macro f does not exist; there are s.f", NotFoundError),
]  # fmt: skip


def failing(lake: Lake) -> object:
    """Rows of which some are written before the job fails."""
    return lake.spark.sql("SELECT id, IF(id = 4999, raise_error('broken'), 'x') AS x FROM range(0, 5000, 1, 2)")


def test_errors_change_nothing(duckdb_catalog: Catalog, spark: SparkSession) -> None:
    with attached(duckdb_catalog, spark) as lake:
        lake.create_schema("s")
        lake.create_table("t", spark.range(20))
        lake.create_table("s.u", "a INT")
        lake.create_view("v", "SELECT 1")
        lake.create_view("s.w", "SELECT 1")
        lake.create_macro("s.f", macro("a", "a"))
        lake.create_macro("s.f", macro("SELECT a", "a", kind="table"))
        before, files = lake.current_snapshot(), files_of(duckdb_catalog)
        for change, why, kind in ERRORS:
            with pytest.raises(kind, match=why):
                change(lake)
        assert lake.current_snapshot() == before
        # Inside a transaction a statement that fails takes nothing of the others with it, and leaves nothing.
        with lake.transaction():
            lake.create_table("kept", spark.range(3))
            for change, _, kind in ERRORS[::3]:
                with pytest.raises(kind):
                    change(lake)
        assert files_of(duckdb_catalog) == files
        with leaving_nothing(duckdb_catalog, lake, "stop"), lake.transaction():
            lake.create_table("lost", spark.range(30)).rename("gone")
            raise InvalidError("stop")
    with attached(duckdb_catalog, spark, read_only=True) as lake, leaving_nothing(duckdb_catalog, lake, "read_only"):
        lake.create_schema("x")
    made = dumps.rows(duckdb_catalog)
    assert len(made["ducklake_snapshot"]) == before.id + 2
    assert [row[1] for row in made["ducklake_snapshot_changes"]][-1].startswith('created_table:"main"."kept"')
    with duckdb_catalog.reference() as reference:
        assert reference.value(f"SELECT count(*) FROM {METADATA}.ducklake_table") == 3
        assert reference.value("SELECT sum(id) FROM kept") == 3
