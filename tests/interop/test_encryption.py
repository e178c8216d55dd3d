"""Encrypted lakes: every file has its own key, and the catalog holds it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.catalogs import Catalog
from support.compare import assert_same_tables
from support.lake_samples import NESTED, PRIMITIVES, create_table, insert_rows
from support.reference import METADATA


@pytest.mark.one_catalog
def test_encrypted_lake(catalog: Catalog, spark: SparkSession) -> None:
    with catalog.build(encrypted=True, data_inlining_row_limit=2) as reference:
        reference.execute(
            "CREATE TABLE t (id INTEGER, name VARCHAR, s STRUCT(a INTEGER)[])",
            "INSERT INTO t SELECT i, 'n' || i, [{'a': i}] FROM range(20) r(i)",
            "INSERT INTO t VALUES (100, 'inlined', NULL)",
            "DELETE FROM t WHERE id BETWEEN 3 AND 8",
            "DELETE FROM t WHERE id = 9",
            "UPDATE t SET name = 'updated' WHERE id > 15",
            "ALTER TABLE t RENAME name TO title",
            "ALTER TABLE t ADD COLUMN note VARCHAR DEFAULT 'none'",
            "ALTER TABLE t ADD COLUMN s.element.b INTEGER DEFAULT 5",
            "INSERT INTO t SELECT i, 'n' || i, [{'a': i, 'b': i}], 'new' FROM range(200, 210) r(i)",
        )
        keys = reference.rows(f"SELECT encryption_key FROM {METADATA}.ducklake_data_file")
        assert all(key for (key,) in keys)
    assert not any(file.read_bytes().startswith(b"PAR1") for file in Path(catalog.data_path).rglob("*.parquet"))
    assert_same_tables(catalog, spark, "t")


def test_every_type_in_encrypted_files(file_catalog: Catalog, spark: SparkSession) -> None:
    with file_catalog.build(encrypted=True, data_inlining_row_limit=0) as reference:
        for name, samples in (("p", PRIMITIVES), ("n", NESTED)):
            reference.execute(create_table(name, samples), insert_rows(name, samples))
    assert_same_tables(file_catalog, spark, "p", "n")


def test_flushed_and_merged_encrypted_files(file_catalog: Catalog, spark: SparkSession) -> None:
    with file_catalog.build(encrypted=True) as reference:
        reference.execute(
            "CREATE TABLE t (id INTEGER)",
            "INSERT INTO t VALUES (1), (2), (3)",
            "INSERT INTO t VALUES (4)",
            "DELETE FROM t WHERE id = 2",
            "CALL ducklake_flush_inlined_data('lk')",
            "INSERT INTO t SELECT i FROM range(10, 30) r(i)",
            "CALL ducklake_merge_adjacent_files('lk')",
            "DELETE FROM t WHERE id IN (4, 20)",
        )
    assert_same_tables(file_catalog, spark, "t")


def test_a_column_by_the_name_of_what_sql_calls_an_item(file_catalog: Catalog, spark: SparkSession) -> None:
    """DuckDB takes the name for the column; of encrypted files, and of rows that the catalog keeps."""
    with file_catalog.build(encrypted=True, data_inlining_row_limit=2) as reference:
        reference.execute(
            "CREATE TABLE t (id BIGINT, e STRUCT(key VARCHAR, value UUID), m MAP(VARCHAR, UUID), l UTINYINT[])",
            "INSERT INTO t SELECT i, {'key': 'K', 'value': '00000000-0000-0000-0000-000000000000'::UUID},"
            " MAP {'a': '11111111-1111-1111-1111-111111111111'::UUID}, [1, NULL, 255] FROM range(20) s(i)",
            "INSERT INTO t SELECT 99, e, m, l FROM t WHERE id = 3",
        )
    assert_same_tables(file_catalog, spark, "t")
