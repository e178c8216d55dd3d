"""Streams into tables: every batch is there once, whatever was repeated, and DuckDB may do anything in between."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery

import penstock
from penstock import Lake
from penstock.ducklake.streaming import stream_writer
from penstock.ducklake.streaming.stream_writer import StreamWriter
from penstock.errors import ConflictError, InvalidError, NotFoundError
from support.catalogs import Catalog
from support.streams import NOW, Arrivals, finished, forget_last_batch

SCHEMA = "id BIGINT, name STRING"
BETWEEN = (
    "INSERT INTO t VALUES (1000, 'DuckDB''s')",
    "CALL lk.merge_adjacent_files()",
    "COMMENT ON TABLE t IS 'a comment'",
    "CALL ducklake_expire_snapshots('lk', older_than => now())",
)


@pytest.fixture
def lake(catalog: Catalog, spark: SparkSession) -> Iterator[Lake]:
    with penstock.attach(catalog.uri, data_path=catalog.data_path, spark=spark) as lake:
        lake.create_table("t", SCHEMA)
        yield lake


@pytest.fixture
def shared(sqlite_catalog: Catalog, spark: SparkSession) -> Iterator[Lake]:
    """On a catalog that DuckDB may use at the same time."""
    with penstock.attach(sqlite_catalog.uri, data_path=sqlite_catalog.data_path, spark=spark) as lake:
        lake.create_table("t", SCHEMA)
        yield lake


@pytest.fixture
def arrivals(spark: SparkSession, tmp_path: Path) -> Arrivals:
    return Arrivals(spark, tmp_path / "arrivals", SCHEMA)


def duckdb_rows(catalog: Catalog, lake: Lake, sql: str = "FROM t ORDER BY ALL") -> list[tuple[Any, ...]]:
    """What DuckDB reads; a DuckDB file is its alone meanwhile."""
    lake.close()
    with catalog.reference() as reference:
        return reference.rows(sql)


def test_batches_are_appended_once(catalog: Catalog, lake: Lake, arrivals: Arrivals, tmp_path: Path) -> None:
    checkpoint, table = tmp_path / "checkpoint", lake.table("t")

    def run() -> None:
        finished(table.write_stream(arrivals.stream(), checkpoint=str(checkpoint), name="in'gest 🦆", trigger=NOW))

    arrivals.arrive((1, "one"), (2, None))
    arrivals.arrive((3, ""), (4, "quo'te /=%$ 🦆"))
    run()
    before = lake.current_snapshot().id
    run()
    assert forget_last_batch(checkpoint) == 1
    run()
    assert lake.current_snapshot().id == before
    arrivals.arrive(*((i, f"many {i}") for i in range(5, 50)))
    run()
    told = lake.streams().collect()
    assert [(row.stream, row.table_name, row.batch) for row in told] == [("in'gest 🦆", "t", 2)]
    assert lake.current_snapshot().commit_message == "batch 2 of stream in'gest 🦆"
    assert json.loads(lake.current_snapshot().commit_extra_info or "") == {"stream": "in'gest 🦆", "batch": 2}
    assert lake.table("t").files().count() == 1  # of the batch that is not small
    wanted = [(1, "one"), (2, None), (3, ""), (4, "quo'te /=%$ 🦆"), *((i, f"many {i}") for i in range(5, 50))]
    assert duckdb_rows(catalog, lake) == wanted


@pytest.mark.parametrize("way", ["append", "merge", "format", "without memory"])
def test_a_batch_that_is_repeated_after_anything_is_there_once(
    sqlite_catalog: Catalog, spark: SparkSession, tmp_path: Path, way: str
) -> None:
    """The driver dies between the lake's commit and Spark's; then DuckDB changes what it likes."""
    arrivals, checkpoint = Arrivals(spark, tmp_path / "arrivals", SCHEMA), str(tmp_path / "checkpoint")
    with penstock.attach(sqlite_catalog.uri, data_path=sqlite_catalog.data_path, spark=spark) as lake:
        table = lake.create_table("t", SCHEMA)

        def run() -> None:
            stream = arrivals.stream()
            if way == "append":
                query = table.write_stream(stream, checkpoint=checkpoint, trigger=NOW)
            elif way == "merge":
                query = table.write_stream(
                    stream.withColumn("id", F.col("id") % 1000),
                    checkpoint=checkpoint,
                    merge=lambda merge: merge.when_matched_update().when_not_matched_insert(),
                    on="id",
                    trigger=NOW,
                )
            elif way == "format":
                writer = stream.writeStream.format("ducklake").option("lake", sqlite_catalog.uri).option("table", "t")
                query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
            else:
                writer = stream.writeStream.foreachBatch(lambda rows, _: table.append(rows) and None)
                query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
            finished(query)

        arrivals.arrive(*((i, "first") for i in range(100)))
        arrivals.arrive(*((i, "second") for i in range(100, 200)))
        run()
        with sqlite_catalog.reference() as reference:
            reference.execute(*BETWEEN)
        forget_last_batch(Path(checkpoint))
        run()
        arrivals.arrive((200, "third"))
        run()
        with sqlite_catalog.reference() as reference:
            count = reference.value("SELECT count(*) FROM t WHERE id < 1000")
            assert count == (301 if way == "without memory" else 201)
            assert reference.value("SELECT count(DISTINCT id) FROM t WHERE id < 1000") == 201


@pytest.mark.one_catalog
def test_several_tables_in_one_batch(catalog: Catalog, lake: Lake, spark: SparkSession) -> None:
    orders, totals = lake.table("t"), lake.create_table("totals", "n BIGINT")

    def write(batch: int) -> bool:
        with lake.write_once(stream="s", batch=batch) as found:
            orders.append([(batch, "row")])
            totals.append(spark.range(batch, batch + 1))
        return found.is_new

    assert [write(n) for n in (0, 0, 1, 0, 1, 2)] == [True, False, True, False, False, True]
    with pytest.raises(ZeroDivisionError), lake.write_once(stream="s", batch=3):
        orders.append([(3 // 0, "gone")])
    with lake.write_once(stream="s", batch=4):
        pass
    assert [row.batch for row in lake.streams().collect()] == [2, 2]
    with lake.write_once(stream="s", batch=5):
        lake.create_table("fresh", "n BIGINT").append([(1,)])
    assert write(5) is False
    rows = duckdb_rows(catalog, lake, "SELECT id, (SELECT count(*) FROM totals) FROM t ORDER BY 1")
    assert rows == [(0, 3), (1, 3), (2, 3)]


@pytest.mark.parametrize("kind", ["sqlite", "mysql"])
def test_streams_of_similar_names_are_others(kind: str, request: pytest.FixtureRequest, spark: SparkSession) -> None:
    """MySQL compares texts without regard to case, accents and blanks at their end."""
    catalog: Catalog = request.getfixturevalue(f"{kind}_catalog")
    names = ("Orders", "orders", "orders ", "órders", "o%", "o_", "🦆", "🦊", "x" * 1000)
    with penstock.attach(catalog.uri, data_path=catalog.data_path, spark=spark) as lake:
        table = lake.create_table("t", SCHEMA)
        for turn in range(2):
            for name in names:
                with lake.write_once(stream=name, batch=0) as found:
                    assert found.is_new == (turn == 0)
                    table.append([(0, "row")])
        assert table.read().count() == len(names)
        lake.forget_stream("orders")
        assert {row.stream for row in lake.streams().collect()} == {*names} - {"orders"}


def test_tags_of_others_are_left_alone(sqlite_catalog: Catalog, shared: Lake) -> None:
    number = shared.table("t").info.id
    sqlite_catalog.tamper(f"INSERT INTO ducklake_tag VALUES ({number}, 0, NULL, 'penstock.stream.theirs', 'hello')")
    with shared.write_once(stream="s", batch=3):
        shared.table("t").append([(1, "one")])
    assert [(row.stream, row.batch) for row in shared.streams().collect()] == [("s", 3)]
    assert shared.table("t").tags["penstock.stream.theirs"] == "hello"


def test_of_two_runs_of_a_stream_one_writes(shared: Lake) -> None:
    lake, table = shared, shared.table("t")
    for batch, complaint in ((0, "another run of stream s has written"), (2, "has batch 1 of it now")):
        with pytest.raises(ConflictError, match=complaint):
            _write_slowly(lake, batch, meanwhile=batch // 2)
    assert sorted(row.name for row in table.read().collect()) == ["other 0", "other 1"]


def _write_slowly(lake: Lake, batch: int, meanwhile: int) -> None:
    with lake.write_once(stream="s", batch=batch):
        lake.table("t").append([(batch, "slow")])
        _in_another_process(lake, meanwhile)


def _in_another_process(lake: Lake, batch: int) -> None:
    """Another thread has transactions of its own, as another process has."""

    def write() -> None:
        with lake.write_once(stream="s", batch=batch):
            lake.table("t").append([(batch, f"other {batch}")])

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()


def test_a_new_checkpoint_under_an_old_name_is_refused(
    sqlite_catalog: Catalog, spark: SparkSession, tmp_path: Path
) -> None:
    """Its batches count from 0 again, and all of them would be passed over."""
    arrivals = Arrivals(spark, tmp_path / "arrivals", SCHEMA)
    arrivals.arrive((1, "one"))
    with penstock.attach(sqlite_catalog.uri, data_path=sqlite_catalog.data_path, spark=spark) as lake:
        table = lake.create_table("t", SCHEMA)
        finished(table.write_stream(arrivals.stream(), checkpoint=f"{tmp_path}/a", name="s", trigger=NOW))
        with pytest.raises(Exception, match=r"was written by another query.*forget_stream"):
            finished(table.write_stream(arrivals.stream(), checkpoint=f"{tmp_path}/b", name="s", trigger=NOW))
        assert table.read().count() == 1
        lake.forget_stream("s")
        finished(table.write_stream(arrivals.stream(), checkpoint=f"{tmp_path}/b", name="s", trigger=NOW))
        assert table.read().count() == 2
        with pytest.raises(NotFoundError, match="remembers no stream 'other'"):
            lake.forget_stream("other")
    with sqlite_catalog.reference() as reference:
        assert reference.value("SELECT count(*) FROM t") == 2
        [[tags]] = reference.rows("SELECT tags FROM duckdb_tables() WHERE table_name = 't'")
        [text] = [text for key, text in tags.items() if key.startswith("penstock.stream.")]
        assert (json.loads(text)["stream"], json.loads(text)["batch"]) == ("s", 0)


def test_complete_mode_replaces_all_rows(sqlite_catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    arrivals = Arrivals(spark, tmp_path / "arrivals", SCHEMA)
    with penstock.attach(sqlite_catalog.uri, data_path=sqlite_catalog.data_path, spark=spark) as lake:
        sums = lake.create_table("sums", "name STRING, n BIGINT")
        for rows in ([(1, "a"), (2, "b")], [(3, "a")]):
            arrivals.arrive(*rows)
            counted = arrivals.stream().groupBy("name").agg(F.count("*").alias("n"))
            finished(sums.write_stream(counted, checkpoint=f"{tmp_path}/c", output_mode="complete", trigger=NOW))
    with sqlite_catalog.reference() as reference:
        assert reference.rows("FROM sums ORDER BY 1") == [("a", 2), ("b", 1)]


def test_maintenance_keeps_files_few(sqlite_catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    arrivals = Arrivals(spark, tmp_path / "arrivals", SCHEMA)
    for batch in range(6):
        arrivals.arrive(*((batch * 20 + i, f"{i}") for i in range(20 if batch % 2 else 3)))
    with penstock.attach(sqlite_catalog.uri, data_path=sqlite_catalog.data_path, spark=spark) as lake:
        lake.set_option("expire_older_than", "0 seconds")
        table = lake.create_table("t", SCHEMA)
        finished(table.write_stream(arrivals.stream(), checkpoint=f"{tmp_path}/c", maintain=3, trigger=NOW))
        assert table.files().count() == 1
        assert lake.snapshots().count() <= 3
        assert lake.streams().collect()[0].batch == 5
    with sqlite_catalog.reference() as reference:
        assert reference.rows("SELECT count(*), count(DISTINCT id) FROM t") == [(69, 69)]


def test_maintenance_that_fails_stops_no_stream_and_is_tried_again(
    sqlite_catalog: Catalog,
    spark: SparkSession,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where Penstock says why, as a file is not there, and where Spark fails in its own words."""
    with penstock.attach(sqlite_catalog.uri, data_path=sqlite_catalog.data_path, spark=spark) as lake:
        table = lake.create_table("t", SCHEMA)
        writer = StreamWriter(lake._attachment, lambda: table.info, table.append, "s", maintain=1)

        def add(batch: int) -> list[str]:
            caplog.clear()
            rows = spark.range(batch * 50, batch * 50 + 50, numPartitions=1).selectExpr("id", "'x' AS name")
            writer.add(rows, batch)
            return [record.getMessage() for record in caplog.records if record.name == "penstock"]

        assert add(0) == []
        [file] = Path(sqlite_catalog.data_path).rglob("*.parquet")
        kept = file.rename(tmp_path / "kept.parquet")
        [missing] = add(1)
        assert file.name in missing
        kept.rename(file)
        with monkeypatch.context() as patch:
            patch.setattr(stream_writer, "expire_snapshots", lambda *_: spark.sql("SELECT raise_error('no')").collect())
            [failed] = add(2)
        assert "USER_RAISED_EXCEPTION" in failed
        for told in (missing, failed):
            assert "is tried again later" in told
            assert told.isprintable()
        assert table.files().count() == 3
        assert add(3) == []
        assert table.files().count() == 1
    with sqlite_catalog.reference() as reference:
        assert reference.rows("SELECT count(*), count(DISTINCT id) FROM t") == [(200, 200)]


