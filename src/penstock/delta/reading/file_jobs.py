"""Runs jobs on data files in Spark's tasks: each file's path and partition values in, one Python value a file out."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from penstock.delta.format.actions import AddFile
from penstock.delta.reading.file_scan import FileScan
from penstock.spark.workers import map_in_workers

FileJob: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
_TASK = "number bigint, path string, partition_values string"
_RESULT = "told binary"
_TASKS_A_CORE = 4


class FileTask(NamedTuple):
    """A file that a job works on: its number among all, its path, and its partition values as the log has them."""

    number: int
    path: str
    partition_values: Mapping[str, str | None]


def run_on_files(scan: FileScan, job: FileJob, files: Sequence[AddFile]) -> list[Any]:
    """Runs a job on files of a table, and returns its results in any order."""
    if not files:
        return []
    tasks = min(len(files), _TASKS_A_CORE * scan.spark.sparkContext.defaultParallelism)
    rows = [(number, scan.path_of(file), json.dumps(dict(file.partition_values))) for number, file in enumerate(files)]
    given = scan.spark.createDataFrame(rows, _TASK).repartition(tasks)
    return [pickle.loads(row.told) for row in map_in_workers(given, job, _RESULT).collect()]


def file_tasks(batches: Iterable[pa.RecordBatch]) -> Iterator[FileTask]:
    """Yields the files that a task of a job was given."""
    for batch in batches:
        for row in batch.to_pylist():
            yield FileTask(row["number"], row["path"], json.loads(row["partition_values"]))


def result(value: object) -> pa.RecordBatch:
    """Returns the batch that takes the result for one file to the driver."""
    return pa.RecordBatch.from_pydict({"told": [pickle.dumps(value)]})
