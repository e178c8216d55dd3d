"""Every type written from Spark, to files and into the catalog: the extension reads what it would have written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from pyspark.sql import DataFrame, SparkSession

import penstock
from interop.test_geometry import SHAPES
from interop.test_variant import MIXED
from penstock import Lake
from penstock.schema.columns import Column
from support.catalogs import Catalog, DuckDBCatalog
from support.compare import Contents, assert_contents, query
from support.lake_samples import NESTED, PRIMITIVES, Sample, create_table, insert_rows
from support.reference import METADATA, Reference
from support.writing import attached, ddl

pytestmark = pytest.mark.compiled

# DuckDB's own storage takes 0.0 for -0.0 when one follows the other, and catalogs are kept in it.
KINDS = {
    "primitive": tuple(replace(s, literals=tuple(x for x in s.literals if x != "0.0")) for s in PRIMITIVES),
    "nested": NESTED,
    "variant": (
        Sample("mixed", "VARIANT", tuple(f"({value})::VARIANT" for value in MIXED)),
        Sample("shredded", "VARIANT", ("{'a': 2147483647, 'b': 'x'}::VARIANT", "{'a': NULL, 'b': 'y'}::VARIANT")),
    ),
    "geometry": (Sample("shape", "GEOMETRY", tuple(f"'{shape}'" for shape in SHAPES)),),
}
IDS = Sample("id", "INTEGER", tuple(map(str, range(8))))
TABLES = {name: (IDS, *samples) for name, samples in KINDS.items()}
WRITTEN = [f"{name}_{limit}" for name in TABLES for limit in (0, 100)]


@dataclass(frozen=True)
class Originals:
    """Tables that the extension made, with their rows as DataFrames and as it shows them."""

    lake: Lake
    columns: dict[str, tuple[Column, ...]]
    contents: dict[str, Contents]
    statistics: dict[str, list[tuple[object, ...]]]

    def rows(self, name: str) -> DataFrame:
        return self.lake.table(name).read(nanoseconds="long")


@pytest.fixture(scope="module")
def originals(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Originals]:
    catalog = DuckDBCatalog(tmp_path_factory.mktemp("originals"))
    with catalog.build(data_inlining_row_limit=0) as reference:
        for name, samples in TABLES.items():
            reference.execute(create_table(name, samples), insert_rows(name, samples))
        contents = {name: query(reference, f"FROM {name}") for name in TABLES}
    with penstock.attach(catalog.uri, read_only=True, spark=spark) as lake:
        columns = {name: lake.table(name).columns for name in TABLES}
    with catalog.reference() as reference:
        statistics = {name: file_statistics(reference, name, columns[name]) for name in TABLES}
    with penstock.attach(catalog.uri, read_only=True, spark=spark) as lake:
        yield Originals(lake, columns, contents, statistics)


def file_statistics(reference: Reference, table: str, columns: tuple[Column, ...]) -> list[tuple[object, ...]]:
    """All that the catalog says of the columns of a table's newest file, but for sizes."""
    newest = (
        f"(SELECT max(data_file_id) FROM {METADATA}.ducklake_data_file"
        f" JOIN {METADATA}.ducklake_table USING (table_id) WHERE table_name = '{table}')"
    )
    rows = reference.rows(
        "SELECT column_id, min_value, max_value, contains_nan, extra_stats, value_count, null_count"
        f" FROM {METADATA}.ducklake_file_column_stats WHERE data_file_id = {newest} ORDER BY column_id"
    )
    variants = reference.rows(
        "SELECT column_id, variant_path, shredded_type, value_count, null_count, min_value, max_value, contains_nan,"
        f" extra_stats FROM {METADATA}.ducklake_file_variant_stats WHERE data_file_id = {newest} ORDER BY ALL"
    )
    miscounted = {item.id for column in columns if _is_miscounted(column) for item in column.walk()}
    counted = [row[:5] if row[0] in miscounted else row for row in rows]
    return [tuple(map(_without_sizes, row)) for row in (*counted, *variants)]


