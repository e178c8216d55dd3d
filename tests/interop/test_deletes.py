"""Rows taken out of files: delete files, repeated deletes, inlined deletes, deletion vectors, and updates."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from support.catalogs import Catalog
from support.compare import assert_history, assert_same_tables, record
from support.reference import METADATA, Reference

pytestmark = pytest.mark.compiled

TWO_FILES = (
    "CREATE TABLE t (id INTEGER, name VARCHAR)",
    "INSERT INTO t SELECT i, 'n' || i FROM range(50) r(i)",
    "INSERT INTO t SELECT i, 'n' || i FROM range(50, 100) r(i)",
)


def test_delete_files(catalog: Catalog, spark: SparkSession) -> None:
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            *TWO_FILES,
            "DELETE FROM t WHERE id % 7 = 0",
            "DELETE FROM t WHERE id BETWEEN 10 AND 20",
            "DELETE FROM t WHERE id % 5 = 0 AND id >= 50",
            "DELETE FROM t WHERE id < 50",
            "INSERT INTO t VALUES (1, 'again')",
        )
        assert _delete_formats(reference) == {"parquet"}
    assert_same_tables(catalog, spark, "t")


def test_delete_of_first_and_last_rows(catalog: Catalog, spark: SparkSession) -> None:
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(*TWO_FILES, "DELETE FROM t WHERE id IN (0, 49, 50, 99)", "DELETE FROM t")
    assert_same_tables(catalog, spark, "t")


def test_inlined_deletes(catalog: Catalog, spark: SparkSession) -> None:
    with catalog.build(data_inlining_row_limit=10) as reference:
        reference.execute(
            *TWO_FILES,
            "DELETE FROM t WHERE id IN (3, 60)",
            "DELETE FROM t WHERE id IN (4, 61)",
            "DELETE FROM t WHERE id BETWEEN 20 AND 40",
            "DELETE FROM t WHERE id = 5",
        )
        assert reference.value(f"SELECT count(*) FROM {METADATA}.ducklake_inlined_delete_1") > 0
    assert_same_tables(catalog, spark, "t")


def test_deletion_vectors(catalog: Catalog, spark: SparkSession) -> None:
    """The extension forgets the first vector of a file when a second replaces it: its word is taken while it holds."""
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.set_option("write_deletion_vectors", True)
        reference.execute(*TWO_FILES, "DELETE FROM t WHERE id % 7 = 0 OR id = 99")
        assert _delete_formats(reference) == {"puffin"}
        history = record(reference, "t")
    assert_history(catalog, spark, history)


def test_second_deletion_vector_of_a_file(catalog: Catalog, spark: SparkSession) -> None:
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.set_option("write_deletion_vectors", True)
        reference.execute(*TWO_FILES, "DELETE FROM t WHERE id % 7 = 0", "DELETE FROM t WHERE id % 5 = 0")
    with catalog.reference() as reference:
        newest = reference.value("SELECT max(snapshot_id) FROM lk.snapshots()")
        history = {key: value for key, value in record(reference, "t").items() if key[1] == newest}
    assert_history(catalog, spark, history)


def test_deletion_vector_with_runs_and_many_positions(file_catalog: Catalog, spark: SparkSession) -> None:
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.set_option("write_deletion_vectors", True)
        reference.execute(
            "CREATE TABLE t AS SELECT i AS id FROM range(300000) r(i)",
            "DELETE FROM t WHERE id BETWEEN 10 AND 70000 OR id % 3 = 0 OR id BETWEEN 131072 AND 299000",
        )
    assert_same_tables(file_catalog, spark, "t")


def test_updates(catalog: Catalog, spark: SparkSession) -> None:
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            *TWO_FILES,
            "UPDATE t SET name = 'u1' WHERE id % 10 = 0",
            "UPDATE t SET name = 'u2' WHERE id % 20 = 0",
            "DELETE FROM t WHERE id IN (0, 10, 11)",
            "UPDATE t SET id = id + 1000",
            "MERGE INTO t USING (SELECT 1012 AS id, 'merged' AS name UNION ALL SELECT 1, 'new') s ON t.id = s.id"
            " WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.name)",
        )
    assert_same_tables(catalog, spark, "t")


def test_truncate(catalog: Catalog, spark: SparkSession) -> None:
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(*TWO_FILES, "TRUNCATE t", "INSERT INTO t VALUES (7, 'seven')")
    assert_same_tables(catalog, spark, "t")


def _delete_formats(reference: Reference) -> set[str]:
    return {kind for (kind,) in reference.rows(f"SELECT DISTINCT format FROM {METADATA}.ducklake_delete_file")}
