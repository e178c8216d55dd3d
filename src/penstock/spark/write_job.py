"""Writes the rows of a DataFrame to Parquet files of a table, in the tasks; what comes back is a line a file."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal, Protocol

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812

from penstock.partitioning import Day, Hour, Month, Transform, Year
from penstock.schema.statistics import WrittenFile
from penstock.schema.types import Type
from penstock.spark.arrow_transfer import MOST_VARIABLE_BYTES, Decimals, in_batches_of, with_decimals
from penstock.spark.connect import plan_texts
from penstock.spark.connect.sessions import is_connect
from penstock.spark.cores import core_count
from penstock.spark.file_tasks import file_writing_job, original_errors
from penstock.spark.jvm import activate_session, query_execution
from penstock.spark.packed_columns import Job, run_on_rows
from penstock.spark.workers import map_in_workers
from penstock.storage.parquet import WritePlan, write_files
from penstock.storage.parquet.partitions import sort_rows
from penstock.storage.parquet.sort_expressions import SortExpressions

Distribution = Literal["auto", "none", "partition"]
_FEW_TASKS = 4  # a shuffle costs a quarter more time (docs/benchmarks.md) and saves files: tasks times partitions
_MOST_TASKS = 2**31 - 1
_RESULT = "file binary, rows binary"
WRITE_RESULT = pa.schema([("file", pa.binary()), ("rows", pa.binary())])
_ROWS_SPLIT_AT_ONCE = 65536
_IN_PLACE = frozenset((
    "WholeStageCodegenExec", "InputAdapter", "ColumnarToRowExec", "FileSourceScanExec", "FilterExec", "ProjectExec",
    "UnionExec", "CoalesceExec",
))  # fmt: skip
_PARTS: dict[type[Transform], Callable[[SparkColumn], SparkColumn]] = {
    Year: F.year, Month: F.month, Day: F.dayofmonth, Hour: F.hour,
}  # fmt: skip


class PartitionTexts(Protocol):
    """Makes the texts of partition values, as a transform does."""

    def values(self, array: pa.Array, type: Type) -> pa.StringArray: ...


@dataclass(frozen=True)
class PartitionKey:
    """One place of the partition key: a column of the batches, by position, and what makes its texts."""

    position: int
    type: Type
    transform: PartitionTexts


@dataclass(frozen=True)
class WriteJob:
    """Writes a task's rows to files. A task with no more than `held_rows` gives them back instead of a file."""

    plan: WritePlan
    keys: tuple[PartitionKey, ...] = ()
    held_rows: int = 0
    decimals: Decimals = ()  # columns that come as their digits
    computed: SortExpressions | None = None  # what rows are sorted by and DuckDB computes

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rest = (with_decimals(batch, self.decimals) for batch in batches)
        held, count = [], 0
        for batch in rest:
            held.append(batch)
            count += batch.num_rows
            if count > self.held_rows:
                break
        if count <= self.held_rows:
            for piece in _pieces(held):
                yield _result(None, _to_ipc(piece))
            return
        for file in self.files(in_batches_of(_ROWS_SPLIT_AT_ONCE if self.keys else 1, chain(held, rest))):
            yield _result(pickle.dumps(file), None)

    def in_order(
        self, batches: Iterable[pa.RecordBatch], *, sort: bool = True
    ) -> tuple[pa.Table, pa.Int64Array | None]:
        """Sort rows that go to no file as a file's would be: the table's columns, and the row ids if there are any."""
        rows = pa.Table.from_batches([self._with_keys(batch) for batch in batches])
        rows = sort_rows(rows, self.plan.sort) if sort else rows
        width = len(self.plan.columns)
        row_ids = rows.column(width).combine_chunks() if self.plan.row_ids else None
        return rows.select(range(width)), row_ids

    def files(self, batches: Iterable[pa.RecordBatch]) -> Iterator[WrittenFile]:
        """Write the rows to files."""
        return write_files(self.plan, (self._with_keys(batch) for batch in batches))

    def _with_keys(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with its partition values where the writer looks for them: before what it only sorts by."""
        if not self.keys and not self.computed:
            return batch
        values = [key.transform.values(batch.column(key.position), key.type) for key in self.keys]
        extra = self.computed.values(batch) if self.computed else batch.columns[self.plan.written_width :]
        columns = [*batch.columns[: self.plan.written_width], *values, *extra]
        return pa.RecordBatch.from_arrays(columns, names=[f"c{i}" for i in range(len(columns))])


@dataclass(frozen=True)
class GatherJob:
    """Gathers, in one task, the rows that tasks have held: gives them back if they are few in all, else writes them."""

    job: WriteJob
    others: bool = False  # whether there are files already, so that the rows must become one too

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files: list[bytes] = []
        rest = self._held(batches, files)
        held, count = [], 0
        for batch in rest:
            held.append(batch)
            count += batch.num_rows
            if count > self.job.held_rows or files or self.others:
                break
        is_many = count > self.job.held_rows or bool(files) or self.others
        written = self.job.files(chain(held, rest)) if held and is_many else ()
        for file in written:
            yield _result(pickle.dumps(file), None)
        for piece in [] if is_many else _pieces(held):
            yield _result(None, _to_ipc(piece))
        for told in files:
            yield _result(told, None)

    @staticmethod
    def _held(batches: Iterable[pa.RecordBatch], files: list[bytes]) -> Iterator[pa.RecordBatch]:
        """The rows among the results of tasks; their files are set aside."""
        for batch in batches:
            for result in batch.to_pylist():
                if result["file"] is not None:
                    files.append(result["file"])
                else:
                    yield from pa.ipc.open_stream(result["rows"])


@dataclass(frozen=True)
class Written:
    """What the tasks did with the rows: files, or few rows in all."""

    files: Sequence[WrittenFile] = ()
    held: Sequence[pa.RecordBatch] = field(default=(), repr=False)

    @property
    def paths(self) -> list[str]:
        """The paths of the files, relative to the table's directory."""
        return [file.path for file in self.files]

    @property
    def row_count(self) -> int:
        """How many rows there are."""
        return sum(file.record_count for file in self.files) + sum(int(batch.num_rows) for batch in self.held)


def run_write_job(frame: DataFrame, job: WriteJob) -> Written:
    """Let the tasks write the rows. When the job fails, the files of all its tasks are removed."""

    def attempt(rows: DataFrame, write: Job) -> Written:
        with file_writing_job(rows.sparkSession, job.plan.directory, job.plan.write_id) as files:
            results = map_in_workers(rows, write, _RESULT)
            if job.held_rows and not has_at_most(rows, 1):
                results = gather_rows(results, GatherJob(job))
            written = collect_written(results.collect())
            files.report(written.paths)
        return written

    return run_on_rows(frame, job, attempt)


def written_by_driver(job: WriteJob, rows: pa.Table) -> Written:
    """Do in this process what a task does, with rows that are here: hold few of them, else write files."""
    batches = [batch for batch in rows.to_batches() if batch.num_rows]
    if rows.num_rows <= job.held_rows:
        return Written(held=batches)
    return Written(list(job.files(batches)))


def gather_rows(results: DataFrame, gather: GatherJob) -> DataFrame:
    """Put the rows that tasks have held together, in one more task."""
    return map_in_workers(results.repartition(1), gather, _RESULT)


def collect_written(rows: Iterable[Row]) -> Written:
    """Collect the results of tasks: files, and rows that were held."""
    told = list(rows)
    files = [pickle.loads(row.file) for row in told if row.file is not None]
    held = [batch for row in told if row.rows is not None for batch in pa.ipc.open_stream(row.rows)]
    return Written(files, held)


def distributed(
    frame: DataFrame, keys: Sequence[SparkColumn], target_file_size: int, distribution: Distribution
) -> DataFrame:
    """Spread the rows over as many tasks as the files need.

    "none" leaves them as they come: every task writes files of its own. "partition" brings the rows of a partition
    together by a shuffle. "auto" takes no more tasks than there are cores, or files to fill; and of a partitioned table
    no more than a few, for each writes to every partition, or else shuffles. What was repartitioned or coalesced stays
    as it is.
    """
    if not is_connect(frame):
        activate_session(frame.sparkSession)
    with original_errors():  # Spark computes constant rows when it plans
        return _distributed(frame, keys, target_file_size, distribution)


def _distributed(
    frame: DataFrame, keys: Sequence[SparkColumn], target_file_size: int, distribution: Distribution
) -> DataFrame:
    if distribution == "partition" and keys:
        return _by_partition(frame, keys)
    if distribution == "none" or _is_placed(frame):
        return frame
    cores = core_count(frame.sparkSession)
    tasks = min(max(cores, math.ceil(_size(frame) / target_file_size)), _MOST_TASKS)
    if keys and tasks > _FEW_TASKS:
        return frame if has_at_most(frame, _FEW_TASKS) else _by_partition(frame, keys)
    return frame if has_at_most(frame, tasks) else frame.coalesce(tasks)


def in_few_tasks(frame: DataFrame, target_file_size: int, *, partitioned: bool) -> DataFrame | None:
    """Spread rows as `distributed` does by "auto", but without a shuffle: None where it takes one."""
    placed = distributed(frame, (), target_file_size, "auto")
    return placed if not partitioned or has_at_most(placed, _FEW_TASKS) else None


def stays_in_place(frame: DataFrame) -> bool:
    """Whether rows come from files in the order that they have there, each once: nothing is joined or shuffled.

    Spark Connect does not tell.
    """
    if is_connect(frame):
        return False
    plans = [query_execution(frame).executedPlan()]
    for plan in plans:  # and what is under it, which is added meanwhile
        if plan.getClass().getSimpleName() not in _IN_PLACE:
            return False
        below = plan.children()
        plans += [below.apply(place) for place in range(below.size())]
    return True


def _by_partition(frame: DataFrame, keys: Sequence[SparkColumn]) -> DataFrame:
    named = {f"_penstock_key{number}": key for number, key in enumerate(keys)}
    return frame.withColumns(named).hint("rebalance", *named).drop(*named)


def grouping(transform: Transform, value: SparkColumn) -> SparkColumn:
    """An expression that is the same for all rows of a partition, or for as few of them as Spark can tell apart."""
    part = _PARTS.get(type(transform))
    return part(value) if part else value


def _size(frame: DataFrame) -> int:
    """Spark's estimate; very large where it knows nothing."""
    if is_connect(frame):
        return plan_texts.estimated_size(frame)
    return int(str(query_execution(frame).optimizedPlan().stats().sizeInBytes()))


def _is_placed(frame: DataFrame) -> bool:
    """Whether the rows are spread over tasks as the user said."""
    if is_connect(frame):
        return plan_texts.is_placed(frame)
    plan = query_execution(frame).optimizedPlan()
    while plan.getClass().getSimpleName() in ("Project", "Filter"):
        plan = plan.child()
    return plan.getClass().getSimpleName() in ("Repartition", "RepartitionByExpression", "RebalancePartitions")


def has_at_most(frame: DataFrame, tasks: int) -> bool:
    """Whether the rows come in no more tasks anyway: coalescing would only cost a step. Not known before a shuffle.

    Spark Connect does not tell.
    """
    if is_connect(frame):
        return False
    execution = query_execution(frame)
    if execution.executedPlan().getClass().getSimpleName() == "AdaptiveSparkPlanExec":
        return False
    return int(execution.toRdd().getNumPartitions()) <= tasks


def _result(file: bytes | None, rows: bytes | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"file": [file], "rows": [rows]}, schema=WRITE_RESULT)


def _pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows, each piece no wider than a row may be on its way to Python."""
    for batch in batches:
        count = max(1, MOST_VARIABLE_BYTES * batch.num_rows // max(1, batch.nbytes))
        for start in range(0, batch.num_rows, count):
            yield batch.slice(start, count)


def _to_ipc(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())
