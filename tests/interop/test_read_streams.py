"""Streams out of tables: what DuckDB's extension says was inserted or changed, batch by batch, each row once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812

import penstock
from penstock import Lake
from penstock.errors import InvalidError, NotFoundError
from support.catalogs import Catalog
from support.streams import NOW, all_rows, collected, finished, forget_last_batch, run

TABLE = (
    "CREATE TABLE t (id INTEGER, name VARCHAR)",
    "INSERT INTO t SELECT i, 'n' || i FROM range(30) r(i)",
    "DELETE FROM t WHERE id % 7 = 0",
    "INSERT INTO t VALUES (100, NULL), (101, 'quo''te /=%$ 🦆')",
)
MORE = (
    "INSERT INTO t SELECT i, NULL FROM range(200, 240) r(i)",
    "UPDATE t SET name = 'new' WHERE id IN (1, 100, 201)",
    "DELETE FROM t WHERE id IN (2, 101, 202)",
    "INSERT INTO t VALUES (300, '')",
)


@contextmanager
def made_by_duckdb(catalog: Catalog, spark: SparkSession) -> Iterator[Lake]:
    with catalog.build() as reference:
        reference.execute(*TABLE)
    with penstock.attach(catalog.uri, data_path=catalog.data_path, spark=spark) as lake:
        yield lake


@pytest.fixture
def lake(catalog: Catalog, spark: SparkSession) -> Iterator[Lake]:
    with made_by_duckdb(catalog, spark) as lake:
        yield lake


@pytest.fixture
def shared(sqlite_catalog: Catalog, spark: SparkSession) -> Iterator[Lake]:
    """On a catalog that DuckDB may use at the same time."""
    with made_by_duckdb(sqlite_catalog, spark) as lake:
        yield lake


def told(catalog: Catalog, sql: str) -> list[tuple[Any, ...]]:
    with catalog.reference() as reference:
        return sorted(reference.rows(sql), key=repr)


def execute(catalog: Catalog, *statements: str) -> int:
    """What DuckDB does meanwhile; the newest snapshot after it."""
    with catalog.reference() as reference:
        reference.execute(*statements)
        version: int = reference.value("SELECT max(snapshot_id) FROM lk.snapshots()")
        return version


def test_the_table_and_then_what_is_inserted(catalog: Catalog, lake: Lake, tmp_path: Path) -> None:
    stream = lake.table("t").read_stream()
    assert stream.isStreaming
    assert stream.columns == ["id", "name"]
    first = collected(stream, tmp_path / "c")
    assert len(first) == 1
    start = lake.current_snapshot().id
    assert collected(stream, tmp_path / "c") == []
    if catalog.kind == "mysql":  # DuckDB's connector cannot change the lake there
        lake.table("t").append([(i, None) for i in range(200, 240)])
        lake.table("t").update({"name": "'new'"}, where="id IN (1, 100, 201)")
    lake.close()
    with catalog.reference() as reference:
        shown = sorted(reference.rows(f"FROM t AT (VERSION => {start})"), key=repr)
        assert all_rows(first) == shown
        reference.execute(*(() if catalog.kind == "mysql" else MORE))
        last = reference.value("SELECT max(snapshot_id) FROM lk.snapshots()")
    inserted = told(catalog, f"SELECT id, name FROM ducklake_table_insertions('lk', 'main', 't', {start + 1}, {last})")
    with penstock.attach(catalog.uri, data_path=catalog.data_path, spark=lake.spark) as again:
        second = collected(again.table("t").read_stream(), tmp_path / "c")
        assert all_rows(second) == inserted
        forget_last_batch(tmp_path / "c")
        assert collected(again.table("t").read_stream(), tmp_path / "c") == second


@pytest.mark.parametrize("start", ["version", "time", "first"])
def test_changes_from_a_snapshot_on(sqlite_catalog: Catalog, shared: Lake, tmp_path: Path, start: str) -> None:
    from_here = shared.current_snapshot()
    last = execute(sqlite_catalog, *MORE)
    first = 0 if start == "first" else from_here.id + 1
    given: Any = first if start != "time" else from_here.time + timedelta(microseconds=1)
    stream = shared.table("t").read_stream(start=given, changes=True)
    assert stream.columns == ["snapshot_id", "rowid", "change_type", "id", "name"]
    batches = collected(stream, tmp_path / "c")
    assert all_rows(batches) == told(sqlite_catalog, f"FROM ducklake_table_changes('lk', 'main', 't', {first}, {last})")


@pytest.mark.parametrize("changes", [False, True])
def test_limits_split_snapshots_by_row_ids(
    sqlite_catalog: Catalog, shared: Lake, tmp_path: Path, changes: bool
) -> None:
    """Files are merged and rows flushed in between: row ids stay."""
    table = shared.table("t")
    stream = table.read_stream(changes=changes, max_rows_per_trigger=10)
    whole = all_rows(collected(table.read_stream(changes=changes), tmp_path / "whole"))
    seen: list[list[tuple[Any, ...]]] = []

    def take(rows: DataFrame, batch: int) -> None:
        seen.append([tuple(row) for row in rows.collect()])
        if batch == 0:
            table.flush_inlined_data()
            table.merge_adjacent_files()

    run(stream, tmp_path / "c", take)
    assert all_rows(seen) == whole
    assert len(seen) >= 3
    assert max(map(len, seen)) <= 10
    start = shared.current_snapshot().id
    last = execute(sqlite_catalog, *MORE)
    more = collected(stream, tmp_path / "c")
    if changes:
        wanted = told(sqlite_catalog, f"FROM ducklake_table_changes('lk', 'main', 't', {start + 1}, {last})")
    else:
        feed = f"ducklake_table_insertions('lk', 'main', 't', {start + 1}, {last})"
        wanted = told(sqlite_catalog, f"SELECT id, name FROM {feed}")
    assert all_rows(more) == wanted
    assert max(map(len, more[:4])) <= 10  # the snapshot with 40 rows


def test_limits_of_snapshots(shared: Lake, sqlite_catalog: Catalog, tmp_path: Path) -> None:
    start = shared.current_snapshot().id + 1
    execute(sqlite_catalog, *MORE)
    stream = shared.table("t").read_stream(start=start, max_snapshots_per_trigger=1)
    assert [len(batch) for batch in collected(stream, tmp_path / "a")] == [40, 3, 1]  # deletes insert nothing
    assert [len(batch) for batch in collected(stream, tmp_path / "b", {"once": True})] == [44]


def test_maintenance_and_other_tables_make_no_batch(shared: Lake, sqlite_catalog: Catalog, tmp_path: Path) -> None:
    stream = shared.table("t").read_stream()
    assert len(collected(stream, tmp_path / "c")) == 1
    execute(
        sqlite_catalog,
        "CALL ducklake_flush_inlined_data('lk')",
        "CALL lk.merge_adjacent_files()",
        "CALL ducklake_rewrite_data_files('lk', delete_threshold => 0)",
        "CREATE TABLE other AS SELECT 1 AS i",
        "COMMENT ON TABLE t IS 'said'",
    )
    assert collected(stream, tmp_path / "c") == []


def test_columns_keep_their_names_and_are_missed_when_they_go(
    shared: Lake, sqlite_catalog: Catalog, tmp_path: Path
) -> None:
    table = shared.table("t")
    before = table.read_stream()
    collected(before, tmp_path / "c")
    execute(
        sqlite_catalog,
        "ALTER TABLE t RENAME COLUMN name TO title",
        "ALTER TABLE t ADD COLUMN more INTEGER DEFAULT 7",
        "INSERT INTO t VALUES (500, 'renamed', 8)",
    )
    assert collected(before, tmp_path / "c") == [[(500, "renamed")]]
    after = table.read_stream()
    assert after.columns == ["id", "title", "more"]
    assert {row[2] for row in collected(after, tmp_path / "d")[0]} == {7, 8}
    execute(sqlite_catalog, "ALTER TABLE t DROP COLUMN title", "INSERT INTO t VALUES (501, 9)")
    with pytest.raises(Exception, match=r"column title of main.t was dropped by snapshot"):
        collected(after, tmp_path / "d")
    execute(sqlite_catalog, "ALTER TABLE t ALTER more SET DATA TYPE BIGINT", "INSERT INTO t VALUES (502, 10)")
    with pytest.raises(Exception, match=r"was dropped|is int64 in snapshot"):
        collected(after, tmp_path / "d")


def test_a_table_that_was_made_anew_is_another(shared: Lake, sqlite_catalog: Catalog, tmp_path: Path) -> None:
    stream = shared.table("t").read_stream()
    collected(stream, tmp_path / "c")
    execute(sqlite_catalog, "DROP TABLE t")
    with pytest.raises(Exception, match="was dropped, and its stream ends"):
        collected(stream, tmp_path / "c")
    execute(sqlite_catalog, "CREATE TABLE t AS SELECT 1 AS id, 'x' AS name")
    with pytest.raises(Exception, match=r"is of another table than main.t"):
        collected(shared.table("t").read_stream(), tmp_path / "c")


def test_expired_snapshots_stop_a_stream_or_are_passed_over(
    shared: Lake, sqlite_catalog: Catalog, tmp_path: Path
) -> None:
    table = shared.table("t")
    collected(table.read_stream(), tmp_path / "c")
    execute(sqlite_catalog, *MORE, "CALL ducklake_expire_snapshots('lk', older_than => now())")
    with pytest.raises(Exception, match=r"were expired before the stream of main.t read them.*failOnDataLoss"):
        collected(table.read_stream(), tmp_path / "c")
    rows = all_rows(collected(table.read_stream(fail_on_data_loss=False), tmp_path / "c"))
    assert {row[0] for row in rows} >= {*range(203, 240), 1, 100, 300}
    execute(sqlite_catalog, "INSERT INTO t VALUES (400, 'later')")
    assert collected(table.read_stream(), tmp_path / "c") == [[(400, "later")]]


def test_a_batch_whose_snapshot_was_expired_fails_whatever_is_asked_of_it(
    shared: Lake, sqlite_catalog: Catalog, tmp_path: Path
) -> None:
    """An error that stands beside constants would go with a filter that is false for these."""
    stream = shared.table("t").read_stream(max_rows_per_trigger=10)
    for number, query in enumerate((stream.where("id >= 0"), stream.select(F.lit(1).alias("one")))):

        def take(rows: DataFrame, batch: int) -> None:
            rows.collect()
            if batch == 0:
                execute(
                    sqlite_catalog,
                    "INSERT INTO t VALUES (1, 'x')",
                    "CALL ducklake_expire_snapshots('lk', older_than => now())",
                )

        with pytest.raises(Exception, match="was expired before all of its rows were read"):
            run(query, tmp_path / f"{number}", take)


def fails_in_batch(stream: DataFrame, checkpoint: Path, number: int) -> list[tuple[Any, ...]]:
    """The rows of the batches before one at which the driver dies: Spark has noted what it is to give, and no more."""
    rows: list[tuple[Any, ...]] = []

    def take(batch: DataFrame, found: int) -> None:
        if found == number:
            raise ZeroDivisionError
        rows.extend(tuple(row) for row in batch.collect())

    with pytest.raises(StreamingQueryException, match="ZeroDivisionError"):
        run(stream, checkpoint, take)
    return rows


LATER = (
    "DELETE FROM t WHERE id IN (2, 15, 101)",
    "UPDATE t SET name = 'new' WHERE id IN (1, 16, 100)",
    "INSERT INTO t SELECT i, 'late' FROM range(300, 330) r(i)",
)
REWRITE = "CALL ducklake_rewrite_data_files('lk', delete_threshold => 0)"
EXPIRE = "CALL ducklake_expire_snapshots('lk', older_than => now())"


@pytest.mark.parametrize(
    "between",
    [
        pytest.param(LATER, marks=pytest.mark.slow),
        pytest.param((*LATER, REWRITE), marks=pytest.mark.slow),
        (*LATER[:2], REWRITE, LATER[2]),
    ],
)
def test_a_beginning_that_was_expired_is_passed_over_if_that_is_wanted(
    shared: Lake, sqlite_catalog: Catalog, tmp_path: Path, between: tuple[str, ...]
) -> None:
    """Nothing was given: what the oldest snapshot that is kept shows comes, once, in one batch or another."""
    table = shared.table("t")
    assert fails_in_batch(table.read_stream(), tmp_path / "c", 0) == []
    execute(sqlite_catalog, *between, EXPIRE)
    with pytest.raises(Exception, match=r"was expired before all of its rows were read.*failOnDataLoss=false"):
        collected(table.read_stream(), tmp_path / "c")
    stream = table.read_stream(fail_on_data_loss=False)
    assert all_rows(collected(stream, tmp_path / "c")) == told(sqlite_catalog, "FROM t")
    execute(sqlite_catalog, "INSERT INTO t VALUES (400, 'later')")
    assert collected(stream, tmp_path / "c") == [[(400, "later")]]


@pytest.mark.slow
def test_what_an_expired_snapshot_wrote_anew_comes_again(shared: Lake, sqlite_catalog: Catalog, tmp_path: Path) -> None:
    """It may have updated these rows, for all that is known: docs/streaming.md says so."""
    stream = shared.table("t").read_stream(fail_on_data_loss=False)
    assert len(all_rows(collected(stream, tmp_path / "c"))) == 27
    execute(sqlite_catalog, "DELETE FROM t WHERE id = 3", REWRITE, "INSERT INTO t VALUES (400, 'later')", EXPIRE)
    again = all_rows(collected(stream, tmp_path / "c"))
    assert len(again) > 20
    assert set(again) <= set(told(sqlite_catalog, "FROM t"))


@pytest.mark.parametrize("changes", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_what_is_left_of_an_expired_beginning_is_given_as_the_oldest_kept_snapshot_shows_it(
    shared: Lake, sqlite_catalog: Catalog, tmp_path: Path, changes: bool
) -> None:
    """The first part was given, the second was noted and not given, and the rest was not asked for."""
    table = shared.table("t")

    def stream() -> DataFrame:
        return table.read_stream(max_rows_per_trigger=10, fail_on_data_loss=False, changes=changes)

    given = fails_in_batch(stream(), tmp_path / "c", 1)
    assert 0 < len(given) <= 10
    ids = ", ".join(str(row[-2]) for row in given)
    [[last]] = told(sqlite_catalog, f"SELECT max(rowid) FROM t WHERE id IN ({ids})")
    newest = execute(sqlite_catalog, *LATER[:2], REWRITE, LATER[2], EXPIRE)
    left = told(sqlite_catalog, f"SELECT id, name FROM t WHERE rowid > {last}")
    batches = collected(stream(), tmp_path / "c")
    assert sorted((row[-2:] for row in all_rows(batches)), key=repr) == left
    assert len(batches) > 2
    if changes:
        assert {(row[0], row[2]) for row in all_rows(batches)} == {(newest, "insert")}
    execute(sqlite_catalog, "INSERT INTO t VALUES (400, 'later')", "UPDATE t SET name = 'newer' WHERE id = 3")
    more = all_rows(collected(stream(), tmp_path / "c"))
    assert {row[-2:] for row in more} >= {(400, "later"), (3, "newer")}
    assert len(more) == (3 if changes else 2)


def test_a_query_starts_again_where_a_source_had_nothing_new(
    shared: Lake, sqlite_catalog: Catalog, tmp_path: Path
) -> None:
    """Spark asks for the last batch of each source again, from an offset to the same offset."""
    execute(sqlite_catalog, "CREATE TABLE other AS SELECT 7 AS id, 'o' AS name")
    both = shared.table("t").read_stream().union(shared.table("other").read_stream())
    assert len(all_rows(collected(both, tmp_path / "a"))) == 28
    execute(sqlite_catalog, "INSERT INTO other VALUES (8, 'o')")
    assert all_rows(collected(both, tmp_path / "a")) == [(8, "o")]
    assert all_rows(collected(both, tmp_path / "a")) == []
    execute(
        sqlite_catalog,
        "CREATE TABLE moments AS SELECT TIMESTAMPTZ '2024-01-01 00:00:00+00' + to_minutes(i) AS at FROM range(90) r(i)",
    )
    moments = shared.table("moments").read_stream()
    windows = moments.withWatermark("at", "1 minute").groupBy(F.window("at", "10 minutes")).count().select("count")
    assert all_rows(collected(windows, tmp_path / "b")) == [(10,)] * 8
    execute(sqlite_catalog, "INSERT INTO moments VALUES (TIMESTAMPTZ '2024-01-01 05:00:00+00')")
    assert all_rows(collected(windows, tmp_path / "b")) == [(10,)]


def test_a_start_that_was_expired_does_not_matter_to_a_checkpoint(
    shared: Lake, sqlite_catalog: Catalog, tmp_path: Path
) -> None:
    table, start = shared.table("t"), shared.current_snapshot().id + 1
    assert collected(table.read_stream(start=start), tmp_path / "c") == []
    execute(sqlite_catalog, "INSERT INTO t VALUES (400, 'a')")
    assert collected(table.read_stream(start=start), tmp_path / "c") == [[(400, "a")]]
    execute(sqlite_catalog, "INSERT INTO t VALUES (401, 'b')")
    shared.expire_snapshots(keep_last=1)
    assert collected(table.read_stream(start=start), tmp_path / "c") == [[(401, "b")]]
    with pytest.raises(Exception, match="were expired before the stream"):
        collected(table.read_stream(start=start), tmp_path / "d")


def test_a_query_over_the_stream_reads_only_what_it_needs(shared: Lake, tmp_path: Path) -> None:
    """Filters and columns go down to the files, joins inside stay plain, and an aggregation has state."""
    stream = shared.table("t").read_stream()
    counted = stream.where("id > 100").groupBy("name").count()
    kept: list[Any] = []
    query = counted.writeStream.outputMode("complete").option("checkpointLocation", str(tmp_path / "c"))
    finished(query.foreachBatch(lambda rows, _: kept.extend(rows.collect())).trigger(**NOW).start())
    assert [(row.name, row["count"]) for row in kept] == [("quo'te /=%$ 🦆", 1)]
    plain = shared.create_table(
        "plain", stream.sparkSession.range(50).selectExpr("CAST(id AS INT) AS id", "'x' AS name")
    )
    selected = plain.read_stream().where("id > 25").select("id")
    writer = selected.writeStream.option("checkpointLocation", str(tmp_path / "d")).foreachBatch(lambda *_: None)
    plan = finished(writer.trigger(**NOW).start())._jsq.explainInternal(False)
    assert "PushedFilters: [IsNotNull(id), GreaterThan(id,25)]" in plan
    assert "ReadSchema: struct<id:int>" in plan


def test_names_of_tables_are_streams_too(
    sqlite_catalog: Catalog, shared: Lake, spark: SparkSession, tmp_path: Path
) -> None:
    shared.register("streamed")
    shown = told(sqlite_catalog, "FROM t")
    assert all_rows(collected(spark.readStream.table("streamed.main.t"), tmp_path / "a")) == shown
    by_format = spark.readStream.format("ducklake").option("lake", "streamed").option("table", "t")
    assert all_rows(collected(by_format.load(), tmp_path / "b")) == shown
    limited = by_format.option("maxRowsPerTrigger", 5).option("changes", "true").load()
    assert len(collected(limited, tmp_path / "d")) > 3
    with pytest.raises(Exception, match="has the table's columns, and no changes"):
        spark.readStream.option("changes", "true").table("streamed.t")


def test_options_of_a_stream_by_the_format(
    sqlite_catalog: Catalog, shared: Lake, spark: SparkSession, tmp_path: Path
) -> None:
    version = shared.current_snapshot().id + 1
    last = execute(sqlite_catalog, *MORE)
    [[time]] = told(sqlite_catalog, f"SELECT snapshot_time FROM lk.snapshots() WHERE snapshot_id = {version + 3}")

    def batches(place: str, **options: object) -> list[list[tuple[Any, ...]]]:
        reader = spark.readStream.format("ducklake").option("lake", sqlite_catalog.uri).option("table", "t")
        return collected(reader.options(**options).load(), tmp_path / place)  # type: ignore[arg-type]

    single = batches("a", startingVersion=version, maxSnapshotsPerTrigger=1)
    assert [len(batch) for batch in single] == [40, 3, 1]
    feed = f"SELECT id, name FROM ducklake_table_insertions('lk', 'main', 't', {version}, {last})"
    assert all_rows(single) == told(sqlite_catalog, feed)
    assert batches("b", starting_timestamp=str(time)) == [[(300, "")]]
    few = batches("c", startingVersion=version, maxRowsPerTrigger=10, changes="true")
    assert max(map(len, few[:4])) <= 10
    assert all_rows(few) == told(sqlite_catalog, f"FROM ducklake_table_changes('lk', 'main', 't', {version}, {last})")
    execute(sqlite_catalog, EXPIRE)
    with pytest.raises(Exception, match="failOnDataLoss=false"):
        batches("d", startingVersion=version)
    passed = batches("d", startingVersion=version, failOnDataLoss="false")
    assert {row[0] for row in all_rows(passed)} >= {1, 100, 201, *range(203, 240), 300}
    for options, complaint in (
        (
            {"startingVersion": version, "startingTimestamp": str(time)},
            "startingVersion or startingTimestamp, not both",
        ),
        ({"startingVersion": "soon"}, "the option startingVersion cannot be 'soon'"),
        ({"maxRowsPerTrigger": 0}, "max_rows_per_trigger cannot be 0"),
        ({"failOnDataLoss": "perhaps"}, "is true or false"),
        ({"startingVersion": last + 2}, "does not exist, and the next one is"),
    ):
        with pytest.raises(Exception, match=complaint):
            batches("e", **options)


@pytest.mark.slow
def test_a_stream_from_lake_to_lake_follows_every_change(
    shared: Lake, sqlite_catalog: Catalog, spark: SparkSession, tmp_path: Path
) -> None:
    target_uri = f"ducklake:sqlite:{tmp_path}/target.sqlite"
    with penstock.attach(target_uri, data_path=f"{tmp_path}/target/", spark=spark) as copies:
        copy = copies.create_table("copy", "row BIGINT, id INTEGER, name STRING")

        def apply(rows: DataFrame, batch: int) -> None:
            last = F.row_number().over(
                Window.partitionBy("rowid").orderBy(
                    F.desc("snapshot_id"), F.desc(F.col("change_type") != "update_preimage")
                )
            )
            newest = rows.withColumn("n", last).where("n = 1").selectExpr("rowid AS row", "id", "name", "change_type")
            with copies.write_once(stream="copy", batch=batch):
                (
                    copy.merge(newest, on="row")
                    .when_matched_delete("source.change_type = 'delete'")
                    .when_matched_update({"id": "source.id", "name": "source.name"})
                    .when_not_matched_insert(
                        {"row": "source.row", "id": "source.id", "name": "source.name"},
                        "source.change_type <> 'delete'",
                    )
                    .execute()
                )

        for statements in ((), MORE[:2], MORE[2:], ("DELETE FROM t WHERE id < 10", "UPDATE t SET id = -id")):
            execute(sqlite_catalog, *statements)
            run(shared.table("t").read_stream(changes=True, max_rows_per_trigger=7), tmp_path / "c", apply)
            forget_last_batch(tmp_path / "c")
            run(shared.table("t").read_stream(changes=True), tmp_path / "c", apply)
            rows = sorted((tuple(row)[1:] for row in copy.read().collect()), key=repr)
            assert rows == told(sqlite_catalog, "FROM t")


def test_what_is_no_stream_is_refused(shared: Lake, spark: SparkSession, tmp_path: Path) -> None:
    table = shared.table("t")
    for arguments, kind, complaint in (
        ({"max_rows_per_trigger": 0}, InvalidError, "max_rows_per_trigger cannot be 0"),
        ({"start": -1}, InvalidError, "start cannot be -1"),
        ({"start": 999}, NotFoundError, "snapshot 999 does not exist, and the next one is"),
        ({"start": datetime(2999, 1, 1, tzinfo=UTC)}, NotFoundError, "no snapshot at or after"),
    ):
        with pytest.raises(kind, match=complaint):
            table.read_stream(**arguments)  # type: ignore[arg-type]
    reader = spark.readStream.format("ducklake").option("lake", str(tmp_path))
    with pytest.raises(Exception, match="needs the option table"):
        reader.load()
    with pytest.raises(Exception, match="neither a lake of this session nor a location"):
        reader.option("table", "t").load()
    with pytest.raises(Exception, match="has no option colour"):
        reader.option("table", "t").option("colour", "red").load()
    shared.register("odd")
    with pytest.raises(Exception, match="it is truncate or long"):
        spark.readStream.option("nanoseconds", "some").table("odd.t")
    writer = table.read_stream().writeStream.format("ducklake").option("lake", "odd").option("table", "t")
    with pytest.raises(Exception, match="has no option path"):
        writer.option("checkpointLocation", str(tmp_path / "c")).start(str(tmp_path / "elsewhere"))