def _is_miscounted(column: Column) -> bool:
    """The extension counts nothing in times with a zone and intervals, and NULL structs in lists twice."""
    return column.type.name in ("timetz", "interval") or (
        column.type.name == "list" and column.children[0].type.name == "struct"
    )


def _without_sizes(value: object) -> object:
    """What is said of a variant's paths is in no order."""
    if not isinstance(value, str) or "column_size_bytes" not in value:
        return value
    return sorted(({**item, "column_size_bytes": 0} for item in json.loads(value)), key=repr)


@pytest.mark.one_catalog
def test_every_type(catalog: Catalog, spark: SparkSession, originals: Originals) -> None:
    with attached(catalog, spark) as lake:
        for name, limit in [(name, limit) for name in TABLES for limit in (0, 100)]:
            table = lake.create_table(f"{name}_{limit}", ddl(originals.columns[name]))
            lake.set_option("data_inlining_row_limit", limit, table=f"{name}_{limit}")
            made = table.append(originals.rows(name))
            in_catalog = limit and name != "geometry" and (name != "variant" or catalog.kind == "duckdb")
            assert made is not None
            assert str(made.changes_made).startswith("inlined_insert" if in_catalog else "inserted_into_table")
            assert_contents(table.read(nanoseconds="truncate"), originals.contents[name], table.name)
    with catalog.reference() as reference:
        for name, expected in originals.contents.items():
            assert query(reference, f"FROM {name}_0") == expected
            assert query(reference, f"FROM {name}_100") == expected
            columns = originals.columns[name]
            assert file_statistics(reference, f"{name}_0", columns) == originals.statistics[name]
    if catalog.kind != "mysql":
        with catalog.reference() as reference:
            go_on(reference)
            contents = {name: query(reference, f"SELECT *, rowid FROM {name}") for name in WRITTEN}
        with attached(catalog, spark, read_only=True) as lake:
            for name, expected in contents.items():
                assert_contents(lake.table(name).read(nanoseconds="truncate", row_ids=True), expected, name)


def go_on(reference: Reference) -> None:
    """What the extension does with tables of its own."""
    reference.execute("BEGIN")
    for name, limit in [(name, limit) for name in TABLES for limit in (0, 100)]:
        reference.execute(
            insert_rows(f"{name}_{limit}", TABLES[name]),
            f"UPDATE {name}_{limit} SET c_id = c_id + 100 WHERE c_id % 3 = 0",
            f"DELETE FROM {name}_{limit} WHERE c_id % 3 = 1",
        )
    reference.execute(
        "COMMIT",
        "CALL ducklake_flush_inlined_data('lk')",
        "CALL ducklake_merge_adjacent_files('lk')",
        "CALL ducklake_rewrite_data_files('lk', delete_threshold => 0)",
    )


def test_nan_is_greater_than_every_number(spark: SparkSession, duckdb_catalog: DuckDBCatalog) -> None:
    """Footers that leave NaN out of their bounds would let readers skip it."""
    rows = spark.sql("SELECT * FROM VALUES (1.0D, 1.0F), (double('NaN'), float('NaN')), (-5.0D, -5.0F) AS t(d, f)")
    with attached(duckdb_catalog, spark, data_inlining_row_limit=0) as lake:
        table = lake.create_table("t", "d DOUBLE, f FLOAT, s STRUCT<x: DOUBLE>")
        table.append(rows.selectExpr("d", "f", "named_struct('x', d)").coalesce(1))
        for where in ("d > 500", "f > 500", "s.x > 500", "d >= 1 AND d <> 1", "isnan(f)"):
            assert table.read().where(where).count() == 1, where
        assert table.read().where("d < 0").count() == 1
    with duckdb_catalog.reference() as reference:
        for where in ("d > 500", "f > 500", "s.x > 500"):
            assert reference.value(f"SELECT count(*) FROM t WHERE {where}") == 1, where
