"""Streams whose driver and JVM are killed, at each moment around a commit: every row is there, and only once.

The control, which remembers nothing, shows the batch twice.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import penstock
from penstock import Lake
from support.catalogs import Catalog
from support.processes import environment
from support.streams import Arrivals, finished

SCHEMA = "id BIGINT, name STRING"
BETWEEN = (
    "INSERT INTO t VALUES (1000, 'DuckDB''s')",
    "CALL lk.merge_adjacent_files()",
    "CALL ducklake_flush_inlined_data('lk')",
    "CALL ducklake_expire_snapshots('lk', older_than => now())",
)
WAYS = ("append", "merge", "two tables", "write_stream", "format")
DRIVER = """
import os, signal, sys
import penstock
from penstock.ducklake.streaming.stream_writer import StreamWriter
from support.small_sessions import SMALL
from test_killed_streams import start

uri, data_path, arrivals, checkpoint, way, moment = sys.argv[1:]
spark = penstock.session("local[2]", **SMALL)
lake = penstock.attach(uri, data_path=data_path, spark=spark)
jvm = spark._jvm.java.lang.ProcessHandle.current().pid()

def die():
    os.kill(jvm, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)

def write(put):
    # The batch is the second: the first is whole.
    def written(rows, batch):
        if batch == 1 and moment == "before":
            die()
        put(rows, batch)
        if batch == 1 and moment == "after":
            die()
    return written

if moment == "inside":
    from penstock.ducklake.catalog.commits import commit
    plain = commit._write
    def dying(*arguments):
        made = plain(*arguments)
        if "batch 1" in (made.commit_message or ""):
            die()
        return made
    commit._write = dying
if way in ("write_stream", "format"):  # their batches are Penstock's own calls
    plain_add = StreamWriter.add
    StreamWriter.add = lambda self, rows, batch: write(lambda rows, batch: plain_add(self, rows, batch))(rows, batch)
start(spark, lake, uri, arrivals, checkpoint, way, write).awaitTermination(120)
"""


def start(spark, lake, uri, arrivals, checkpoint, way, around):  # type: ignore[no-untyped-def]
    """A query that writes each file that arrived as a batch, by a way; `around` may do something around one of ours."""
    table, other = lake.table("t"), lake.table("other")

    def append(rows: DataFrame, batch: int) -> None:
        with lake.write_once(stream="s", batch=batch):
            table.append(rows)

    def merge(rows: DataFrame, batch: int) -> None:
        with lake.write_once(stream="s", batch=batch):
            table.merge(rows, on="id").when_matched_update().when_not_matched_insert().execute()

    def both(rows: DataFrame, batch: int) -> None:
        with lake.write_once(stream="s", batch=batch):
            table.append(rows)
            other.append(rows)

    def forgetful(rows: DataFrame, batch: int) -> None:
        table.append(rows)

    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(arrivals)
    if way == "write_stream":
        return table.write_stream(stream, checkpoint=checkpoint, trigger={"availableNow": True}, maintain=2)
    if way == "format":
        writer = stream.writeStream.format("ducklake").option("lake", uri).option("table", "t")
        return writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    put = {"append": append, "merge": merge, "two tables": both, "without memory": forgetful}[way]
    writer = stream.writeStream.option("checkpointLocation", checkpoint).foreachBatch(around(put))
    return writer.trigger(availableNow=True).start()


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(
    ("way", "moment"),
    [
        *((way, moment) for way in WAYS for moment in ("before", "inside", "after")),
        ("without memory", "after"),
    ],
)
def test_a_killed_stream_goes_on(
    sqlite_catalog: Catalog, spark: SparkSession, tmp_path: Path, way: str, moment: str
) -> None:
    arrivals, checkpoint = Arrivals(spark, tmp_path / "arrivals", SCHEMA), str(tmp_path / "checkpoint")
    for batch in range(3):
        arrivals.arrive(*((batch * 100 + i, f"{batch}") for i in range(100)))
    with penstock.attach(sqlite_catalog.uri, data_path=sqlite_catalog.data_path, spark=spark) as lake:
        lake.create_table("t", SCHEMA)
        lake.create_table("other", SCHEMA)
        given = [sqlite_catalog.uri, sqlite_catalog.data_path, str(arrivals.folder), checkpoint, way, moment]
        paths = f"{environment()['PYTHONPATH']}:{Path(__file__).parent}"
        run = subprocess.run(
            [sys.executable, "-c", DRIVER, *given], env={**environment(), "PYTHONPATH": paths}, capture_output=True
        )
        assert run.returncode == -9, run.stderr[-3000:].decode()
        with sqlite_catalog.reference() as reference:
            there = reference.value("SELECT count(*) FROM t")
            assert there == (200 if moment == "after" else 100)
            reference.execute(*BETWEEN)
        finished(start(spark, lake, sqlite_catalog.uri, str(arrivals.folder), checkpoint, way, lambda put: put))
        _check(lake, sqlite_catalog, way)


def _check(lake: Lake, catalog: Catalog, way: str) -> None:
    tables = ("t", "other") if way == "two tables" else ("t",)
    with catalog.reference() as reference:
        for table in tables:
            told = reference.rows(f"SELECT count(*), count(DISTINCT id) FROM {table} WHERE id < 1000")
            assert told == [(400 if way == "without memory" else 300, 300)]
        assert reference.value("SELECT count(*) FROM t WHERE id = 1000") == 1
    assert all(lake.table(table).read().where("id < 1000").distinct().count() == 300 for table in tables)