@pytest.mark.parametrize("way", ["append", pytest.param("merge", marks=pytest.mark.slow), "format"])
def test_small_batches_make_no_files(
    sqlite_catalog: Catalog, shared: Lake, arrivals: Arrivals, tmp_path: Path, way: str
) -> None:
    table, place = shared.table("t"), str(tmp_path / "c")
    for batch in range(2):
        arrivals.arrive((batch, "small"), (batch + 10, None))
    stream = arrivals.stream()
    if way == "format":
        writer = stream.writeStream.format("ducklake").option("lake", sqlite_catalog.uri).option("table", "t")
        finished(writer.option("checkpointLocation", place).trigger(availableNow=True).start())
    elif way == "merge":
        finished(
            table.write_stream(
                stream, checkpoint=place, on="id", merge=lambda m: m.when_not_matched_insert(), trigger=NOW
            )
        )
    else:
        finished(table.write_stream(stream, checkpoint=place, trigger=NOW))
    assert table.files().count() == 0
    assert not list(Path(sqlite_catalog.data_path).rglob("*.parquet"))
    with sqlite_catalog.reference() as reference:
        assert reference.rows("SELECT * FROM t ORDER BY id") == [(0, "small"), (1, "small"), (10, None), (11, None)]
        assert reference.value("SELECT count(*) FROM __ducklake_metadata_lk.ducklake_data_file") == 0


