"""What a scan reads and when: files chosen while Spark plans, a snapshot that stays, rows that stay off the driver."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

import penstock
from interop.catalogs import Catalog, SQLiteCatalog
from spark.plans import files_read


@pytest.fixture
def shared(tmp_path: Path) -> Catalog:
    """A catalog that DuckDB can change while Penstock has it attached."""
    return SQLiteCatalog(tmp_path)


def _files(catalog: Catalog, deletes: str, **parameters: object) -> None:
    with catalog.build(data_inlining_row_limit=0, **parameters) as lake:
        lake.execute("CREATE TABLE t (id INTEGER, k UUID)")
        for part in range(6):
            lake.execute(f"INSERT INTO t SELECT i, uuid() FROM range({part} * 10, {part} * 10 + 10) r(i)")
        lake.execute(deletes)


@pytest.mark.parametrize("encrypted", [False, True])
def test_delete_files_of_pruned_files_are_not_read(shared: Catalog, spark: SparkSession, encrypted: bool) -> None:
    _files(shared, "DELETE FROM t WHERE id % 10 = 3", encrypted=encrypted)
    with penstock.attach(shared.uri, read_only=True, spark=spark) as lake:
        everything, one = lake.table("t").read(), lake.table("t").read().where("id = 25")
        assert files_read(everything) == {"ducklake main.t": 6, "ducklake delete files": 6}
        assert files_read(one) == {"ducklake main.t": 1, "ducklake delete files": 1}
        assert [row.id for row in one.collect()] == [25]
        assert lake.table("t").explain("id = 25").kept == 1


def test_deletes_and_row_ids_cost_only_the_files_that_have_them(shared: Catalog, spark: SparkSession) -> None:
    _files(shared, "DELETE FROM t WHERE id = 3")
    with penstock.attach(shared.uri, read_only=True, spark=spark) as lake:
        plan = lake.table("t").read()._jdf.queryExecution().optimizedPlan().toString()
        plain, deleted = plan.split("Join LeftAnti")
        assert "row_index" not in plain
        assert "row_index" in deleted
        assert files_read(lake.table("t").read())["ducklake delete files"] == 1


@pytest.mark.parametrize("encrypted", [False, True])
def test_a_map_of_the_users_own_is_not_looked_through(shared: Catalog, spark: SparkSession, encrypted: bool) -> None:
    """The filter over it is about other values, under the same name."""

    def shifted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_arrays([pc.add(batch["id"], pa.scalar(1000, pa.int32()))], names=["id"])

    _files(shared, "DELETE FROM t WHERE id % 10 = 3", encrypted=encrypted)
    with penstock.attach(shared.uri, read_only=True, spark=spark) as lake:
        rows = lake.table("t").read().mapInArrow(shifted, "id int")
        assert [row.id for row in rows.where("id = 1025").collect()] == [1025]
        assert rows.where("id = 1023").collect() == []
        assert lake.table("t").read().join(rows.where("id = 1025"), "id", "left_anti").count() == 54


def test_planning_does_not_go_round_in_circles(shared: Catalog, spark: SparkSession) -> None:
    """The optimizer rule changes nothing the second time: a plan is the same however often it is made."""
    with shared.build(data_inlining_row_limit=0, encrypted=True) as duckdb:
        duckdb.execute("CREATE TABLE t AS SELECT i AS id FROM range(20) r(i)")
        duckdb.execute("CALL lk.set_option('write_deletion_vectors', true)", "DELETE FROM t WHERE id % 7 = 3")
    with penstock.attach(shared.uri, read_only=True, spark=spark) as lake:
        execution = lake.table("t").read().where("id > 5")._jdf.queryExecution()
        [rule] = [
            rule for rule in _rules(spark) if "FollowFilters" in rule.toString() or "FollowFilters" in rule.ruleName()
        ]
        plan = execution.optimizedPlan()
        assert rule.apply(plan).fastEquals(plan)


def _rules(spark: SparkSession) -> list[Any]:
    rules = spark._jsparkSession.experimental().extraOptimizations()
    return [rules.apply(position) for position in range(rules.size())]


def test_only_the_columns_asked_for_are_read(shared: Catalog, spark: SparkSession) -> None:
    _files(shared, "DELETE FROM t WHERE id = 3")
    with penstock.attach(shared.uri, read_only=True, spark=spark) as lake:
        plan = lake.table("t").read().select("id")._jdf.queryExecution().executedPlan().toString()
        assert "id#" in plan
        assert "k#" not in plan


def test_columns_named_as_the_scan_names_its_own(shared: Catalog, spark: SparkSession) -> None:
    names = ["_metadata", "_penstock_file", "_penstock_deleted"]
    with shared.build(data_inlining_row_limit=0) as duckdb:
        columns = ", ".join(f"(i + 100 * {n}) AS {name}" for n, name in enumerate(names, 1))
        duckdb.execute(f"CREATE TABLE t AS SELECT {columns} FROM range(5) r(i)", "DELETE FROM t WHERE _metadata = 103")
    with penstock.attach(shared.uri, read_only=True, spark=spark) as lake:
        rows = sorted(tuple(row) for row in lake.table("t").read(row_ids=True).collect())
        assert rows == [(100 + i, 200 + i, 300 + i, i) for i in (0, 1, 2, 4)]


def test_a_dataframe_stays_at_its_snapshot(shared: Catalog, spark: SparkSession) -> None:
    """Later inserts, deletes, flushes and rewrites do not show, though the files are chosen only when it runs."""
    with shared.build(data_inlining_row_limit=5) as duckdb:
        duckdb.execute("CREATE TABLE t AS SELECT i AS id FROM range(20) r(i)", "INSERT INTO t VALUES (100), (101)")
        duckdb.execute("DELETE FROM t WHERE id = 7")
    with penstock.attach(shared.uri, read_only=True, spark=spark) as lake:
        table = lake.table("t")
        before = table.read(row_ids=True)
        expected = sorted(table.read(row_ids=True).collect())
        with shared.reference() as duckdb:
            duckdb.execute("DELETE FROM t WHERE id IN (1, 101)", "INSERT INTO t SELECT i FROM range(200, 230) r(i)")
            duckdb.execute("CALL ducklake_flush_inlined_data('lk')", "DELETE FROM t WHERE id < 15")
            duckdb.execute("CALL ducklake_rewrite_data_files('lk', delete_threshold => 0)")
        assert sorted(before.collect()) == expected
        assert table.read().count() == 36


def test_merged_and_expired_files_are_an_error_not_a_mix(shared: Catalog, spark: SparkSession) -> None:
    _files(shared, "DELETE FROM t WHERE id = 3")
    with penstock.attach(shared.uri, read_only=True, spark=spark) as lake:
        merged, old = lake.table("t").read(), lake.table("t").read(version=2)
        with shared.reference() as duckdb:
            duckdb.execute("CALL ducklake_merge_adjacent_files('lk')")
        with pytest.raises(Exception, match=r"merged since this DataFrame was made; call read\(\) again"):
            merged.collect()
        assert lake.table("t").read().count() == 59
        with shared.reference() as duckdb:
            duckdb.execute("CALL ducklake_expire_snapshots('lk', versions => [2])")
        with pytest.raises(Exception, match=r"snapshot 2 was expired"):
            old.collect()


def test_field_ids_switched_off_is_an_error(shared: Catalog, spark: SparkSession) -> None:
    _files(shared, "DELETE FROM t WHERE id = 3")
    with penstock.attach(shared.uri, read_only=True, spark=spark) as lake:
        rows = lake.table("t").read()
        spark.conf.set("spark.sql.parquet.fieldId.read.enabled", "false")
        with pytest.raises(Exception, match=r"set spark\.sql\.parquet\.fieldId\.read\.enabled to true"):
            rows.collect()
    with penstock.attach(shared.uri, read_only=True, spark=spark) as lake:
        assert lake.table("t").read().count() == 59


def test_a_closed_lake_is_an_error(shared: Catalog, spark: SparkSession) -> None:
    _files(shared, "DELETE FROM t WHERE id = 3")
    with penstock.attach(shared.uri, read_only=True, spark=spark) as lake:
        table, rows = lake.table("t"), lake.table("t").read()
    with pytest.raises(penstock.AttachError, match="is closed; attach it again"):
        table.read()
    with pytest.raises(Exception, match="is closed; attach it again"):
        rows.collect()


ROWS = 3_000_000


def test_rows_do_not_visit_the_driver(shared: Catalog) -> None:
    """Three million rows, a third of them deleted, through a driver that may be sent one megabyte."""
    with shared.build(data_inlining_row_limit=0) as duckdb:
        duckdb.execute(f"CREATE TABLE t AS SELECT i AS id, i % 1000 AS v FROM range({ROWS}) r(i)")
        duckdb.execute("DELETE FROM t WHERE id % 3 = 0")
    script = f"""
        import penstock
        limits = {{"spark.driver.maxResultSize": "1m", "spark.sql.autoBroadcastJoinThreshold": "100k"}}
        spark = penstock.session(**limits)
        with penstock.attach({shared.uri!r}, read_only=True, spark=spark) as lake:
            print("rows", lake.table("t").read().where("v >= 0").count())
            lake.table("t").read(row_ids=True).write.mode("overwrite").format("noop").save()
    """
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr[-3000:]
    assert f"rows {ROWS - ROWS // 3}" in run.stdout
