"""What a scan reads and when: files chosen while Spark plans, a snapshot that stays, rows that stay off the driver."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import penstock
import penstock.delta
import penstock.lance
from support.catalogs import Catalog, SQLiteCatalog
from support.plans import files_read


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


def test_encrypted_delete_files_of_pruned_files_are_not_read(shared: Catalog, spark: SparkSession) -> None:
    _files(shared, "DELETE FROM t WHERE id % 10 = 3", encrypted=True)
    with penstock.attach(shared.uri, read_only=True, spark=spark) as lake:
        everything, one = lake.table("t").read(), lake.table("t").read().where("id = 25")
        assert files_read(everything) == {"ducklake main.t": 6, "ducklake delete files": 6}
        assert files_read(one) == {"ducklake main.t": 1, "ducklake delete files": 1}
        assert [row.id for row in one.collect()] == [25]
        assert lake.table("t").explain("id = 25").kept == 1


def test_delete_files_of_pruned_files_are_not_read(shared: Catalog, spark: SparkSession) -> None:
    _files(shared, "DELETE FROM t WHERE id % 10 = 3")
    with shared.reference() as lake:
        [[needed]] = lake.rows(
            "SELECT delete_file FROM ducklake_list_files('lk', 't') ORDER BY data_file LIMIT 1 OFFSET 2"
        )
    for path in Path(shared.data_path).rglob("*-delete.parquet"):
        if path != Path(needed):
            path.unlink()
    with penstock.attach(shared.uri, read_only=True, spark=spark) as lake:
        everything, one = lake.table("t").read(), lake.table("t").read().where("id BETWEEN 23 AND 25")
        assert files_read(one) == {"ducklake main.t": 1}
        assert [row.id for row in one.collect()] == [24, 25]
        assert lake.table("t").explain("id = 25").kept == 1
        with pytest.raises(penstock.PenstockError, match=r"the delete file .*-delete\.parquet cannot be read"):
            everything.collect()


def test_deletes_and_row_ids_cost_only_the_files_that_have_them(shared: Catalog, spark: SparkSession) -> None:
    _files(shared, "DELETE FROM t WHERE id = 3")
    with penstock.attach(shared.uri, read_only=True, spark=spark) as lake:
        plan = lake.table("t").read()._jdf.queryExecution().optimizedPlan().toString()
        branches = [branch for branch in plan.split("Project") if "Relation" in branch]
        assert sorted("row_index" in branch for branch in branches) == [False, True]
        assert sorted("Filter" in branch for branch in branches) == [False, True]


def test_functions_of_a_users_own_change_no_value(shared: Catalog, spark: SparkSession) -> None:
    with shared.build(data_inlining_row_limit=0) as lake:
        lake.execute("CREATE TABLE t (k UUID, l UUID[], n TIMESTAMP_NS, i INTERVAL)")
        lake.execute(
            "INSERT INTO t VALUES ('f81d4fae-7dec-11d0-a765-00a0c91e6bf6', ['f81d4fae-7dec-11d0-a765-00a0c91e6bf6'],"
            " '1969-12-31 23:59:59.999999999', INTERVAL '1 month 2 days 3 ms')"
        )
    own = spark.newSession()
    with penstock.attach(shared.uri, read_only=True, spark=own) as lake:
        expected = lake.table("t").read(nanoseconds="truncate").collect()
        for name in ("lower", "hex", "substring", "concat", "conv", "transform", "struct", "named_struct", "coalesce"):
            own.udf.register(name, lambda *_: "wrong")
        rows = lake.table("t").read(nanoseconds="truncate", row_ids=True)
        assert [tuple(row) for row in rows.collect()] == [(*tuple(row), 0) for row in expected]
        assert expected[0].k == expected[0].l[0] == "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"


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


@pytest.mark.parametrize("value", ["-1 - i", "NULL::BIGINT", "'n' || i"])
def test_a_column_named_as_spark_names_a_rows_number(shared: Catalog, spark: SparkSession, value: str) -> None:
    """Its values leave out neither files nor row groups, and Spark does not take it for the numbers."""
    with shared.build(data_inlining_row_limit=0) as duckdb:
        duckdb.execute(
            f"CREATE TABLE t AS SELECT i AS id, {value} AS _tmp_metadata_row_index FROM range(5) r(i)",
            "DELETE FROM t WHERE id = 3",
        )
        judged = sorted(duckdb.rows("FROM t"))
    with penstock.attach(shared.uri, read_only=True, spark=spark) as lake:
        assert sorted(tuple(row) for row in lake.table("t").read().collect()) == judged
        assert sorted(tuple(row) for row in lake.table("t").read(row_ids=True).collect()) == [
            (*r, r[0]) for r in judged
        ]


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
        with pytest.raises(
            penstock.StaleReadError, match=r"replaced since this DataFrame was made; call read\(\) again"
        ):
            merged.collect()
        assert lake.table("t").read().count() == 59
        with shared.reference() as duckdb:
            duckdb.execute("CALL ducklake_expire_snapshots('lk', versions => [2])")
        with pytest.raises(penstock.StaleReadError, match=r"snapshot 2 was expired"):
            old.collect()


def test_files_of_a_backup_are_asked_what_they_hold(shared: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    """They have the ids of others: of nanoseconds before, of microseconds since."""
    moment = datetime(2020, 1, 2, 3, 4, 5, 678901)
    for unit in ("ns", "us"):
        table = pa.table({"ts": pa.array([moment], pa.timestamp(unit))})
        pq.write_table(table, tmp_path / f"{unit}.parquet", version="2.6")
    with shared.build() as duckdb:
        duckdb.execute("CREATE TABLE t (ts TIMESTAMP)")
    backup = Path(shared.target).read_bytes()
    with penstock.attach(shared.uri, read_only=True, spark=spark) as lake:
        for unit in ("ns", "us"):
            with closing(sqlite3.connect(":memory:")) as memory, closing(sqlite3.connect(shared.target)) as target:
                memory.deserialize(backup)
                memory.backup(target)
            with shared.reference() as duckdb:
                duckdb.execute(f"CALL ducklake_add_data_files('lk', 't', '{tmp_path}/{unit}.parquet')")
            assert [row.ts for row in lake.table("t").read().collect()] == [moment]


def test_a_merge_between_two_questions_is_not_seen(
    postgres_catalog: Catalog, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are looked up in the state of the catalog in which they were found unchanged."""
    _files(postgres_catalog, "SELECT 1")
    with penstock.attach(postgres_catalog.uri, read_only=True, spark=spark) as lake:
        rows = lake.table("t").read()
        asked = lake._attachment.catalog.database.query

        def query(sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
            if "FROM ducklake_data_file d" in sql:
                monkeypatch.undo()
                with postgres_catalog.reference() as duckdb:
                    duckdb.execute("CALL ducklake_merge_adjacent_files('lk')")
            return asked(sql, parameters)

        monkeypatch.setattr(lake._attachment.catalog.database, "query", query)
        assert rows.count() == 60
        assert lake._attachment.catalog.database.query == asked, "the question was not asked"
        with pytest.raises(penstock.StaleReadError, match="replaced"):
            rows.count()


def test_a_merge_whose_snapshot_was_expired_is_noticed(shared: Catalog, spark: SparkSession) -> None:
    _files(shared, "DELETE FROM t WHERE id = 3")
    with penstock.attach(shared.uri, read_only=True, spark=spark) as lake:
        rows, untouched = lake.table("t").read(), lake.table("t").read()
        assert untouched.count() == 59
        merging = lake.current_snapshot().id + 1
        with shared.reference() as duckdb:
            duckdb.execute("CALL ducklake_merge_adjacent_files('lk')", "CREATE TABLE other (i INTEGER)")
            duckdb.execute(f"CALL ducklake_expire_snapshots('lk', versions => [{merging}])")
        with pytest.raises(penstock.StaleReadError, match="replaced"):
            rows.count()


def test_another_session_of_the_same_spark_reads_the_same(shared: Catalog, spark: SparkSession) -> None:
    """Whatever its settings: columns are found by their ids there too."""
    _files(shared, "DELETE FROM t WHERE id = 3")
    with shared.reference() as duckdb:
        duckdb.execute("ALTER TABLE t RENAME id TO number", "ALTER TABLE t ADD COLUMN id INTEGER DEFAULT 7")
    other = spark.newSession()
    other.conf.set("spark.sql.parquet.fieldId.read.enabled", "false")
    with penstock.attach(shared.uri, read_only=True, spark=spark) as lake:
        lake.table("t").read().createOrReplaceGlobalTempView("elsewhere")
        counted = other.sql("SELECT sum(number), sum(id) FROM global_temp.elsewhere WHERE number < 20")
        assert counted.collect() == [(187, 19 * 7)]
        assert (
            files_read(other.sql("SELECT number FROM global_temp.elsewhere WHERE number = 25"))["ducklake main.t"] == 1
        )


ZONES = ("America/New_York", "Pacific/Apia", "UTC")


@pytest.mark.parametrize("kind", ["ducklake", "delta", "lance"])
def test_a_query_keeps_the_time_zone_that_it_was_made_in(kind: str, tmp_path: Path, spark: SparkSession) -> None:
    """Its casts do, wherever and whenever it runs; so must pruning."""
    rows = spark.sql(
        """SELECT explode(sequence(TIMESTAMP '2023-12-31 00:00:00Z', TIMESTAMP '2024-01-01 23:00:00Z', INTERVAL 1 HOUR))
           AS tz, 'x' AS s"""
    )
    table: Any
    if kind == "ducklake":
        table = penstock.attach(f"ducklake:{tmp_path}/l", spark=spark).create_table("t", "tz TIMESTAMP, s STRING")
    elif kind == "delta":
        table = penstock.delta.create(str(tmp_path / "t"), "tz TIMESTAMP, s STRING", partitioned_by=["s"], spark=spark)
    else:
        fields = ["year(tz)", "month(tz)", "day(tz)", "hour(tz)"]
        table = penstock.lance.create(str(tmp_path), "t", "tz TIMESTAMP, s STRING", partitioned_by=fields, spark=spark)
    for half in ("<", ">="):
        table.append(rows.where(f"tz {half} TIMESTAMP '2024-01-01 00:00:00Z'").coalesce(1))
    plain, used = spark.createDataFrame(rows.collect()), 0
    try:
        for made in ZONES:
            spark.conf.set("spark.sql.session.timeZone", made)
            queries = [frame.where("year(tz) = 2024").select("tz") for frame in (table.read(), plain)]
            queries[0].createOrReplaceGlobalTempView("zoned")
            for run in ZONES:
                spark.conf.set("spark.sql.session.timeZone", run)
                expected = queries[1].count()
                assert queries[0].count() == expected, (made, run)
                used += expected
            other = spark.newSession()
            other.conf.set("spark.sql.session.timeZone", "UTC")
            assert other.table("global_temp.zoned").count() == queries[1].count()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert used == 3 * (19 + 37 + 24)


def test_deep_filters_plan(shared: Catalog, spark: SparkSession) -> None:
    """A thousand levels in Spark's plan are one here, where they are all of a kind; others prune nothing."""
    _files(shared, "DELETE FROM t WHERE id = 3")
    with penstock.attach(shared.uri, read_only=True, spark=spark) as lake:
        rows = lake.table("t").read()
        alike = "id = 25" + "".join(f" OR id = {25 if number % 2 else 24}" for number in range(1500))
        assert files_read(rows.where(alike))["ducklake main.t"] == 1
        nested = "id = 25"
        for number in range(60):
            nested = f"(id = {24 + number % 2} OR (id < {70 + number} AND {nested}))"
        assert sorted(row.id for row in rows.where(nested).collect()) == [24, 25]


@pytest.mark.filterwarnings("ignore:toPandas attempted Arrow")  # as PySpark does before it raises the error
def test_a_closed_lake_is_an_error(shared: Catalog, spark: SparkSession) -> None:
    _files(shared, "DELETE FROM t WHERE id = 3")
    with penstock.attach(shared.uri, read_only=True, spark=spark) as lake:
        table, rows = lake.table("t"), lake.table("t").read()
    with pytest.raises(penstock.AttachError, match="is closed; attach it again"):
        table.read()
    rows.createOrReplaceTempView("closed")
    for run in (rows.collect, rows.count, rows.toPandas, lambda: list(rows.toLocalIterator()),
                spark.sql("SELECT sum(id) FROM closed x WHERE id NOT IN (SELECT id FROM closed)").collect,
                rows.write.format("noop").mode("append").save):  # fmt: skip
        with pytest.raises(penstock.AttachError, match="is closed; attach it again"):
            run()


ROWS = 1_000_000


@pytest.mark.cluster
def test_rows_do_not_visit_the_driver(shared: Catalog, spark: SparkSession) -> None:
    """A million rows, a third of them deleted, through a driver that may be sent one megabyte."""
    assert spark.conf.get("spark.driver.maxResultSize") == "1m"
    with shared.build(data_inlining_row_limit=0) as duckdb:
        duckdb.execute(f"CREATE TABLE t AS SELECT i AS id, i % 1000 AS v FROM range({ROWS}) r(i)")
        duckdb.execute("DELETE FROM t WHERE id % 3 = 0")
    with penstock.attach(shared.uri, read_only=True, spark=spark) as lake:
        assert lake.table("t").read().where("v >= 0").count() == ROWS * 2 // 3
        lake.table("t").read(row_ids=True).write.mode("overwrite").format("noop").save()
