"""Statistics of written files, beside those that DuckDB's extension keeps of the same rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.storage.parquet import FileOptions, WritePlan
from support.catalogs import Catalog
from support.lake_samples import NESTED, PRIMITIVES, Sample, create_table, insert_rows
from support.parquet_lakes import plan_for, reference_statistics, shown_rows, without_size, write_all
from support.reference import METADATA, Reference, quote

BY_PYARROW = tuple(sample for sample in PRIMITIVES if sample.name not in ("timetz", "interval"))
# The extension counts nothing in these, and counts NULL structs in lists twice.
UNCOUNTED = ("timetz", "interval")
MISCOUNTED = {"c_records": {14: (2, 4), 18: (1, 6)}, "c_exotic": dict.fromkeys(range(31, 39), (1, 3))}


@pytest.mark.parametrize("samples", [BY_PYARROW, PRIMITIVES, NESTED], ids=["pyarrow", "duckdb", "nested"])
@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "encrypted"])
@pytest.mark.parametrize("group", [1, 100_000], ids=["a row a group", "one group"])
def test_every_type(
    duckdb_catalog: Catalog, tmp_path: Path, samples: tuple[Sample, ...], encrypted: bool, group: int
) -> None:
    with duckdb_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(create_table("t", samples), insert_rows("t", samples))
        plan = plan_for(
            reference, "t", f"{tmp_path}/out/", encrypted=encrypted, options=FileOptions(row_group_size=group)
        )
        expected = reference_statistics(reference, "t")
        [written] = write_all(plan, shown_rows(reference, "t", nanoseconds=True))
    _correct(plan, expected, written.record_count, samples)
    assert {item.column_id: without_size(item) for item in written.columns} == expected
    assert all(item.size for item in written.columns if item.column_id not in _without_statistics(plan))
    assert (written.encryption_key is not None) == encrypted


def _without_statistics(plan: WritePlan) -> set[int]:
    return {column.id for column in plan.columns if column.type.name in UNCOUNTED}


def _correct(plan: WritePlan, expected: dict[int, tuple[object, ...]], rows: int, samples: tuple[Sample, ...]) -> None:
    """The truth where the extension's counts are not."""
    for column, sample in zip(plan.columns, samples, strict=True):
        if column.type.name in UNCOUNTED:
            filled = len(sample.literals)
            expected[column.id] = (filled, rows - filled, *expected[column.id][2:])
        for id, counts in MISCOUNTED.get(column.name, {}).items():
            expected[id] = (*counts, *expected[id][2:])


HARD = {
    "nan only": ("DOUBLE", ["'nan'"]),
    "no value": ("DOUBLE", ["NULL"]),
    "zeros": ("DOUBLE", ["'-0.0'", "1e300"]),
    "small floats": ("FLOAT", ["1e-5", "12345678", "1e16"]),
    "empty text": ("VARCHAR", ["''"]),
    "NUL": ("VARCHAR", ["chr(0)", "'b'"]),
    "cut text": ("VARCHAR", ["repeat('a', 257)"]),
    "exactly 256": ("VARCHAR", ["repeat('z', 256)"]),
    "cut inside a letter": ("VARCHAR", ["repeat('a', 255) || 'é'"]),
    "cut after a letter": ("VARCHAR", ["repeat('a', 254) || 'éz'"]),
    "no upper bound": ("VARCHAR", ["'a'", "repeat('é', 200)"]),
    "DEL cannot grow": ("VARCHAR", ["repeat('a', 255) || chr(127) || 'q'"]),
    "longer than a footer takes": ("VARCHAR", ["repeat('q', 9000)", "'r'"]),
    "long blob": ("BLOB", [r"repeat('\xFF', 300)::BLOB", r"'\x01'"]),
    "longest blob": ("BLOB", [r"('A' || repeat('b', 9000))::BLOB", r"'\x01'"]),
    "before our era": ("DATE", ["'0044-03-15 (BC)'", "'10000-01-01'"]),
    "first instants": ("TIMESTAMP", ["'0044-03-15 (BC) 01:02:03.5'", "'1970-01-01 00:00:00.000001'"]),
}


