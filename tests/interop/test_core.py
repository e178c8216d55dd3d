"""All of it at once, in one table: what the other files test one by one. Runs on executors of their own too."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

from support import effort
from support.catalogs import Catalog
from support.compare import assert_history, record

pytestmark = [pytest.mark.compiled, pytest.mark.on_cluster_too]


def test_everything_in_one_table(file_catalog: Catalog, spark: SparkSession, pytestconfig: pytest.Config) -> None:
    added = f"{file_catalog.directory}/p=5/added.parquet"
    Path(added).parent.mkdir()
    duckdb.execute(f"COPY (SELECT 7::TINYINT AS id, {{'x': 1}} AS s, 200::UTINYINT AS u) TO '{added}'")
    with file_catalog.build(data_inlining_row_limit=5) as lake:
        lake.execute(
            "CREATE TABLE t (id BIGINT, s STRUCT(x INTEGER), u UINTEGER, k UUID, p VARCHAR)",
            "ALTER TABLE t SET PARTITIONED BY (p, bucket(2, id))",
            "INSERT INTO t SELECT i, {'x': i}, i, uuid(), ['a/b', 'é=%', NULL][1 + i % 3] FROM range(60) r(i)",
            "DELETE FROM t WHERE id % 10 = 3",
            "INSERT INTO t VALUES (100, {'x': NULL}, 4000000000, NULL, ''), (101, NULL, NULL, uuid(), '🦆')",
            "DELETE FROM t WHERE id IN (5, 100)",
            "UPDATE t SET p = 'moved' WHERE id BETWEEN 20 AND 40",
            "ALTER TABLE t ADD COLUMN s.y VARCHAR DEFAULT 'field'",
            "ALTER TABLE t ALTER u SET TYPE UBIGINT",
            "ALTER TABLE t RENAME id TO key",
            "ALTER TABLE t ADD COLUMN id INTEGER DEFAULT 42",
            "ALTER TABLE t ADD COLUMN b BLOB DEFAULT '\\xAA\\x00'",
            "INSERT INTO t SELECT i, {'x': i, 'y': 'n'}, 18446744073709551615, uuid(), 'a/b', i, 'b'"
            " FROM range(50, 80) r(i)",
            "CALL lk.set_option('write_deletion_vectors', true)",
            "DELETE FROM t WHERE key % 7 = 0",
            "CALL ducklake_flush_inlined_data('lk')",
            "CALL ducklake_merge_adjacent_files('lk')",
            "ALTER TABLE t RESET PARTITIONED BY",
            f"CALL ducklake_add_data_files('lk', 't', '{added}', allow_missing => true, ignore_extra_columns => true)",
            "DELETE FROM t WHERE key = 55",
        )
    _assert_same(file_catalog, spark, pytestconfig)


def test_encrypted(file_catalog: Catalog, spark: SparkSession, pytestconfig: pytest.Config) -> None:
    with file_catalog.build(encrypted=True, data_inlining_row_limit=0) as lake:
        lake.execute(
            "CREATE TABLE t (id INTEGER, l UUID[])",
            "INSERT INTO t SELECT i, [uuid(), NULL] FROM range(20) r(i)",
            "ALTER TABLE t RENAME id TO key",
            "DELETE FROM t WHERE key = 3",
            "UPDATE t SET l = NULL WHERE key < 2",
            "CALL lk.set_option('write_deletion_vectors', true)",
            "DELETE FROM t WHERE key > 17",
        )
    _assert_same(file_catalog, spark, pytestconfig)


def _assert_same(catalog: Catalog, spark: SparkSession, config: pytest.Config) -> None:
    """At every snapshot; on a cluster the last two have all there is, and the rest is for `--full`."""
    with catalog.reference() as reference:
        history = record(reference, "t")
    if config.getoption("--cluster") and not effort.is_full():
        history = dict(sorted(history.items(), key=lambda item: item[0][1])[-2:])
    assert_history(catalog, spark, history)
