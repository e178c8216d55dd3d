"""Lakes after maintenance: flushed, merged, rewritten and expired. History must still read as it did before."""

from __future__ import annotations

from pyspark.sql import SparkSession

from support.catalogs import Catalog
from support.compare import assert_history, assert_same_tables, record
from support.reference import METADATA, Reference


def test_flushed_rows(catalog: Catalog, spark: SparkSession) -> None:
    with catalog.build() as reference:
        reference.execute(
            "CREATE TABLE t (id INTEGER, name VARCHAR)",
            "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
            "INSERT INTO t VALUES (4, 'd')",
            "DELETE FROM t WHERE id = 2",
            "UPDATE t SET name = 'changed' WHERE id = 3",
            "ALTER TABLE t ADD COLUMN extra DOUBLE DEFAULT 0.5",
            "INSERT INTO t VALUES (5, 'e', 5.5)",
            "DELETE FROM t WHERE id = 5",
            "INSERT INTO t VALUES (6, 'f', 6.5)",
        )
        history = record(reference, "t")
        reference.execute("CALL ducklake_flush_inlined_data('lk')")
        assert _count(reference, "ducklake_data_file", "partial_max IS NOT NULL") > 0
        reference.execute("INSERT INTO t VALUES (7, 'g', 7.5)", "DELETE FROM t WHERE id IN (1, 6)")
        history |= record(reference, "t")
    assert_history(catalog, spark, history)


def test_flushed_deletes(catalog: Catalog, spark: SparkSession) -> None:
    with catalog.build() as reference:
        reference.execute(
            "CREATE TABLE t AS SELECT i AS id FROM range(100) r(i)",
            "DELETE FROM t WHERE id = 1",
            "DELETE FROM t WHERE id IN (2, 3)",
            "CALL ducklake_flush_inlined_data('lk')",
            "DELETE FROM t WHERE id = 50",
            "DELETE FROM t WHERE id = 51",
            "CALL ducklake_flush_inlined_data('lk')",
            "DELETE FROM t WHERE id = 99",
        )
        assert _count(reference, "ducklake_delete_file") > 0
    assert_same_tables(catalog, spark, "t")


def test_merged_files(catalog: Catalog, spark: SparkSession) -> None:
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE TABLE t (id INTEGER, name VARCHAR)",
            "INSERT INTO t SELECT i, 'first' FROM range(10) r(i)",
            "INSERT INTO t SELECT i, 'second' FROM range(10, 20) r(i)",
            "INSERT INTO t SELECT i, 'third' FROM range(20, 30) r(i)",
        )
        history = record(reference, "t")
        reference.execute("CALL ducklake_merge_adjacent_files('lk')")
        assert _count(reference, "ducklake_data_file", "partial_max IS NOT NULL") == 1
        reference.execute(
            "DELETE FROM t WHERE id IN (5, 15, 25)",
            "UPDATE t SET name = 'updated' WHERE id % 10 = 9",
            "INSERT INTO t VALUES (100, 'after')",
            "CALL ducklake_merge_adjacent_files('lk')",
        )
        history |= record(reference, "t")
    assert_history(catalog, spark, history)


def test_rewritten_files(catalog: Catalog, spark: SparkSession) -> None:
    """The extension itself loses rows of old versions after a rewrite: its word is taken from before."""
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE TABLE t (id INTEGER, name VARCHAR)",
            "INSERT INTO t SELECT i, 'first' FROM range(40) r(i)",
            "INSERT INTO t SELECT i, 'second' FROM range(40, 80) r(i)",
            "DELETE FROM t WHERE id < 30",
            "DELETE FROM t WHERE id IN (35, 45)",
        )
        history = record(reference, "t")
        reference.execute("CALL ducklake_rewrite_data_files('lk', 't', delete_threshold => 0.5)")
        newest = reference.value("SELECT max(snapshot_id) FROM lk.snapshots()")
        after = record(reference, "t")
        history |= {key: value for key, value in after.items() if key[1] == newest}
    assert_history(catalog, spark, history)


def test_expired_snapshots(catalog: Catalog, spark: SparkSession) -> None:
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE TABLE t AS SELECT i AS id FROM range(10) r(i)",
            "DELETE FROM t WHERE id = 3",
            "INSERT INTO t VALUES (11)",
            "CALL ducklake_expire_snapshots('lk', versions => [1])",
            "CALL ducklake_cleanup_old_files('lk', cleanup_all => true)",
        )
    assert_same_tables(catalog, spark, "t")


def test_everything_at_once(catalog: Catalog, spark: SparkSession) -> None:
    """Inlined rows, partial files, deletes of both kinds and evolution in one partitioned table."""
    with catalog.build(data_inlining_row_limit=3) as reference:
        reference.execute(
            "CREATE TABLE t (id INTEGER, region VARCHAR)",
            "ALTER TABLE t SET PARTITIONED BY (region)",
            "INSERT INTO t SELECT i, 'r' || i % 3 FROM range(30) r(i)",
            "INSERT INTO t VALUES (100, 'r1'), (101, NULL)",
            "DELETE FROM t WHERE id IN (1, 100)",
            "ALTER TABLE t ADD COLUMN note VARCHAR DEFAULT 'none'",
            "UPDATE t SET note = 'some' WHERE id IN (2, 101)",
            "INSERT INTO t SELECT i, 'r' || i % 2, 'late' FROM range(200, 210) r(i)",
        )
        history = record(reference, "t")
        reference.execute(
            "CALL ducklake_flush_inlined_data('lk')",
            "CALL ducklake_merge_adjacent_files('lk')",
            "ALTER TABLE t RENAME note TO remark",
            "DELETE FROM t WHERE id % 4 = 0",
            "INSERT INTO t VALUES (300, 'r0', 'end')",
        )
        history |= record(reference, "t")
    assert_history(catalog, spark, history)


def _count(reference: Reference, table: str, condition: str = "true") -> int:
    count: int = reference.value(f"SELECT count(*) FROM {METADATA}.{table} WHERE {condition}")
    return count
