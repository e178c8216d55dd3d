"""Where files are: relative to the data path, to schema and table, or absolute; and data that moved."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock
from support.catalogs import Catalog, DuckDBCatalog
from support.compare import assert_history, assert_same_tables, query, record
from support.reference import METADATA, quote

LAKE = (
    "CREATE SCHEMA s",
    "CREATE TABLE t AS SELECT i AS id FROM range(20) r(i)",
    "DELETE FROM t WHERE id = 3",
    "CREATE TABLE s.t AS SELECT i * 2 AS id FROM range(20) r(i)",
)


def test_moved_data(catalog: Catalog, spark: SparkSession) -> None:
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(*LAKE)
        history = record(reference, "t")
    moved = f"{catalog.directory}/elsewhere/"
    shutil.move(catalog.data_path, moved)
    assert_history(catalog, spark, history, data_path=moved, override_data_path=True)


def test_data_path_that_differs_is_refused(file_catalog: Catalog, spark: SparkSession) -> None:
    with file_catalog.build() as reference:
        reference.execute(*LAKE)
    with pytest.raises(penstock.AttachError, match="override_data_path"):
        penstock.attach(file_catalog.uri, data_path=f"{file_catalog.directory}/other/", read_only=True, spark=spark)


def test_absolute_paths_at_every_level(file_catalog: Catalog, spark: SparkSession) -> None:
    """Schema, table and file each name their place absolutely, and all three lie in different directories."""
    data = Path(file_catalog.data_path)
    schema, table, file = (file_catalog.directory / place for place in ("schemas/s", "tables/u", "files"))
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE SCHEMA s",
            "CREATE TABLE s.by_schema AS SELECT 1 AS id",
            "CREATE TABLE by_table AS SELECT 2 AS id",
            "CREATE TABLE by_file AS SELECT 3 AS id",
        )
        for source, target in ((data / "s", schema), (data / "main/by_table", table), (data / "main/by_file", file)):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(source, target)
        reference.execute(
            f"UPDATE {METADATA}.ducklake_schema SET path = {quote(f'{schema}/')}, path_is_relative = false"
            " WHERE schema_name = 's'",
            f"UPDATE {METADATA}.ducklake_table SET path = {quote(f'{table}/')}, path_is_relative = false"
            " WHERE table_name = 'by_table'",
            f"UPDATE {METADATA}.ducklake_data_file SET path = {quote(f'{file}/')} || path, path_is_relative = false"
            f" WHERE table_id = (SELECT table_id FROM {METADATA}.ducklake_table WHERE table_name = 'by_file')",
        )
    with file_catalog.reference() as reference:
        expected = query(reference, "SELECT id FROM s.by_schema UNION ALL FROM by_table UNION ALL FROM by_file")
    assert expected.rows.total() == 3
    with penstock.attach(file_catalog.uri, read_only=True, spark=spark) as lake:
        for name, value in (("s.by_schema", 1), ("by_table", 2), ("by_file", 3)):
            assert [tuple(row) for row in lake.table(name).read().collect()] == [(value,)]


def test_default_data_path(tmp_path: Path, spark: SparkSession) -> None:
    """Without a data path, a DuckDB file's data lies beside it in FILE.files/."""

    class Beside(DuckDBCatalog):
        def __init__(self, directory: Path) -> None:
            super().__init__(directory)
            self.data_path = f"{directory}/lake.ducklake.files/"

    catalog = Beside(tmp_path)
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(*LAKE)
    assert_same_tables(catalog, spark, "t")


@pytest.mark.parametrize("place", ["with space", "percent %20 and #hash", "ünïcode 😀", "a=b", "glob[1]*?{x}"])
def test_hostile_data_paths(tmp_path: Path, spark: SparkSession, place: str) -> None:
    catalog = DuckDBCatalog(tmp_path)
    catalog.data_path = f"{tmp_path}/{place}/"
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(*LAKE)
        history = record(reference, "t")
    assert_history(catalog, spark, history)


def test_partitions_without_hive_directories(catalog: Catalog, spark: SparkSession) -> None:
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.set_option("hive_file_pattern", False)
        reference.execute(
            "CREATE TABLE t (id INTEGER, region VARCHAR)",
            "ALTER TABLE t SET PARTITIONED BY (region)",
            "INSERT INTO t VALUES (1, 'EU'), (2, 'US'), (3, NULL)",
        )
    assert_same_tables(catalog, spark, "t")
