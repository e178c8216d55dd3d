"""Rows of a DataFrame become Parquet files of a table, written by the tasks; what comes back is a line a file."""

from __future__ import annotations

import math
import pickle
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from penstock import errors
from penstock.errors import InvalidError, PenstockError
from penstock.model.statistics import WrittenFile
from penstock.model.types import Type
from penstock.partitioning import Day, Hour, Month, Transform, Year
from penstock.spark.assignment import MISFIT
from penstock.storage.parquet import WritePlan, delete_written, write_files
from penstock.storage.parquet.partitions import in_order

Distribution = Literal["auto", "none", "partition"]
_MOST_TASKS = 2**31 - 1
_RESULT = "file binary, rows binary"
_RESULT_ARROW = pa.schema([("file", pa.binary()), ("rows", pa.binary())])
_BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_ROWS_PER_BATCH = "65536"
_PARTS: dict[type[Transform], Callable[[SparkColumn], SparkColumn]] = {
    Year: F.year, Month: F.month, Day: F.dayofmonth, Hour: F.hour,
}  # fmt: skip
_RAISED = re.compile(r"penstock\.errors\.(\w+): (.*)")
_MISFIT = re.compile(re.escape(MISFIT) + r"(column .*? does not fit [\w(),]+)", re.DOTALL)
_LONGEST_WAIT = 30.0  # seconds, for tasks that are being killed


@dataclass(frozen=True)
class PartitionKey:
    """One place of the partition key: a column of the batches, by position, and what is made of it."""

    position: int
    type: Type
    transform: Transform


