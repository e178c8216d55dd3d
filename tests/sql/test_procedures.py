"""CALL and functions in FROM, beside the extension's own."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from penstock import Lake
from penstock.errors import InvalidError
from support.catalogs import Catalog
from support.compare import query
from support.writing import attached

from .conftest import Sql, functions_in_from


@pytest.mark.one_catalog
def test_maintenance(catalog: Catalog, spark: SparkSession, sql: Sql) -> None:
    with attached(catalog, spark, name="sales", data_inlining_row_limit=10) as lake:
        sql("CREATE TABLE sales.t (id INT)")
        for number in range(3):
            sql(f"INSERT INTO sales.t VALUES ({number})")
        assert sql("CALL sales.system.flush_inlined_data(table_name => 't')") == [("main", "t", 3)]
        sql("CALL sales.system.set_option('data_inlining_row_limit', 0, table_name => 't')")
        for number in range(3, 6):
            sql(f"INSERT INTO sales.t VALUES ({number})")
        assert sql("CALL sales.system.merge_adjacent_files('t', where => 'id > 100')") == []
        assert sql("CALL sales.system.merge_adjacent_files('t')") == [("main", "t", 4, 1)]
        sql("DELETE FROM sales.t WHERE id < 5")
        assert sql("CALL sales.system.rewrite_data_files('t', delete_threshold => 0.5)") == [("main", "t", 1, 1)]
        kept = lake.snapshots().count()
        planned = sql("CALL sales.system.expire_snapshots(older_than => now(), dry_run => true)")
        assert len(planned) == kept - 1
        assert len(sql("CALL sales.system.expire_snapshots(versions => array(1L, 2L))")) == 2
        sql("CALL sales.system.expire_snapshots(keep_last => 1)")
        assert len(sql("CALL sales.system.cleanup_old_files(cleanup_all => true)")) >= 4
        assert sql("CALL sales.system.delete_orphaned_files(cleanup_all => true)") == []
        assert sql("CALL sales.system.checkpoint()")
        assert sql("SELECT * FROM sales.t") == [(5,)]
    with catalog.reference() as reference:
        assert reference.rows("FROM t") == [(5,)]


def test_functions(lake: Lake, file_catalog: Catalog, spark: SparkSession, sql: Sql) -> None:
    sql("CREATE TABLE sales.t AS SELECT id FROM range(100)")
    sql("CALL sales.system.set_option('parquet_compression', 'zstd', table_name => 't')")
    names = {
        "snapshots()": "lk.snapshots()",
        "list_files('t')": "ducklake_list_files('lk', 't')",
        "options()": "ducklake_options('lk')",
        "current_snapshot()": "lk.current_snapshot()",
    }
    lake.close()
    with file_catalog.reference() as reference:
        expected = {ours: query(reference, f"FROM {theirs}") for ours, theirs in names.items()}
    with attached(file_catalog, spark, name="sales") as lake, functions_in_from(spark) as place:
        for ours, contents in expected.items():
            frame = spark.sql(f"SELECT * FROM {place}{ours}")
            assert frame.columns == [name for name, _ in contents.columns], ours
            if ours != "snapshots()":  # whose times and maps Python has other types for
                assert sorted(map(str, map(tuple, frame.collect()))) == sorted(map(str, contents.rows.elements())), ours
        assert sql(f"SELECT count(*) FROM {place}snapshots() s JOIN sales.t t ON s.snapshot_id = t.id") == [(2,)]
        assert sql(f"SELECT count(*), max(id) FROM {place}table_insertions('t', 1, 1)") == [(100, 99)]
        assert sql(f"SELECT count(*) FROM {place}table_deletions('t', 0, 1)") == [(0,)]
        assert sql(f"SELECT catalog_type FROM {place}settings()") == [("duckdb",)]
        files = expected["list_files('t')"].rows.total()
        assert sql(f"SELECT count(*) FROM {place}list_files('t', snapshot_version => 1)") == [(files,)]
        assert sql(f"SELECT count(*) FROM {place}table_changes('t', now() - INTERVAL 1 DAY, now())") == [(100,)]
        with pytest.raises(InvalidError, match="list_files takes table_name, schema"):
            sql(f"SELECT * FROM {place}list_files('t', nope => 1)")
        with pytest.raises(InvalidError, match="snapshots takes 0 arguments"):
            sql(f"SELECT * FROM {place}snapshots(1)")
        with pytest.raises(AnalysisException):
            sql("SELECT * FROM nothing_like_this()")


def test_procedures_are_shown(lake: Lake, sql: Sql) -> None:
    shown = [row[-1] for row in sql("SHOW PROCEDURES IN sales.system")]
    assert {"merge_adjacent_files", "checkpoint", "add_data_files", "set_option"} <= set(shown)
    with pytest.raises(AnalysisException):
        sql("CALL sales.system.expire_snapshots(nope => 1)")


def test_add_data_files(lake: Lake, spark: SparkSession, sql: Sql, tmp_path: object) -> None:
    spark.range(5).coalesce(1).write.parquet(f"{tmp_path}/more")
    sql("CREATE TABLE sales.t (id BIGINT, extra STRING)")
    with pytest.raises(InvalidError, match="extra"):
        sql(f"CALL sales.system.add_data_files('t', '{tmp_path}/more')")
    sql(f"CALL sales.system.add_data_files('t', '{tmp_path}/more', allow_missing => true)")
    assert sql("SELECT count(*), count(extra) FROM sales.t") == [(5, 0)]


def test_arguments_that_cannot_be(lake: Lake, spark: SparkSession, sql: Sql) -> None:
    sql("CREATE TABLE sales.t (id BIGINT)")
    far = "outside the years 1 to 9999"
    for statement, why in {
        "CALL sales.system.set_option(NULL, NULL)": "set_option needs option and value",
        "CALL sales.system.set_option('parquet_version', NULL)": "set_option needs value",
        "CALL sales.system.add_data_files(NULL, 'x')": "add_data_files needs table_name",
        "CALL sales.system.expire_snapshots(older_than => TIMESTAMP'+99999-01-01')": far,
        "SELECT * FROM sales.t TIMESTAMP AS OF '+99999-01-01'": far,
    }.items():
        with pytest.raises(InvalidError, match=why):
            sql(statement)
    with functions_in_from(spark) as place:
        with pytest.raises(InvalidError, match="list_files takes a text as table_name, and not 1"):
            sql(f"SELECT * FROM {place}list_files(1)")
        with pytest.raises(InvalidError, match="table_changes takes a text as schema, and not 2"):
            sql(f"SELECT * FROM {place}table_changes('t', 0, 1, 2)")
