"""Initial defaults: what old rows show in a column that was added later, for every type and inside structs."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import penstock
from support.catalogs import Catalog
from support.compare import assert_same_tables
from support.lake_samples import NESTED, PRIMITIVES, storable_in_mysql

PLACES = pytest.mark.parametrize("inlined_rows", [0, 100], ids=["files", "inlined"])
HOSTILE_TEXTS = (
    "''",
    "'NULL'",
    "'null'",
    "'it''s'",
    "'\"q\"'",
    "'a\\b'",
    "'x, y'",
    "'😀'",
    "'{}'",
    "'\n'",
    "'CAST(1 AS INT)'",
)

# Days or microseconds since 1970 of dates and timestamps that Python has not; DuckDB's infinities are its ends.
FAR_TIMES = [
    ("DATE", "infinity", 2**31 - 1),
    ("DATE", "-infinity", 1 - 2**31),
    ("DATE", "0044-03-15 (BC)", -735160),
    ("DATE", "12000-01-01", 3663382),
    ("TIMESTAMP", "infinity", 2**63 - 1),
    ("TIMESTAMP", "-infinity", 1 - 2**63),
    ("TIMESTAMP", "0001-12-31 (BC) 23:59:59.999999", -62135596800000001),
    ("TIMESTAMP_S", "-infinity", 1 - 2**63),
    ("TIMESTAMP_MS", "infinity", 2**63 - 1),
    ("TIMESTAMPTZ", "-infinity", 1 - 2**63),
    ("TIMESTAMPTZ", "12000-01-01 02:00:00+02", 3663382 * 86_400_000_000),
]
SINCE_1970 = {"DATE": "unix_date({0})", "TIMESTAMPTZ": "unix_micros({0})"}


@PLACES
def test_initial_default_of_every_type(catalog: Catalog, spark: SparkSession, inlined_rows: int) -> None:
    with catalog.build(data_inlining_row_limit=inlined_rows) as reference:
        reference.execute("CREATE TABLE t (id INTEGER)", "INSERT INTO t VALUES (1), (2)")
        reference.execute("BEGIN")
        for sample in PRIMITIVES if catalog.inlines_every_value or not inlined_rows else storable_in_mysql(PRIMITIVES):
            for number, constant in enumerate(sample.constants):
                column = f"{sample.column}_{number} {sample.sql_type}"
                reference.execute(f"ALTER TABLE t ADD COLUMN {column} DEFAULT {constant}")
        reference.execute("COMMIT", "INSERT INTO t (id) VALUES (3)")
    assert_same_tables(catalog, spark, "t")


def test_texts_as_defaults(catalog: Catalog, spark: SparkSession) -> None:
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t (id INTEGER)", "INSERT INTO t VALUES (1)", "BEGIN")
        for number, text in enumerate(HOSTILE_TEXTS):
            reference.execute(f"ALTER TABLE t ADD COLUMN c{number} VARCHAR DEFAULT {text}")
        reference.execute("COMMIT")
    assert_same_tables(catalog, spark, "t")


def test_nested_columns_added_later(catalog: Catalog, spark: SparkSession) -> None:
    """The extension takes no default for a nested column: old rows show NULL."""
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t (id INTEGER)", "INSERT INTO t VALUES (1)", "BEGIN")
        for sample in NESTED:
            reference.execute(f"ALTER TABLE t ADD COLUMN {sample.column} {sample.sql_type}")
        reference.execute("COMMIT")
    assert_same_tables(catalog, spark, "t")


@PLACES
def test_defaults_inside_structs(catalog: Catalog, spark: SparkSession, inlined_rows: int) -> None:
    with catalog.build(data_inlining_row_limit=inlined_rows) as reference:
        reference.execute(
            "CREATE TABLE t (s STRUCT(a INTEGER), l STRUCT(a INTEGER)[])",
            "INSERT INTO t VALUES ({'a': 1}, [{'a': 1}, NULL]), (NULL, NULL), ({'a': NULL}, [])",
            "ALTER TABLE t ADD COLUMN s.text VARCHAR DEFAULT 'it''s'",
            "ALTER TABLE t ADD COLUMN s.number DECIMAL(10,2) DEFAULT 1.25",
            "ALTER TABLE t ADD COLUMN s.day DATE DEFAULT DATE '1969-12-31'",
            "ALTER TABLE t ADD COLUMN s.big UBIGINT DEFAULT 18446744073709551615",
            "ALTER TABLE t ADD COLUMN s.nothing VARCHAR",
            "ALTER TABLE t ADD COLUMN l.element.id UUID DEFAULT '00000000-0000-0000-0000-00000000000a'",
        )
    assert_same_tables(catalog, spark, "t")


@pytest.mark.parametrize("insert_first", [False, True])
def test_default_and_rows_of_one_transaction(file_catalog: Catalog, spark: SparkSession, insert_first: bool) -> None:
    """A file of the snapshot that added the column may or may not hold it: it is asked."""
    rows = "INSERT INTO t (id) SELECT i FROM range(20) r(i)"
    column = "ALTER TABLE t ADD COLUMN b BLOB DEFAULT 'x'"
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t (id INTEGER)", "INSERT INTO t VALUES (100)", "BEGIN")
        reference.execute(*((rows, column) if insert_first else (column, rows)), "COMMIT")
    assert_same_tables(file_catalog, spark, "t")


def test_times_that_python_does_not_have(file_catalog: Catalog, spark: SparkSession) -> None:
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE TABLE t (id INTEGER, s STRUCT(a INTEGER))", "INSERT INTO t VALUES (1, {'a': 1})", "BEGIN"
        )
        for number, (kind, text, _) in enumerate(FAR_TIMES):
            reference.execute(f"ALTER TABLE t ADD COLUMN c{number} {kind} DEFAULT '{text}'")
        reference.execute("ALTER TABLE t ADD COLUMN s.day DATE DEFAULT 'infinity'", "COMMIT")
    local = "timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', {0})"
    numbers = [SINCE_1970.get(kind, local).format(f"c{number}") for number, (kind, *_) in enumerate(FAR_TIMES)]
    with penstock.attach(file_catalog.uri, read_only=True, spark=spark) as lake:
        [row] = lake.table("t").read().selectExpr(*numbers, "unix_date(s.day)").collect()
    assert list(row) == [*(number for *_, number in FAR_TIMES), 2**31 - 1]