@pytest.mark.parametrize("by_format", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_queries_that_go_on_in_their_own_time_start_again(
    sqlite_catalog: Catalog, shared: Lake, spark: SparkSession, tmp_path: Path, by_format: bool
) -> None:
    """From table to table with the trigger processingTime, as services have it."""
    table, copy, trigger = shared.table("t"), shared.create_table("copy", SCHEMA), {"processingTime": "0 seconds"}

    def start() -> StreamingQuery:
        if not by_format:
            return copy.write_stream(table.read_stream(), checkpoint=f"{tmp_path}/c", trigger=trigger)
        reader = spark.readStream.format("ducklake").option("lake", sqlite_catalog.uri).option("table", "t")
        writer = reader.load().writeStream.format("ducklake").option("lake", sqlite_catalog.uri)
        writer = writer.option("table", "copy").option("checkpointLocation", f"{tmp_path}/c")
        return writer.trigger(processingTime="0 seconds").start()

    wanted: list[tuple[int, str]] = []
    for turn in range(2):
        query = start()
        try:
            for number in range(2):
                row = (turn * 10 + number, f"{turn}")
                table.append([row])
                query.processAllAvailable()
                wanted.append(row)
                assert sorted(tuple(found) for found in copy.read().collect()) == wanted
        finally:
            query.stop()
        assert query.exception() is None
        with sqlite_catalog.reference() as reference:
            assert reference.rows("FROM copy ORDER BY id") == wanted
            wanted.append((turn * 10 + 5, "DuckDB's"))
            reference.execute(f"INSERT INTO t VALUES ({turn * 10 + 5}, 'DuckDB''s')")


def test_what_cannot_be_streamed_is_refused(
    sqlite_catalog: Catalog, shared: Lake, arrivals: Arrivals, spark: SparkSession, tmp_path: Path
) -> None:
    lake, table, place, before = shared, shared.table("t"), str(tmp_path / "c"), shared.current_snapshot().id

    def merged(merge: penstock.ducklake.merge.Merge) -> penstock.ducklake.merge.Merge:
        return merge.when_matched_update()

    stream = arrivals.stream()
    by_format = stream.writeStream.format("ducklake").option("lake", sqlite_catalog.uri).option("table", "t")
    with pytest.raises(InvalidError, match="partitionBy cannot change how it is partitioned: leave it out"):
        by_format.option("checkpointLocation", place).partitionBy("name").start()
    for arguments, complaint in (
        ({"maintain": 0}, "maintain cannot be 0"),
        ({"name": ""}, "is no name of a stream"),
        ({"merge": merged}, "takes both"),
        ({"on": "id"}, "takes both"),
        ({"output_mode": "update"}, "give merge and on"),
        ({"output_mode": "sideways"}, "is none of append, update, complete"),
        ({"merge": merged, "on": "id", "output_mode": "complete"}, "a merge would leave those"),
    ):
        with pytest.raises(InvalidError, match=complaint):
            table.write_stream(stream, checkpoint=place, **arguments)  # type: ignore[arg-type]
    with pytest.raises(InvalidError, match="takes a streaming DataFrame"):
        table.write_stream(spark.range(1), checkpoint=place)
    for stream_name, batch in (("", 1), (None, 1), ("s", -1), ("s", True), ("s", "1")):
        with pytest.raises(InvalidError, match="is no "), lake.write_once(stream=stream_name, batch=batch):  # type: ignore[arg-type]
            table.append([(1, "never")])
    with pytest.raises(InvalidError, match="inside a transaction"), lake.transaction():  # noqa: SIM117
        with lake.write_once(stream="s", batch=1):
            pass
    with pytest.raises(InvalidError, match="changes no table"), lake.write_once(stream="s", batch=1):
        lake.create_schema("only")
    assert lake.current_snapshot().id == before
    assert not Path(place).exists()


def test_a_conflict_of_a_batch_is_tried_again(sqlite_catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    """DuckDB changes the table's definition while a batch is written: the batch is written anew."""
    arrivals = Arrivals(spark, tmp_path / "arrivals", SCHEMA)
    arrivals.arrive((1, "one"))
    tried: list[int] = []
    with penstock.attach(sqlite_catalog.uri, data_path=sqlite_catalog.data_path, spark=spark) as lake:
        table = lake.create_table("t", SCHEMA)

        def merge(found: Any) -> Any:
            if not tried:
                with sqlite_catalog.reference() as reference:
                    reference.execute("ALTER TABLE t ADD COLUMN more INTEGER")
            tried.append(1)
            return found.when_not_matched_insert()

        query = table.write_stream(arrivals.stream(), checkpoint=f"{tmp_path}/c", merge=merge, on="id", trigger=NOW)
        finished(query)
        assert len(tried) == 2
        assert [tuple(row) for row in table.read().collect()] == [(1, "one", None)]
