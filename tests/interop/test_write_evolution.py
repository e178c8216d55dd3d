"""Columns, partitionings and sort orders that change here, with rows before and after: the extension follows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812

from interop.catalogs import Catalog
from interop.compare import assert_history, assert_same_tables, record
from interop.reference import METADATA
from interop.side_by_side import Step, assert_same_catalogs
from interop.writing import attached, files_of
from penstock import InvalidError, Lake, NotFoundError, PenstockError, Table, UnsupportedError

NESTED = """id INT NOT NULL, s STRUCT<a: TINYINT, n: STRUCT<x: FLOAT>>, l ARRAY<STRUCT<a: INT, b: STRING>>,
            m MAP<STRING, STRUCT<y: UINT8, z: DATE>>, d DECIMAL(5,2) DEFAULT 1.5"""
NESTED_IN_DUCKDB = (
    "id INTEGER NOT NULL, s STRUCT(a TINYINT, n STRUCT(x FLOAT)), l STRUCT(a INTEGER, b VARCHAR)[],"
    " m MAP(VARCHAR, STRUCT(y UTINYINT, z DATE)), d DECIMAL(5,2) DEFAULT 1.5"
)


def t(change: Callable[[Table], object]) -> Callable[[Lake], object]:
    return lambda lake: change(lake.table("t"))


# Left out is what the extension does wrong: renaming a field that has a default loses the default.
CHANGES: list[Step] = [
    (f"CREATE TABLE t ({NESTED_IN_DUCKDB})", lambda lake: lake.create_table("t", NESTED)),
    ("ALTER TABLE t ADD COLUMN n INTEGER DEFAULT 5", t(lambda t: t.add_column("n INT DEFAULT 5"))),
    ("ALTER TABLE t ADD COLUMN e VARCHAR DEFAULT 'it''s'", t(lambda t: t.add_column("e STRING DEFAULT 'it\\'s'"))),
    ("ALTER TABLE t ADD COLUMN u STRUCT(q INTEGER[], z UUID)", t(lambda t: t.add_column("u STRUCT<q: ARRAY<INT>, z: UUID>"))),
    ("ALTER TABLE t ADD COLUMN s.n.y INTEGER DEFAULT 4", t(lambda t: t.add_column("s.n.y INT DEFAULT 4"))),
    ("ALTER TABLE t ADD COLUMN l.element.c BIGINT", t(lambda t: t.add_column("l.element.c BIGINT"))),
    ("ALTER TABLE t ADD COLUMN m.value.w STRUCT(k DATE)", t(lambda t: t.add_column("m.value.w STRUCT<k: DATE>"))),
    ("ALTER TABLE t RENAME n TO N", t(lambda t: t.rename_column("n", "N"))),
    ('ALTER TABLE t RENAME n TO "a.b ""c"', t(lambda t: t.rename_column("n", 'a.b "c'))),
    ("ALTER TABLE t RENAME s TO ss", t(lambda t: t.rename_column("s", "ss"))),
    ("ALTER TABLE t RENAME ss.n.x TO xx", t(lambda t: t.rename_column("ss.n.x", "xx"))),
    ("ALTER TABLE t RENAME l.element.a TO aa", t(lambda t: t.rename_column("l.element.a", "aa"))),
    ("ALTER TABLE t RENAME m.value.y TO yy", t(lambda t: t.rename_column("m.value.y", "yy"))),
    ('ALTER TABLE t ALTER "a.b ""c" SET TYPE BIGINT', t(lambda t: t.set_type('"a.b ""c"', "BIGINT"))),
    (
        "ALTER TABLE t ALTER ss SET TYPE STRUCT(a SMALLINT, n STRUCT(xx DOUBLE, y INTEGER))",
        t(lambda t: t.set_type("ss", "STRUCT<a: SMALLINT, n: STRUCT<xx: DOUBLE, y: INT>>")),
    ),
    (
        "ALTER TABLE t ALTER l SET TYPE STRUCT(aa BIGINT, b VARCHAR, c BIGINT)[]",
        t(lambda t: t.set_type("l.element.aa", "BIGINT")),
    ),
    ("ALTER TABLE t ALTER e SET DEFAULT 'new'", t(lambda t: t.set_default("e", "'new'"))),
    ("ALTER TABLE t ALTER e DROP DEFAULT", t(lambda t: t.drop_default("e"))),
    ("ALTER TABLE t ALTER id DROP NOT NULL", t(lambda t: t.drop_not_null("id"))),
    ("INSERT INTO t (id) SELECT i FROM range(20) r(i)", t(lambda t: t.append(t.lake.spark.sql("SELECT CAST(id AS INT) AS id FROM range(0, 20, 1, 1)"), by_name=True))),
    ("ALTER TABLE t ALTER id SET NOT NULL", t(lambda t: t.set_not_null("id"))),
    ("ALTER TABLE t DROP COLUMN m.value.z", t(lambda t: t.drop_column("m.value.z"))),
    ("ALTER TABLE t DROP COLUMN l.element.b", t(lambda t: t.drop_column("l.element.b"))),
    ("COMMENT ON COLUMN t.u IS 'gone soon'", t(lambda t: t.set_column_tags("u", comment="gone soon"))),
    ("ALTER TABLE t DROP COLUMN u", t(lambda t: t.drop_column("u"))),
    ("ALTER TABLE t DROP COLUMN IF EXISTS u", t(lambda t: t.drop_column("u", if_exists=True))),
    ("ALTER TABLE t ADD COLUMN u INTEGER", t(lambda t: t.add_column("u INT"))),
    ("ALTER TABLE t RESET PARTITIONED BY", t(lambda t: t.reset_partitioned_by())),
    ("ALTER TABLE t SET PARTITIONED BY (id, bucket(3, e))", t(lambda t: t.set_partitioned_by("id", "bucket(3, e)"))),
    ("ALTER TABLE t SET PARTITIONED BY (ID, bucket(3, e))", t(lambda t: t.set_partitioned_by("ID", "bucket(3, E)"))),
    ("ALTER TABLE t RENAME id TO key", t(lambda t: t.rename_column("id", "key"))),
    ("ALTER TABLE t SET PARTITIONED BY (key)", t(lambda t: t.set_partitioned_by("key"))),
    ("ALTER TABLE t RESET PARTITIONED BY", t(lambda t: t.reset_partitioned_by())),
    ("ALTER TABLE t RESET PARTITIONED BY", t(lambda t: t.reset_partitioned_by())),
    (
        "ALTER TABLE t SET SORTED BY (e DESC, key+u NULLS FIRST, CASE WHEN e > 'it''s' THEN lower(e) END)",
        t(lambda t: t.set_sorted_by("e DESC", "key+u NULLS FIRST", "CASE WHEN `e` > 'it''s' THEN lower(e) END")),
    ),
    ('ALTER TABLE t RENAME e TO "E. ""e"', t(lambda t: t.rename_column("e", 'E. "e'))),
    ("ALTER TABLE t RENAME u TO v", t(lambda t: t.rename_column("u", "v"))),
    ("ALTER TABLE t RESET SORTED BY", t(lambda t: t.reset_sorted_by())),
    ("ALTER TABLE t RENAME TO t2", t(lambda t: t.rename("t2"))),
    ("DROP TABLE t2", lambda lake: lake.drop_table("t2")),
]  # fmt: skip


def test_the_rows_are_the_extensions(
    catalog: Catalog, spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    assert_same_catalogs(catalog, spark, tmp_path / "twin", request, CHANGES)


def some(table: Table, count: int, seed: int) -> DataFrame:
    """Rows of the columns that the table has now: with NULLs at every level, empty lists and maps."""
    rows = [tuple(_value(field.dataType, seed + row, row) for field in table.schema.fields[1:]) for row in range(count)]
    keyed = [(seed + row, *values) for row, values in enumerate(rows)]
    return table.lake.spark.createDataFrame(keyed, table.schema).coalesce(1)


def _value(kind: T.DataType, seed: int, row: int) -> Any:
    if (seed + row) % 5 == 4:
        return None
    match kind:
        case T.StructType():
            return tuple(_value(field.dataType, seed + place, row) for place, field in enumerate(kind.fields, 1))
        case T.ArrayType():
            return [_value(kind.elementType, seed + place, row) for place in range(row % 3)]
        case T.MapType():
            return {f"k'{place}": _value(kind.valueType, seed + place, row) for place in range(row % 3)}
        case T.DecimalType():
            return Decimal(seed) / 4
        case T.FloatType() | T.DoubleType():
            return seed / 8
        case T.DateType():
            return dt.date(1969, 12, 31) + dt.timedelta(days=seed)
        case T.StringType():
            return f"it's {seed} 😀"
        case _:
            return seed % 100


EVOLUTION: list[Callable[[Table], object]] = [
    lambda t: t.add_column("note STRING DEFAULT 'it\\'s'"),
    lambda t: t.add_column("s.n.y INT DEFAULT 7"),
    lambda t: t.add_column("l.element.c BIGINT DEFAULT 5"),
    lambda t: t.add_column("m.value.w STRING"),
    lambda t: t.rename_column("note", "remark"),
    lambda t: (t.rename_column("s.n.x", "xx"), t.rename_column("l.element.a", "aa"), t.rename_column("m.value.y", "yy")),
    lambda t: t.set_type("id", "BIGINT"),
    lambda t: (t.set_type("s.a", "INT"), t.set_type("s.n.xx", T.DoubleType())),
    lambda t: (t.drop_column("s.n.y"), t.drop_column("l.element.b"), t.drop_column("m.value.z"), t.drop_column("d")),
    lambda t: t.add_column("d STRING DEFAULT 'again'"),
    lambda t: (t.set_default("remark", "'new'"), t.drop_default("d"), t.drop_not_null("id")),
    lambda t: (t.set_partitioned_by("bucket(2, id)"), t.set_sorted_by("remark DESC", "lower(d)")),
    lambda t: t.rename_column("remark", "Remark ?"),
    lambda t: (t.reset_partitioned_by(), t.set_not_null("id")),
]  # fmt: skip


def evolve(table: Table) -> None:
    """Every change, and rows after each of them, by turns few (kept in the catalog) and many (in files)."""
    for number, change in enumerate(EVOLUTION):
        table.append(some(table, 3 if number % 2 else 12, 20 * number))
        change(table)
    table.append(some(table, 3, 1000))
    table.append(table.lake.spark.sql("SELECT 2000 AS id"), by_name=True)


def test_with_rows(catalog: Catalog, spark: SparkSession) -> None:
    """One change a snapshot, and all of them in one transaction: the same rows, which the extension goes on with."""
    with attached(catalog, spark) as lake:
        evolve(lake.create_table("t", NESTED))
        with lake.transaction():
            at_once = lake.create_table("at_once", NESTED)
            at_once.append(some(at_once, 12, 3000))
        with lake.transaction():
            evolve(at_once)
            made, expected = at_once.read().where("id < 3000"), lake.table("t").read()
            assert made.schema == expected.schema
            assert sorted(map(repr, made.collect())) == sorted(map(repr, expected.collect()))
            at_once.rename("once")
    with catalog.reference() as reference:
        if catalog.kind != "mysql":
            for table in ("t", "once"):
                reference.execute(
                    f"INSERT INTO {table} (id, l) VALUES (5000, [{{'aa': 1, 'c': NULL}}])",
                    f"ALTER TABLE {table} ADD COLUMN s.n.y VARCHAR DEFAULT 'back'",
                    f"ALTER TABLE {table} ALTER l SET TYPE STRUCT(aa BIGINT, c BIGINT)[]",
                    f"DELETE FROM {table} WHERE id % 3 = 0",
                    f"INSERT INTO {table} (id, \"remark ?\") SELECT 6000 + i, 'x' FROM range(20) r(i)",
                )
        history = record(reference, "t", "once")
    newest = max(version for _, version in history)
    every = 1 if catalog.kind == "duckdb" else 7
    assert_history(catalog, spark, {key: rows for key, rows in history.items() if (newest - key[1]) % every == 0})
