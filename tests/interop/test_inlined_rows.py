"""Rows kept in the catalog: several schema versions of a table, updates and deletes of such rows, mixed with files."""

from __future__ import annotations

from pyspark.sql import SparkSession

from support.catalogs import Catalog
from support.compare import assert_same_tables


def test_inserts_updates_and_deletes(catalog: Catalog, spark: SparkSession) -> None:
    with catalog.build() as reference:
        reference.execute(
            "CREATE TABLE t (id INTEGER, name VARCHAR, tags VARCHAR[])",
            "INSERT INTO t VALUES (1, 'a', ['x']), (2, 'b', []), (3, NULL, NULL), (4, 'd', [NULL])",
            "UPDATE t SET name = name || '!' WHERE id < 3",
            "DELETE FROM t WHERE id = 2",
            "INSERT INTO t VALUES (5, 'e', ['y', 'z'])",
            "UPDATE t SET id = id + 10",
            "DELETE FROM t",
            "INSERT INTO t VALUES (6, 'f', ['last'])",
        )
    assert_same_tables(catalog, spark, "t")


def test_one_transaction_inserts_and_deletes(catalog: Catalog, spark: SparkSession) -> None:
    with catalog.build() as reference:
        reference.execute(
            "CREATE TABLE t (id INTEGER)",
            "BEGIN",
            "INSERT INTO t VALUES (1), (2), (3)",
            "DELETE FROM t WHERE id = 2",
            "UPDATE t SET id = 30 WHERE id = 3",
            "COMMIT",
            "INSERT INTO t VALUES (4)",
        )
    assert_same_tables(catalog, spark, "t")


def test_rows_of_several_schema_versions(catalog: Catalog, spark: SparkSession) -> None:
    with catalog.build() as reference:
        reference.execute(
            "CREATE TABLE t (id INTEGER, a VARCHAR, s STRUCT(x INTEGER))",
            "INSERT INTO t VALUES (1, 'one', {'x': 1})",
            "ALTER TABLE t ADD COLUMN d INTEGER DEFAULT 7",
            "INSERT INTO t VALUES (2, 'two', {'x': 2}, 22)",
            "ALTER TABLE t RENAME a TO b",
            "INSERT INTO t VALUES (3, 'three', {'x': 3}, 33)",
            "ALTER TABLE t ALTER id SET TYPE BIGINT",
            "INSERT INTO t VALUES (4000000000, 'four', {'x': 4}, 44)",
            "ALTER TABLE t ADD COLUMN s.y VARCHAR DEFAULT 'why'",
            "INSERT INTO t VALUES (5, 'five', {'x': 5, 'y': 'yes'}, 55)",
            "ALTER TABLE t DROP COLUMN b",
            "ALTER TABLE t ADD COLUMN a VARCHAR",
            "INSERT INTO t VALUES (6, {'x': 6, 'y': NULL}, 66, 'six')",
            "ALTER TABLE t RENAME d TO b",
            "UPDATE t SET b = b + 100 WHERE id IN (1, 2)",
            "DELETE FROM t WHERE id = 3",
        )
    assert_same_tables(catalog, spark, "t")


def test_rows_beside_files(catalog: Catalog, spark: SparkSession) -> None:
    with catalog.build(data_inlining_row_limit=5) as reference:
        reference.execute(
            "CREATE TABLE t (id INTEGER, name VARCHAR)",
            "INSERT INTO t SELECT i, 'file ' || i FROM range(20) r(i)",
            "INSERT INTO t VALUES (100, 'inlined'), (101, 'inlined')",
            "UPDATE t SET name = 'changed' WHERE id IN (3, 100)",
            "INSERT INTO t SELECT i, 'file ' || i FROM range(200, 220) r(i)",
            "DELETE FROM t WHERE id IN (4, 101, 205)",
        )
    assert_same_tables(catalog, spark, "t")
