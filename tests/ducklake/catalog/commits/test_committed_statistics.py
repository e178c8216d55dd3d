"""The statistics of whole tables: those of the extension where it is right, and never such that DuckDB loses rows."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.ducklake.catalog.commits import staged_tables as staged_tables
from penstock.ducklake.catalog.commits.staged_files import add_files, add_inlined
from penstock.ducklake.catalog.inlined_storage import inlined_statistics
from penstock.ducklake.model import schema_evolution
from penstock.ducklake.model.bounding_boxes import merged_extra
from penstock.ducklake.model.table_statistics import TableColumnStatistics, first_statistics, merged_statistics
from penstock.ducklake.transaction import Transaction
from penstock.schema.columns import Column
from penstock.schema.statistics import ColumnStatistics
from penstock.schema.types import Type, parse_type
from penstock.storage.parquet import FileOptions, WritePlan, write_files
from support.catalogs import Catalog, DuckDBCatalog
from support.reference import METADATA, Reference
from support.writers import Writer

Row = dict[str, Any]
NAN = math.nan
COLUMNS = tuple(
    Column(id, name, parse_type(type), 0, children=children)
    for id, name, type, children in (
        (1, "i", "int32", ()),
        (2, "f", "float64", ()),
        (3, "s", "varchar", ()),
        (4, "b", "boolean", ()),
        (5, "ts", "timestamp", ()),
        (6, "d", "decimal(38,10)", ()),
        (7, "x", "blob", ()),
        (8, "st", "struct", (Column(9, "a", Type("int32"), 0),)),
        (10, "l", "list", (Column(11, "element", Type("int32"), 0),)),
        (12, "dt", "date", ()),
        (13, "g", "float32", ()),
    )
)
DDL = """CREATE TABLE t (i INT, f DOUBLE, s VARCHAR, b BOOLEAN, ts TIMESTAMP, d DECIMAL(38,10), x BLOB,
         st STRUCT(a INT), l INT[], dt DATE, g FLOAT)"""
SCHEMA = pa.schema(
    [
        ("i", pa.int32()),
        ("f", pa.float64()),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("ts", pa.timestamp("us")),
        ("d", pa.decimal128(38, 10)),
        ("x", pa.binary()),
        ("st", pa.struct([("a", pa.int32())])),
        ("l", pa.list_(pa.int32())),
        ("dt", pa.date32()),
        ("g", pa.float32()),
    ]
)
FLOATS = (2, 13)

PLAIN: Row = {
    "i": 5, "f": 1.5, "s": "m", "b": True, "ts": datetime(1969, 12, 31, 23, 59, 59, 999999),
    "d": Decimal("123456789012345678901234567.0000000001"), "x": b"\xaa\x00b", "st": {"a": 1}, "l": [1, 2],
    "dt": date(1, 1, 1), "g": 1.25,
}  # fmt: skip
SMALL: Row = {
    "i": -7, "f": -0.0, "s": "", "b": False, "ts": datetime(9999, 12, 31), "d": Decimal("-0.5"), "x": b"",
    "st": {"a": None}, "l": [], "dt": date(9999, 12, 31), "g": -0.0,
}  # fmt: skip
ODD: Row = {
    "i": 100, "f": NAN, "s": "z'\"€😀", "d": Decimal(9), "x": b"\xff", "l": [None, 9], "dt": date(1969, 1, 1), "g": NAN,
}  # fmt: skip
LONG: Row = {"f": math.inf, "g": -math.inf, "s": "x" * 300}
ENDLESS: Row = {"s": "é" * 200}  # no text of 256 bytes is above it
NUL: Row = {"s": "\0a"}
EMPTY: Row = {}

# Sets of rows: up to ten are inlined, more are in a file.
CASES: dict[str, list[list[Row]]] = {
    "mixed": [[PLAIN], [SMALL] * 12, [ODD], [EMPTY], [LONG]],
    "NULLs first": [[EMPTY], [EMPTY] * 12, [PLAIN], [ODD] * 12],
    "NULLs last": [[PLAIN] * 11, [EMPTY] * 12, [EMPTY]],
    "NaN first": [[ODD], [ODD] * 12, [PLAIN]],
    "NaN in a file first": [[ODD] * 12, [PLAIN]],
    "NUL first": [[NUL], [PLAIN]],
    "NUL in a file": [[NUL] * 11, [PLAIN], [NUL]],
    "no upper bound": [[ENDLESS] * 11, [PLAIN]],
    "no upper bound later": [[PLAIN], [ENDLESS] * 11, [SMALL]],
}
# Of these the extension's own bounds do not hold for all values.
WRONG = {("NUL first", 3), ("NUL in a file", 3)}


def table_of(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist([{name: row.get(name) for name in SCHEMA.names} for row in rows], SCHEMA)


def stage(writer: Writer, transaction: Transaction, columns: tuple[Column, ...], rows: pa.Table) -> None:
    table = writer.table(transaction, "t")
    if rows.num_rows <= 10:
        add_inlined(transaction.staging, table.id, columns, rows, inlined_statistics(columns, rows))
        return
    files = list(write_files(WritePlan(columns, table.path, FileOptions()), rows.to_batches()))
    add_files(transaction.staging, table.id, None, files)


def write(catalog: Catalog, rows: Sequence[Row]) -> None:
    with Writer(catalog.uri, catalog.data_path) as writer, writer.transaction() as transaction:
        stage(writer, transaction, COLUMNS, table_of(rows))


def insert(reference: Reference, rows: Sequence[Row]) -> None:
    reference.connection.register("new_rows", table_of(rows))
    reference.execute("INSERT INTO t FROM new_rows")
    reference.connection.unregister("new_rows")


def statistics(reference: Reference) -> dict[int, tuple[Any, ...]]:
    columns = "column_id, contains_null, contains_nan, min_value, max_value"
    rows = reference.rows(f"SELECT {columns} FROM {METADATA}.ducklake_table_column_stats")
    return {id: tuple(values) for id, *values in rows}


def predicates() -> Iterator[tuple[str, Any]]:
    for row in (PLAIN, SMALL, ODD, {**LONG, **ENDLESS}, {"f": 100.0, "i": 50, "s": "n"}):
        for name, value in row.items():
            if name not in ("st", "l"):
                yield from ((f"{name} {operator} $1", value) for operator in ("=", "<", ">"))


def counts(reference: Reference, source: str, predicates: Sequence[tuple[str, Any]]) -> list[int]:
    """How many rows each predicate finds: one statement, in which each has a scan of its own."""
    scans = (
        f"SELECT {number} AS number, count(*) AS found FROM {source} WHERE {where.replace('$1', f'${number}')}"
        for number, (where, _) in enumerate(predicates, 1)
    )
    union = f"SELECT found FROM ({' UNION ALL '.join(scans)}) ORDER BY number"
    found = reference.connection.execute(union, [value for _, value in predicates]).fetchall()
    return [count for (count,) in found]


def assert_filters(reference: Reference, rows: Sequence[Row], *, blobs: bool = True) -> None:
    """DuckDB finds in the lake what it finds in a table of its own with the same rows."""
    reference.connection.register("all_rows", table_of(rows))
    reference.execute("CREATE OR REPLACE TEMP TABLE raw AS FROM all_rows", "BEGIN")
    asked = [(where, value) for where, value in predicates() if blobs or not isinstance(value, bytes)]
    found, expected = (counts(reference, source, asked) for source in ("t", "raw"))
    for predicate, ours, theirs in zip(asked, found, expected, strict=True):
        assert ours == theirs, predicate
    nulls = ", ".join(f"count({name})" for name in (*SCHEMA.names, "st.a"))
    assert reference.rows(f"SELECT {nulls} FROM t") == reference.rows(f"SELECT {nulls} FROM raw")
    reference.execute("COMMIT")


@pytest.mark.parametrize("case", CASES)
def test_statistics_are_the_extensions_and_filters_are_answered_right(case: str, tmp_path: Path) -> None:
    ours, theirs = (DuckDBCatalog(tmp_path / name) for name in ("ours", "theirs"))
    for catalog in (ours, theirs):
        catalog.directory.mkdir()
    with Writer(ours.uri, ours.data_path) as writer:
        writer.create_table("t", COLUMNS)
    for rows in CASES[case]:
        write(ours, rows)
    with theirs.reference() as reference:
        reference.execute(DDL)
        for rows in CASES[case]:
            insert(reference, rows)
        expected = statistics(reference)
    with ours.reference() as reference:
        made = statistics(reference)
        assert_filters(reference, [row for rows in CASES[case] for row in rows])
    assert made.keys() <= expected.keys()
    for id in made:
        if id not in FLOATS and (case, id) not in WRONG:  # the extension does not note a NaN
            assert made[id] == expected[id], id


@pytest.mark.parametrize("case", ["mixed", "NULLs first", "NaN first", "no upper bound later"])
def test_both_write_by_turns(case: str, duckdb_catalog: Catalog) -> None:
    steps = CASES[case]
    with duckdb_catalog.reference() as reference:
        reference.execute(DDL)
    for position, rows in enumerate(steps):
        if position % 2:
            write(duckdb_catalog, rows)
        else:
            with duckdb_catalog.reference() as reference:
                insert(reference, rows)
    with duckdb_catalog.reference() as reference:
        # DuckDB does not find blobs in files that it wrote itself.
        assert_filters(reference, [row for rows in steps for row in rows], blobs=False)
        assert reference.rows(f"SELECT record_count, next_row_id FROM {METADATA}.ducklake_table_stats") == [
            (sum(map(len, steps)),) * 2
        ]


def test_texts_with_a_nul_in_every_database(catalog: Catalog) -> None:
    """Not every database takes them in its own texts."""
    column = (Column(1, "s", Type("varchar"), 0),)
    values = ["b", "\0a", "c\0"]
    with Writer(catalog.uri, catalog.data_path) as writer:
        writer.create_table("t", column)
        for rows in (pa.table({"s": values * 4}), pa.table({"s": values})):
            with writer.transaction() as transaction:
                stage(writer, transaction, column, rows)
    with catalog.reference() as reference:
        assert reference.rows("SELECT s, count(*) FROM t GROUP BY s ORDER BY s") == [
            (value, 5) for value in sorted(values)
        ]
        for where in ("s < 'a'", "s > 'c'", "s = 'b'"):
            assert reference.value(f"SELECT count(*) FROM t WHERE {where}") == 5


@pytest.mark.parametrize("rows_before", [0, 12])
def test_columns_that_are_added_between_rows(rows_before: int, duckdb_catalog: Catalog) -> None:
    """What the rows before them show is not in their statistics, so that there must not be any."""
    first_column = (Column(1, "id", Type("int64"), 0),)
    with Writer(duckdb_catalog.uri, duckdb_catalog.data_path) as writer:
        writer.create_table("t", first_column)
        if rows_before:
            writer.append_file("t", *range(rows_before))
        with writer.transaction() as transaction:
            writer.stage_file(transaction, "t", *range(100, 112))
            added = schema_evolution.add_column(
                first_column, 2, (), Column(0, "n", Type("int32"), 0, True, "5", "5", "literal", "duckdb"),
                has_rows=True, inlining=True,
            )  # fmt: skip
            table_id = writer.table(transaction, "t").id
            staged_tables.evolve_columns(transaction.staging, table_id, added)
            stage(
                writer,
                transaction,
                added.columns,
                pa.table({"id": pa.array([200] * 12), "n": pa.array([7] * 12, pa.int32())}),
            )
    with duckdb_catalog.reference() as reference:
        assert list(statistics(reference)) == [1]
        assert reference.rows("SELECT n, count(*) FROM t GROUP BY n ORDER BY n") == [(5, 12 + rows_before), (7, 12)]
        for where, count in (("n = 5", 12 + rows_before), ("n = 7", 12), ("n < 6", 12 + rows_before)):
            assert reference.value(f"SELECT count(*) FROM t WHERE {where}") == count


def known(low: str | None, high: str | None, *, null: bool = False, nan: bool | None = None) -> TableColumnStatistics:
    return TableColumnStatistics(1, null, nan, low, high)


def rows_of(
    low: str | None, high: str | None, values: int = 1, nulls: int = 0, nan: bool | None = None
) -> ColumnStatistics:
    return ColumnStatistics(1, value_count=values, null_count=nulls, minimum=low, maximum=high, contains_nan=nan)


@pytest.mark.parametrize(
    ("type", "before", "new", "expected"),
    [
        ("int64", known("-9", "10"), rows_of("-10", "9"), known("-10", "10")),
        ("int64", known("5", "5"), rows_of(None, None, 0, 3), known("5", "5", null=True)),
        ("int64", known(None, None, null=True), rows_of("5", "6"), known("5", "6", null=True)),
        ("varchar", known(None, None), rows_of("a", "b"), None),
        ("varchar", known("a", "b"), rows_of(None, None), None),
        ("varchar", known("Z", "a"), rows_of("", "é"), known("", "é")),
        ("varchar", known("a", None), rows_of("b", "c"), known("a", None)),
        ("boolean", known("1", "1"), rows_of("false", "false"), known("false", "1")),
        ("decimal(38,2)", known("-1.50", "9.00"), rows_of("-10.00", "10.00"), known("-10.00", "10.00")),
        ("float64", known("-0.0", "1e+30"), rows_of("-inf", "2.5"), known("-inf", "1e+30")),
        ("float64", known("1.0", "1.0", nan=False), rows_of(None, None, nan=True), known("1.0", "1.0", nan=True)),
        ("float64", known("1.0", "nan").without_nan(), rows_of("2.0", "2.0", nan=False), known("1.0", None, nan=True)),
        ("float64", known("nan", "nan").without_nan(), rows_of("2.0", "2.0"), known("2.0", "2.0", nan=True)),
        ("date", known("10000-01-01", "10000-01-01"), rows_of("2024-01-01", "2024-01-01"),
         known("2024-01-01", "10000-01-01")),
        ("timestamp", known("0020-01-01 00:00:00", "0020-01-01 00:00:00"),
         rows_of("0044-03-15 (BC) 01:02:03.5", "0044-03-15 (BC) 01:02:03.5"),
         known("0044-03-15 (BC) 01:02:03.5", "0020-01-01 00:00:00")),
        ("timestamp", known("-infinity", "2024-01-01 00:00:00"), rows_of("2024-01-01 00:00:00.5", "infinity"),
         known("-infinity", "infinity")),
    ],
)  # fmt: skip
def test_merging(
    type: str, before: TableColumnStatistics, new: ColumnStatistics, expected: TableColumnStatistics | None
) -> None:
    assert merged_statistics(before, new, parse_type(type)) == expected


def test_rows_without_bounds_say_nothing() -> None:
    assert first_statistics(rows_of(None, None), Type("varchar")) is None
    assert first_statistics(rows_of(None, None, 0, 5), Type("varchar")) == known(None, None, null=True)
    assert first_statistics(rows_of(None, None), Type("interval")) == known(None, None)


def test_paths_of_variants_are_merged_as_the_extension_merges_them(duckdb_catalog: Catalog) -> None:
    """What every file shreds as the same type stays; the rest goes, and never comes back."""
    alike = ["{'a': 1, 'b': 'x', 'f': 1.5::DOUBLE}", "{'a': -30, 'b': 'Z', 'f': -1e9::DOUBLE}"]
    columns = {
        "alike": [*alike, "{'a': 5, 'b': 'é', 'f': 'nan'::DOUBLE}", "{'a': NULL, 'b': 'y', 'f': 0::DOUBLE}"],
        "fewer": [*alike, "{'a': 7}", "{'a': 8, 'b': 'q'}"],
        "other": ["{'a': 1}", "{'a': 'text'}", "{'a': 2}", "{'a': 3}"],
        "whole": ["1", "9", "NULL", "-10"],
        "times": ["DATE '0001-01-01'", "DATE 'infinity'", "DATE '2024-01-01'", "DATE '0044-03-15 (BC)'"],
    }
    with duckdb_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(f"CREATE TABLE t ({', '.join(f'{name} VARIANT' for name in columns)})")
        for values in zip(*columns.values(), strict=True):
            reference.execute(f"INSERT INTO t VALUES ({', '.join(f'({value})::VARIANT' for value in values)})")
        files = reference.rows(
            "SELECT column_id, value_count, null_count, extra_stats"
            f" FROM {METADATA}.ducklake_file_column_stats ORDER BY data_file_id"
        )
        theirs = dict(
            reference.rows(f"SELECT column_id, extra_stats FROM {METADATA}.ducklake_table_column_stats ORDER BY 1")
        )
    ours: dict[int, TableColumnStatistics | None] = {}
    for column_id, values, nulls, extra in files:
        new = ColumnStatistics(column_id, value_count=values, null_count=nulls, extra=extra)
        so_far = ours.get(column_id)
        ours[column_id] = (
            merged_statistics(so_far, new, Type("variant")) if so_far else first_statistics(new, Type("variant"))
        )
    assert len(theirs) == len(columns)
    for column_id, extra in theirs.items():
        found = ours[column_id]
        assert found is not None
        assert _paths(found.extra) == _paths(extra)


def _paths(extra: str | None) -> list[dict[str, Any]]:
    return sorted(json.loads(extra), key=lambda path: str(path["field_name"])) if extra else []


def test_boxes_are_merged() -> None:
    left = '{"bbox": {"xmin": -1.500000, "xmax": 2.000000, "zmin": null, "zmax": null}, "types": ["point"]}'
    right = (
        '{"bbox": {"xmin": 0.000001, "xmax": 1234567890123456.5, "zmin": 1.0, "zmax": 2.0}, "types": ["linestring"]}'
    )
    assert merged_extra(left, right) == (
        '{"bbox": {"xmin": -1.500000, "xmax": 1234567890123456.5, "zmin": 1.0, "zmax": 2.0}, '
        '"types": ["linestring", "point"]}'
    )
    assert merged_extra(left, None) is None
    assert merged_extra(left, '[{"path": "a"}]') is None
