"""The judgement itself: lakes that two databases describe alike are read once, and any difference is seen."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock
from support.catalogs import Catalog, DuckDBCatalog, SQLiteCatalog
from support.compare import assert_history, assert_same_tables, record
from support.ingredients import ingredients

LAKE = (
    "CREATE TABLE t (id INTEGER, name VARCHAR)",
    "INSERT INTO t SELECT i, 'n' || i FROM range(20) r(i)",
    "INSERT INTO t VALUES (100, NULL), (101, 'inlined')",
    "DELETE FROM t WHERE id % 2 = 0",
    "ALTER TABLE t ADD COLUMN d DECIMAL(4, 1) DEFAULT 0.5",
)
# Each changes what a read would show, or how it would be made.
TAMPERED = (
    "UPDATE ducklake_data_file SET row_id_start = row_id_start + 1",
    "UPDATE ducklake_delete_file SET begin_snapshot = begin_snapshot + 1",
    "UPDATE ducklake_column SET initial_default = '0.7' WHERE column_name = 'd'",
    "UPDATE ducklake_column SET column_type = 'int64' WHERE column_name = 'id'",
    "UPDATE ducklake_inlined_data_1_1 SET name = 'other' WHERE id = 101",
    "DELETE FROM ducklake_delete_file",
    "DELETE FROM ducklake_data_file",
)


def lake_in(catalog: Catalog) -> Catalog:
    catalog.directory.mkdir()
    with catalog.build(data_inlining_row_limit=5) as reference:
        reference.execute(*LAKE)
    return catalog


def made_of(catalog: Catalog, spark: SparkSession) -> str:
    with penstock.attach(catalog.uri, read_only=True, spark=spark) as lake:
        newest = lake.current_snapshot().id
        return ingredients(lake.table("t"), newest, catalog.directory, row_ids=True)


def test_whatever_differs_is_seen(tmp_path: Path, spark: SparkSession) -> None:
    same = made_of(lake_in(DuckDBCatalog(tmp_path / "one")), spark)
    other = lake_in(SQLiteCatalog(tmp_path / "another"))
    seen = [made_of(other, spark)]
    assert seen == [same]
    for statement in TAMPERED:
        other.tamper(statement)
        seen.append(made_of(other, spark))
        assert seen[-1] not in seen[:-1], statement


def test_the_rows_of_files_are_compared(tmp_path: Path, spark: SparkSession) -> None:
    catalog = lake_in(SQLiteCatalog(tmp_path / "lake"))
    before = made_of(catalog, spark)
    files = sorted(Path(catalog.data_path).rglob("*.parquet"), key=lambda file: "delete" in file.name)
    for file, change in zip(files, ("id + 1 AS id", "pos + 1 AS pos"), strict=True):
        with catalog.reference() as reference:
            reference.execute(f"COPY (SELECT * REPLACE ({change}) FROM '{file}') TO '{file}.new' (FORMAT parquet)")
        Path(f"{file}.new").rename(file)
        after = made_of(catalog, spark)
        assert after != before, change
        before = after


def test_a_difference_is_judged_by_spark(tmp_path: Path, spark: SparkSession) -> None:
    """Two lakes pass, the second on the word of the first; then the second shows other rows than the extension did."""
    assert_same_tables(lake_in(DuckDBCatalog(tmp_path / "one")), spark, "t")
    other = lake_in(SQLiteCatalog(tmp_path / "another"))
    assert_same_tables(other, spark, "t")
    with other.reference() as reference:
        history = record(reference, "t")
    other.tamper("UPDATE ducklake_inlined_data_1_1 SET name = 'other' WHERE id = 101")
    with pytest.raises(pytest.fail.Exception, match=r"name: DuckDB 'inlined', Penstock 'other'"):
        assert_history(other, spark, history)