@pytest.mark.parametrize("name", HARD)
def test_values_that_hurt(duckdb_catalog: Catalog, tmp_path: Path, name: str) -> None:
    kind, values = HARD[name]
    with duckdb_catalog.build(data_inlining_row_limit=0) as reference:
        rows = ", ".join(f"({value}, [{value}])" for value in values)
        reference.execute(f"CREATE TABLE t (v {kind}, l {kind}[])", f"INSERT INTO t VALUES {rows}, (NULL, NULL)")
        expected = reference_statistics(reference, "t")
        rows = shown_rows(reference, "t")
        for encrypted in (False, True):
            plan = plan_for(reference, "t", f"{tmp_path}/out/", encrypted=encrypted)
            [written] = write_all(plan, rows)
            assert {item.column_id: without_size(item) for item in written.columns} == expected


def test_geometries(duckdb_catalog: Catalog, tmp_path: Path) -> None:
    with duckdb_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE TABLE t (g GEOMETRY, h GEOMETRY, e GEOMETRY, n GEOMETRY)",
            "INSERT INTO t VALUES ('POINT (1 2)', 'LINESTRING Z (0 0 1, 1 1 2)', 'POINT EMPTY', NULL),"
            " ('POLYGON ((0 0, 4.25 0, 4 4, 0 4, 0 0))', 'POINT ZM (3 4 5 6.25)', NULL, NULL),"
            " (NULL, 'GEOMETRYCOLLECTION (POINT (1 2), LINESTRING (0 0, 1 1))', NULL, NULL)",
        )
        expected = reference_statistics(reference, "t")
        for encrypted in (False, True):
            plan = plan_for(reference, "t", f"{tmp_path}/out/", encrypted=encrypted)
            [written] = write_all(plan, shown_rows(reference, "t"))
            assert {item.column_id: without_size(item) for item in written.columns} == expected


def test_a_bounding_box_is_rounded_outwards(duckdb_catalog: Catalog, tmp_path: Path) -> None:
    with duckdb_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t (g GEOMETRY)", "INSERT INTO t VALUES ('POINT (0.0000004 -0.0000004)')")
        [written] = write_all(plan_for(reference, "t", f"{tmp_path}/out/"), shown_rows(reference, "t"))
    box = json.loads(written.columns[0].extra or "")["bbox"]
    assert (box["xmin"], box["xmax"], box["ymin"], box["ymax"]) == (0.0, 0.000001, -0.000001, 0.0)


VARIANTS = {
    "shredded": "VALUES ({'a': 1, 'b\"x': 'x', 'c': [{'z': 1.5::DOUBLE}], 'e': DATE '2024-01-01'}::VARIANT), (NULL)",
    "plain values": "SELECT i::VARIANT FROM range(5) r(i)",
    "mixed": "VALUES (1::VARIANT), ('x'::VARIANT), (NULL)",
    "lists": "VALUES ([1, 2]::VARIANT), ([3]::VARIANT)",
    "times": "VALUES ({'t': TIMESTAMPTZ '2024-01-01 00:00:00+02', 'd': 1.25::DOUBLE, 'u': uuid()}::VARIANT)",
}


@pytest.mark.parametrize("name", VARIANTS)
def test_variants(duckdb_catalog: Catalog, tmp_path: Path, name: str) -> None:
    with duckdb_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t (v VARIANT)", f"INSERT INTO t {VARIANTS[name]}")
        expected, inner = reference_statistics(reference, "t"), _variant_statistics(reference, "t")
        [written] = write_all(plan_for(reference, "t", f"{tmp_path}/out/"), shown_rows(reference, "t"))
    [column] = written.columns
    assert without_size(column)[:-1] == expected[1][:-1]
    assert _by_path(column.extra) == _by_path(expected[1][-1])
    assert {(item.path, item.shredded_type, *without_size(item.statistics)) for item in written.variants} == inner


def _variant_statistics(reference: Reference, table: str) -> set[tuple[object, ...]]:
    rows = reference.rows(
        "SELECT variant_path, shredded_type, value_count, null_count, min_value, max_value, contains_nan, extra_stats"
        f" FROM {METADATA}.ducklake_file_variant_stats JOIN {METADATA}.ducklake_table t USING (table_id)"
        f" WHERE table_name = {quote(table)}"
    )
    return set(rows)


def _by_path(extra: str | None) -> dict[str, dict[str, object]] | None:
    if extra is None:
        return None
    return {item["field_name"]: {**item, "column_size_bytes": 0} for item in json.loads(extra)}
