"""Workers that outlive their tasks: what they write when the statement has failed does not stay."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.ducklake.writing import write_target
from penstock.schema.columns import Column
from penstock.schema.types import parse_type
from penstock.spark.write_job import WriteJob
from penstock.storage.duckdb_files import connect_duckdb
from penstock.storage.ended_tasks import TaskEndedError
from penstock.storage.parquet import FileOptions, WritePlan, write_files
from penstock.storage.parquet.duckdb_copy import copy_rows
from support.catalogs import Catalog
from support.writing import attached, files_of

LONGEST_WAIT = 20.0  # seconds
NUMBER = Column(1, "n", parse_type("int64"), 0)


def wait_for(path: Path) -> None:
    end = time.monotonic() + LONGEST_WAIT
    while not path.exists():
        assert time.monotonic() < end, f"{path} did not come"
        time.sleep(0.01)


def late_job(go: Path, done: Path) -> type[WriteJob]:
    """A job that reads its first rows, and waits then for a file before it reads on."""
    wait = wait_for

    class LateJob(WriteJob):
        def files(self, batches: Any) -> Iterator[Any]:
            wait(go)
            try:
                yield from WriteJob.files(self, batches)
            finally:
                done.touch()

    return LateJob


def test_the_worker_of_a_task_that_failed_leaves_no_file(
    file_catalog: Catalog, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, done = tmp_path / "go", tmp_path / "done"
    rows = "SELECT IF(id = 99999, raise_error('broken'), id) AS id FROM range(0, 100000, 1, 1)"
    with attached(file_catalog, spark) as lake:
        lake.set_option("data_inlining_row_limit", 0)
        table = lake.create_table("t", "id BIGINT")
        monkeypatch.setattr(write_target, "WriteJob", late_job(go, done))
        with pytest.raises(Exception, match="broken"):
            table.append(spark.sql(rows))
        go.touch()
        wait_for(done)
    assert not files_of(file_catalog)


# Without Spark: a worker's connection to it, and its end


def as_worker(connection: socket.socket, work: Callable[[], None]) -> None:
    """Do what a worker does, called as PySpark calls it."""
    names: dict[str, Any] = {"__package__": "pyspark"}
    exec("def main(infile, work):\n    work()", names)
    with connection.makefile("rb") as infile:
        names["main"](infile, work)


@pytest.mark.parametrize("unread", [b"", b"end"], ids=["all is read", "something is unread"])
def test_files_that_are_complete_after_the_end_of_the_task_go(tmp_path: Path, unread: bytes) -> None:
    ours, theirs = socket.socketpair()
    plan = WritePlan((NUMBER,), f"{tmp_path}/", FileOptions(), partition_names=("p",))
    rows = pa.RecordBatch.from_pydict({"n": [1, 2, 3], "p": ["a", "b", "c"]})

    def work() -> None:
        theirs.send(unread)
        files = write_files(plan, [rows])
        next(files), next(files)
        theirs.close()
        with pytest.raises(TaskEndedError):
            next(files)

    with ours:
        as_worker(ours, work)
    assert not list(tmp_path.rglob("*.parquet"))
    assert len(list(write_files(plan, [rows]))) == 3, "this process is no worker"


def test_a_copy_that_is_complete_after_the_end_of_the_task_goes(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    options = "FORMAT parquet, RETURN_STATS"

    def work() -> None:
        assert copy_rows(connect_duckdb(), "SELECT 1 AS n", f"{tmp_path}/1.parquet", options, None).rows == 1
        theirs.close()
        with pytest.raises(TaskEndedError):
            copy_rows(connect_duckdb(), "SELECT 1 AS n", f"{tmp_path}/2.parquet", options, None)

    with ours:
        as_worker(ours, work)
    assert [path.name for path in tmp_path.rglob("*.parquet")] == ["1.parquet"]
