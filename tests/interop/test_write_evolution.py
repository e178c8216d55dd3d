"""Columns, partitionings and sort orders that change here, with rows before and after: the extension follows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812

from penstock import InvalidError, Lake, NotFoundError, PenstockError, Table, UnsupportedError
from support.catalogs import Catalog
from support.compare import assert_history, assert_same_tables, record
from support.reference import METADATA, Reference, quote
from support.side_by_side import Step, assert_same_catalogs
from support.writing import attached, files_of

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
    ("ALTER TABLE t ADD u STRUCT(q INT[], z UUID)", t(lambda t: t.add_column("u STRUCT<q: ARRAY<INT>, z: UUID>"))),
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
    (
        "INSERT INTO t (id) SELECT i FROM range(20) r(i)",
        t(lambda t: t.append(t._attachment.spark.range(0, 20, 1, 1).selectExpr("int(id) AS id"), by_name=True)),
    ),
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
    return table._attachment.spark.createDataFrame(keyed, table.schema).coalesce(1)


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
        case T.BooleanType():
            return seed % 2 == 0
        case T.BinaryType():
            return bytes([seed % 256, 0])
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
    lambda t: (t.rename_column("s.n.x", "xx"), t.rename_column("l.element.a", "aa")),
    lambda t: t.rename_column("m.value.y", "yy"),
    lambda t: t.set_type("id", "BIGINT"),
    lambda t: (t.set_type("s.a", "INT"), t.set_type("s.n.xx", T.DoubleType())),
    lambda t: (t.drop_column("s.n.y"), t.drop_column("l.element.b"), t.drop_column("m.value.z"), t.drop_column("d")),
    lambda t: t.add_column("d STRING DEFAULT 'again'"),
    lambda t: (t.set_default("remark", "'new'"), t.drop_default("d"), t.drop_not_null("id")),
    lambda t: (t.set_partitioned_by("bucket(2, id)"), t.set_sorted_by("remark DESC", "lower(d)")),
    lambda t: t.rename_column("remark", "Remark ?"),
    lambda t: (t.reset_partitioned_by(), t.set_not_null("id"), t.add_column("flag BOOLEAN DEFAULT true")),
]  # fmt: skip


def evolve(table: Table, step: int) -> None:
    """Every change, and rows before each `step`th, by turns few (kept in the catalog) and many (in files)."""
    for number, change in enumerate(EVOLUTION):
        if number % step == 0:
            table.append(some(table, 3 if number % 2 else 12, 20 * number))
        change(table)
    table.append(some(table, 3, 1000))
    table.append(table._attachment.spark.sql("SELECT 2000 AS id"), by_name=True)


@pytest.mark.one_catalog
@pytest.mark.slow
def test_with_rows(catalog: Catalog, spark: SparkSession) -> None:
    """One change a snapshot, and all of them in one transaction: the same rows, which the extension goes on with."""
    step, seen = (
        (1, 3) if catalog.kind == "duckdb" else (3, 15)
    )  # in the others, what differs is what the catalog holds
    with attached(catalog, spark) as lake:
        evolve(lake.create_table("t", NESTED), step)
        with lake.transaction():
            at_once = lake.create_table("at_once", NESTED)
            at_once.append(some(at_once, 12, 3000))
        with lake.transaction():
            evolve(at_once, step)
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
    assert_history(catalog, spark, {key: rows for key, rows in history.items() if (newest - key[1]) % seen == 0})


def test_made_and_changed_in_one_transaction(duckdb_catalog: Catalog, spark: SparkSession) -> None:
    """Files under names, types and columns that no snapshot ever showed."""
    with attached(duckdb_catalog, spark) as lake:
        with lake.transaction():
            table = lake.create_table("t", "id INT, u UINT8, a INT")
            table.append(spark.sql("SELECT id, id % 7, id FROM range(0, 12, 1, 1)"))
            table.add_column("b BINARY DEFAULT X'AA'")
            table.add_column("s STRUCT<x: INT>")
            table.append(some(table, 12, 100))
            table.add_column("s.y INT DEFAULT 9")
            table.set_type("u", "UINT64")
            table.rename_column("a", "c")
            table.add_column("a STRING DEFAULT 'd'")
            table.add_column("z INT")
            table.append(some(table, 12, 200))
            table.drop_column("z")
            for old, new in (("a", "e"), ("c", "a"), ("e", "c")):
                table.rename_column(old, new)
            inside = sorted(map(repr, table.read().collect()))
        assert sorted(map(repr, table.read().collect())) == inside
        assert table.read().where("c = 'd'").count() == 24
        table.add_column("z INT DEFAULT 1")
        assert table.read().where("z = 1").count() == 36
    with duckdb_catalog.reference() as reference:
        reference.execute("ALTER TABLE t ADD COLUMN w INTEGER", "UPDATE t SET a = a + 1", "DELETE FROM t WHERE id < 5")
    assert_same_tables(duckdb_catalog, spark, "t")


def test_encrypted_files_wait_for_the_next_transaction(duckdb_catalog: Catalog, spark: SparkSession) -> None:
    with attached(duckdb_catalog, spark, encrypted=True) as lake:
        table = lake.create_table("t", "id BIGINT")
        with lake.transaction():
            table.append(spark.range(12))
            with pytest.raises(UnsupportedError, match="end it, and change the columns in the next one"):
                table.rename_column("id", "key")
        table.rename_column("id", "key")
        assert table.read().where("key > 8").count() == 3


PROMOTIONS = {
    "TINYINT": ("SMALLINT", "INT", "BIGINT"), "SMALLINT": ("INT", "BIGINT"), "INT": ("BIGINT",),
    "UINT8": ("UINT16", "UINT32", "UINT64"), "UINT16": ("UINT32", "UINT64"), "UINT32": ("UINT64",),
    "FLOAT": ("DOUBLE",),
}  # fmt: skip
EXTREMES: dict[str, tuple[Any, ...]] = {
    "TINYINT": (-128, 127), "SMALLINT": (-(2**15), 2**15 - 1), "INT": (-(2**31), 2**31 - 1),
    "BIGINT": (-(2**63), 2**63 - 1), "UINT8": (0, 255), "UINT16": (0, 2**16 - 1), "UINT32": (0, 2**32 - 1),
    "UINT64": (Decimal(0), Decimal(2**64 - 1)), "FLOAT": (-0.0, 1.1754943508222875e-38), "DOUBLE": (5e-324, 1.5e308),
}  # fmt: skip


@pytest.mark.one_catalog
def test_every_promotion(catalog: Catalog, spark: SparkSession) -> None:
    """Columns and fields of lists, with rows before and after, in the catalog and in files, all in one transaction."""
    pairs = [(old, new) for old, wider in PROMOTIONS.items() for new in wider]
    kinds = {"BEFORE": [old for old, _ in pairs], "AFTER": [new for _, new in pairs]}

    def rows(table: Table, when: str, count: int) -> DataFrame:
        values = [[EXTREMES[kind][i % 2] for kind in kinds[when]] for i in range(2)]
        shown = [(*row, [row]) for row in [*values, [None] * len(pairs)]]
        return spark.createDataFrame((shown * count)[:count], table.schema).coalesce(1)

    fields = [f"c{n} {kind}" for n, kind in enumerate(kinds["BEFORE"])]
    nested = ", ".join(field.replace(" ", ": ") for field in fields)
    with attached(catalog, spark) as lake:
        table = lake.create_table("t", f"{', '.join(fields)}, l ARRAY<STRUCT<{nested}>>")
        table.append(rows(table, "BEFORE", 12))
        with lake.transaction():
            table.append(rows(table, "BEFORE", 3))
            table.append(rows(table, "BEFORE", 12))
            for number, (_, new) in enumerate(pairs):
                table.set_type(f"c{number}", new)
                table.set_type(f"l.element.c{number}", new)
            table.append(rows(table, "AFTER", 3))
            table.append(rows(table, "AFTER", 12))
            inside = sorted(map(repr, table.read().collect()))
        assert sorted(map(repr, table.read().collect())) == inside
    assert_same_tables(catalog, spark, "t")


TABLE = """id INT NOT NULL, n INT, s STRUCT<a: INT, b: STRUCT<c: INT>>, l ARRAY<STRUCT<a: INT, b: INT>>,
           m MAP<STRUCT<k: INT, o: INT>, INT>, g STRING, d DATE, u UINT8, b BOOLEAN, f DOUBLE, e DECIMAL(5,2),
           o STRUCT<only: INT>"""
ILLEGAL: list[tuple[Callable[[Table], object], str, type[PenstockError]]] = [
    (lambda t: t.add_column("N INT"), "N cannot get this name: 'n' has it", InvalidError),
    (lambda t: t.add_column("s.A INT"), "s.A cannot get this name", InvalidError),
    (lambda t: t.add_column("x INT, y INT"), "one at a time", InvalidError),
    (lambda t: t.add_column("x NOPE"), "not a list of columns", InvalidError),
    (lambda t: t.add_column("row_id INT"), "'row_id' is reserved", InvalidError),
    (lambda t: t.add_column("x INT NOT NULL"), "without a default: the table has rows", InvalidError),
    (lambda t: t.add_column("s.x INT NOT NULL"), "NOT NULL for whole columns only", InvalidError),
    (lambda t: t.add_column("x TIMESTAMP DEFAULT now()"), "not constant", InvalidError),
    (lambda t: t.add_column("x INT DEFAULT 'abc'"), "is no int32", InvalidError),
    (lambda t: t.add_column("x ARRAY<INT> DEFAULT array(1)"), "no defaults for nested types", UnsupportedError),
    (lambda t: t.add_column("l.x INT"), "l is a list, not a struct; .* are at l.element", InvalidError),
    (lambda t: t.add_column("m.key.x INT"), "part of the key of the map m", InvalidError),
    (lambda t: t.add_column("n.x INT"), "n is a int32, not a struct", InvalidError),
    (lambda t: t.add_column("nope.x INT"), "there is no column 'nope'", NotFoundError),
    (lambda t: t.drop_column("nope"), "there is no column 'nope'; there are id, n", NotFoundError),
    (lambda t: t.drop_column("s.nope"), "s has no field 'nope'; there are a, b", NotFoundError),
    (lambda t: t.drop_column("o.only"), "it is all that the struct o has", InvalidError),
    (lambda t: t.drop_column("m.key.k"), "part of the key of the map m", InvalidError),
    (lambda t: t.drop_column("l.element"), "not a struct", InvalidError),
    (lambda t: t.drop_column("g"), "the table is partitioned by it; call reset_partitioned_by", InvalidError),
    (lambda t: t.drop_column("n"), "the table is sorted by it; call reset_sorted_by", InvalidError),
    (lambda t: t.drop_column("d"), "the table is sorted by it", InvalidError),
    (lambda t: t.rename_column("n", "ID"), "ID cannot get this name", InvalidError),
    (lambda t: t.rename_column("n", ""), "cannot be the name of a column", InvalidError),
    (lambda t: t.rename_column("s.a", "b"), "s.b cannot get this name", InvalidError),
    (lambda t: t.rename_column("l.element", "x"), "not a struct", InvalidError),
    (lambda t: t.rename_column("m.key", "x"), "not a struct", InvalidError),
    (lambda t: t.rename_column("n", "begin_snapshot"), "reserved", InvalidError),
    (lambda t: t.rename_column("nope", "x"), "there is no column 'nope'", NotFoundError),
    (lambda t: t.set_type("n", "SMALLINT"), "int32 cannot become int16: it can become int64", InvalidError),
    (lambda t: t.set_type("n", "DOUBLE"), "int32 cannot become float64", InvalidError),
    (lambda t: t.set_type("n", "DECIMAL(10,0)"), r"int32 cannot become decimal\(10,0\)", InvalidError),
    (lambda t: t.set_type("n", "STRING"), "int32 cannot become varchar", InvalidError),
    (lambda t: t.set_type("u", "SMALLINT"), "uint8 cannot become int16: it can become uint16", InvalidError),
    (lambda t: t.set_type("b", "INT"), "boolean cannot become int32: the type of a column of boolean", InvalidError),
    (lambda t: t.set_type("f", "FLOAT"), "float64 cannot become float32", InvalidError),
    (lambda t: t.set_type("d", "TIMESTAMP_NTZ"), "date cannot become timestamp", InvalidError),
    (lambda t: t.set_type("e", "DECIMAL(7,2)"), r"decimal\(5,2\) cannot become decimal\(7,2\)", InvalidError),
    (lambda t: t.set_type("g", "JSON"), "varchar cannot become json", InvalidError),
    (lambda t: t.set_type("s.b.c", "STRING"), "the type of s.b.c cannot be changed", InvalidError),
    (lambda t: t.set_type("s", "STRUCT<a: STRING, b: STRUCT<c: INT>>"), "the type of s.a cannot be", InvalidError),
    (lambda t: t.set_type("m", "MAP<STRUCT<k: INT>, INT>"), "they are the key of a map", InvalidError),
    (lambda t: t.set_type("l", "ARRAY<INT>"), "l.element cannot be changed: struct cannot become int32", InvalidError),
    (lambda t: t.set_type("n", "NOPE"), "NOPE", InvalidError),
    (lambda t: t.set_not_null("n"), "n cannot be NOT NULL: it holds NULLs", InvalidError),
    (lambda t: t.set_not_null("id"), "id is NOT NULL already", InvalidError),
    (lambda t: t.set_not_null("s.a"), "NOT NULL for whole columns only", InvalidError),
    (lambda t: t.drop_not_null("n"), "n has no NOT NULL to drop", InvalidError),
    (lambda t: t.set_default("n", "'x'"), "is no int32", InvalidError),
    (lambda t: t.set_default("n", "nope(1)"), "neither a constant of Spark's nor", InvalidError),
    (lambda t: t.set_default("s", "named_struct('a', 1)"), "no defaults for nested types", UnsupportedError),
    (lambda t: t.set_partitioned_by("nope"), "no column 'nope'", NotFoundError),
    (lambda t: t.set_partitioned_by("s.a"), "whole columns", InvalidError),
    (lambda t: t.set_partitioned_by("year(n)"), "year", InvalidError),
    (lambda t: t.set_partitioned_by("g", "G"), "leave one out", InvalidError),
    (lambda t: t.set_sorted_by("nope"), "no column 'nope'", InvalidError),
    (lambda t: t.set_sorted_by("s.a"), "whole columns", InvalidError),
    (lambda t: t.set_sorted_by("n UPWARDS"), "not an expression", InvalidError),
]  # fmt: skip


def test_illegal_changes_change_nothing(duckdb_catalog: Catalog, spark: SparkSession) -> None:
    with attached(duckdb_catalog, spark) as lake:
        table = lake.create_table("t", TABLE, partitioned_by=["g"], sorted_by=["n", "d IS NULL"])
        table.append(spark.sql("SELECT 1 AS id"), by_name=True)
        table.append(spark.sql("SELECT 1 AS id, 2 AS n FROM range(0, 12, 1, 1)"), by_name=True)
        before, files = lake.current_snapshot(), files_of(duckdb_catalog)
        for change, why, kind in ILLEGAL:
            with pytest.raises(kind, match=why):
                change(table)
        with lake.transaction():
            for change, _, kind in ILLEGAL[::3]:
                with pytest.raises(kind):
                    change(table)
        assert (lake.current_snapshot(), files_of(duckdb_catalog)) == (before, files)
        table.overwrite(table.read().where("n > 1"))
        table.set_not_null("n")
        with pytest.raises(InvalidError, match="n"):
            table.append(spark.sql("SELECT 1 AS id"), by_name=True)
    with duckdb_catalog.reference() as reference:
        with pytest.raises(duckdb.ConstraintException, match="NOT NULL"):
            reference.execute("INSERT INTO t (id) VALUES (1)")
        assert reference.value("SELECT count(*) FROM t") == 12


@pytest.mark.slow
def test_partitions_and_orders_with_rows(duckdb_catalog: Catalog, spark: SparkSession) -> None:
    """Old files keep their partitioning; new ones are split and sorted by the newest, as the extension does it too."""
    rows = spark.sql(
        "SELECT id, concat('r', id % 2) AS region, timestampadd(DAY, 20 * id, timestamp_ntz'1969-11-15') AS ts"
        " FROM range(0, 12, 1, 1)"
    )
    changes: list[Callable[[Table], object]] = [
        lambda t: t.set_partitioned_by("region", "month(ts)"),
        lambda t: (t.rename_column("region", "place / %"), t.set_sorted_by("id % 3 DESC", "ts DESC")),
        lambda t: (t.set_partitioned_by("bucket(3, id)"), t.rename_column("id", "key")),
        lambda t: (t.set_type("key", "BIGINT"), t.reset_partitioned_by(), t.set_sorted_by("`place / %` DESC", "key")),
        lambda t: t.reset_sorted_by(),
    ]
    for number, change in enumerate(changes):
        with attached(duckdb_catalog, spark) as lake:
            table = lake.table("t") if number else lake.create_table("t", "id INT, region STRING, ts TIMESTAMP_NTZ")
            table.append(rows)
            with lake.transaction():
                change(table)
                table.append(rows)
        with duckdb_catalog.reference() as reference:
            reference.execute("INSERT INTO t FROM t LIMIT 12")
            made = {version: _files(reference, version) for version in _latest(reference, 2)}
            assert len(set(map(repr, made.values()))) == 1, made
    assert_same_tables(duckdb_catalog, spark, "t")


def _latest(reference: Reference, count: int) -> list[int]:
    newest = f"SELECT DISTINCT begin_snapshot FROM {METADATA}.ducklake_data_file ORDER BY 1 DESC LIMIT {count}"
    return [version for (version,) in reference.rows(newest)]


def _files(reference: Reference, version: int) -> list[Any]:
    """The files of a snapshot: their directories, partition values and rows."""
    found = reference.rows(
        "SELECT data_file_id, path, (SELECT list(partition_value ORDER BY partition_key_index) FROM"
        f" {METADATA}.ducklake_file_partition_value v WHERE v.data_file_id = f.data_file_id)"
        f" FROM {METADATA}.ducklake_data_file f WHERE begin_snapshot = {version}"
    )
    root = reference.value(f"SELECT value FROM {METADATA}.ducklake_metadata WHERE key = 'data_path'") + "main/t/"
    rows = [reference.rows(f"FROM read_parquet({quote(root + path)})") for _, path, _ in found]
    return sorted([path.rpartition("/")[0], values, held] for (_, path, values), held in zip(found, rows, strict=True))