@dataclass(frozen=True)
class Job:
    """What every task does with its rows. A task with no more than `held_rows` gives them back instead of a file."""

    plan: WritePlan
    keys: tuple[PartitionKey, ...] = ()
    held_rows: int = 0

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rest = iter(batches)
        held, count = [], 0
        for batch in rest:
            held.append(batch)
            count += batch.num_rows
            if count > self.held_rows:
                break
        if count <= self.held_rows:
            if count:
                yield _result(None, _to_ipc(held))
            return
        for file in self.files(chain(held, rest)):
            yield _result(pickle.dumps(file), None)

    def in_order(self, batches: Iterable[pa.RecordBatch]) -> pa.Table:
        """Rows that go to no file: the table's columns, sorted as a file would be."""
        rows = pa.Table.from_batches([self._with_keys(batch) for batch in batches])
        return in_order(rows, self.plan.sort).select(range(len(self.plan.columns)))

    def files(self, batches: Iterable[pa.RecordBatch]) -> Iterator[WrittenFile]:
        return write_files(self.plan, (self._with_keys(batch) for batch in batches))

    def _with_keys(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with its partition values where the writer looks for them: before what it only sorts by."""
        if not self.keys:
            return batch
        values = [key.transform.values(batch.column(key.position), key.type) for key in self.keys]
        cut = batch.num_columns - self.plan.extra_columns
        columns = [*batch.columns[:cut], *values, *batch.columns[cut:]]
        return pa.RecordBatch.from_arrays(columns, names=[f"c{i}" for i in range(len(columns))])


@dataclass(frozen=True)
class Written:
    """What the tasks made of the rows: files, and rows that were too few for one."""

    files: Sequence[WrittenFile] = ()
    held: Sequence[pa.RecordBatch] = field(default=(), repr=False)

    @property
    def held_count(self) -> int:
        return sum(batch.num_rows for batch in self.held)


def run(frame: DataFrame, job: Job) -> Written:
    """Let the tasks write. When the job fails, the files of all its tasks are removed."""
    spark = frame.sparkSession
    with _batches_of(spark, _ROWS_PER_BATCH), worker_errors(), _all_or_nothing(spark, job.plan):
        rows = frame.mapInArrow(job, _RESULT).collect()
    files = [pickle.loads(row.file) for row in rows if row.file is not None]
    held = [batch for row in rows if row.rows is not None for batch in pa.ipc.open_stream(row.rows)]
    return Written(files, held)


def distributed(frame: DataFrame, keys: Sequence[Any], target_file_size: int, distribution: Distribution) -> DataFrame:
    """The rows on as many tasks as the files need.

    "none" leaves them as they come: every task writes files of its own. "partition" brings the rows of a partition
    together by a shuffle. "auto" takes no more tasks than there are cores, or files to fill, where that needs no
    shuffle and Spark knows the size.
    """
    if distribution == "none":
        return frame
    if distribution == "partition" and keys:
        return frame.hint("rebalance", *keys)
    size = _size(frame)
    tasks = max(frame.sparkSession.sparkContext.defaultParallelism, math.ceil(size / target_file_size))
    return frame.coalesce(min(tasks, _MOST_TASKS))


def grouping(transform: Transform, value: SparkColumn) -> SparkColumn:
    """An expression that is the same for all rows of a partition, or for as few of them as Spark can tell apart."""
    part = _PARTS.get(type(transform))
    return part(value) if part else value


def _size(frame: DataFrame) -> int:
    """Spark's estimate; very large where it knows nothing."""
    jframe: Any = frame._jdf
    return int(str(jframe.queryExecution().optimizedPlan().stats().sizeInBytes()))


@contextmanager
def worker_errors() -> Iterator[None]:
    """Errors that Penstock raised on purpose inside a task, as themselves."""
    try:
        yield
    except PySparkException as error:
        raised = _raised(str(error))
        if raised is None:
            raise
        raise raised from None


def _raised(text: str) -> PenstockError | None:
    """The error that Spark's text of it tells of."""
    misfit = _MISFIT.search(text)
    if misfit:
        return InvalidError(f"{misfit[1]}; nothing was written")
    found = _RAISED.search(text)
    if found is None:
        return None
    kind: type[PenstockError] = getattr(errors, found[1])
    return kind(f"{found[2].strip()}; nothing was written")


@contextmanager
def _all_or_nothing(spark: SparkSession, plan: WritePlan) -> Iterator[None]:
    """A job that fails leaves no file: not those of tasks that came through, nor of those that are still at it."""
    context, tag = spark.sparkContext, f"penstock-{plan.write_id}"
    context.addJobTag(tag)
    try:
        yield
    except BaseException:
        context.cancelJobsWithTag(tag)
        _wait_for_tasks(spark, tag)
        with suppress(OSError):  # what failed first is the news
            delete_written(plan)
        raise
    finally:
        context.removeJobTag(tag)


def _wait_for_tasks(spark: SparkSession, tag: str) -> None:
    """Wait until no task of the jobs with a tag runs: Spark kills them in its own time."""
    tracker: Any = spark.sparkContext._jsc.sc().statusTracker()
    end = time.monotonic() + _LONGEST_WAIT
    running = True
    while running and time.monotonic() < end:
        time.sleep(0.1)
        jobs = [tracker.getJobInfo(number) for number in tracker.getJobIdsForTag(tag)]
        stages = [tracker.getStageInfo(number) for job in jobs if job.isDefined() for number in job.get().stageIds()]
        running = any(stage.isDefined() and stage.get().numActiveTasks() for stage in stages)


@contextmanager
def _batches_of(spark: SparkSession, rows: str) -> Iterator[None]:
    before = spark.conf.get(_BATCH_ROWS) or "10000"
    spark.conf.set(_BATCH_ROWS, rows)
    try:
        yield
    finally:
        spark.conf.set(_BATCH_ROWS, before)


def _result(file: bytes | None, rows: bytes | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"file": [file], "rows": [rows]}, schema=_RESULT_ARROW)


def _to_ipc(batches: Sequence[pa.RecordBatch]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as stream:
        for batch in batches:
            stream.write_batch(batch)
    return bytes(sink.getvalue())
