"""Partition columns inside data files: whether they are there as they should, and files that get them, by tasks."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from penstock.delta.log.actions import AddFile
from penstock.delta.log.values import directory, from_text, log_path, texts, to_text
from penstock.delta.reading.file_scan import Scan, type_name
from penstock.delta.writing.file_copies import copy_with
from penstock.delta.writing.verification import Finding, Report, check_file
from penstock.errors import InvalidError, PenstockError
from penstock.schema.columns import Column
from penstock.spark.file_tasks import file_writing_job
from penstock.spark.workers import map_in_workers
from penstock.storage.filesystems import delete_file, make_directory, open_file
from penstock.storage.parquet.names import new_file_name, new_write_id
from penstock.storage.parquet.schema import file_schema

_TASK = "number bigint, path string, partition_values string"
_RESULT = "told binary"
Task = tuple[int, str, Mapping[str, str | None]]  # the number of a file, its path, and its values in the log


@dataclass(frozen=True)
class Copy:
    """A new file, by its path in the table."""

    path: str
    size: int


@dataclass(frozen=True)
class Filling:
    """What has come of files: copies, each beside the file that it replaces, and errors by the paths of the others."""

    pairs: Sequence[tuple[AddFile, AddFile]] = ()
    left: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CheckJob:
    """Files in, their findings out."""

    data_columns: Sequence[str]
    types: Mapping[str, str]  # of the partition columns, by their names in files

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _, path, values in _tasks(batches):
            expected = {name: _in_our_form(values.get(name), kind) for name, kind in self.types.items()}
            yield _told(check_file(path, self.data_columns, self.types, expected, self._texts))

    def _texts(self, array: pa.Array, column: str) -> pa.StringArray:
        return texts(array, self.types[column])


@dataclass(frozen=True)
class FillJob:
    """Files in; out comes for each its number, and its copy with its partition columns last or why there is none."""

    root: str
    columns: Sequence[Column]  # the partition columns, as a new file has them
    types: Mapping[str, str]
    field_ids: bool
    write_id: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, source, values in _tasks(batches):
            folder = directory(self.types, [values.get(name) for name in self.types])
            make_directory(self.root + folder)
            path = folder + new_file_name(self.write_id, ".c000.snappy", prefix="part-")
            yield _told((number, self._copied(source, path, values)))

    def _copied(self, source: str, path: str, values: Mapping[str, str | None]) -> Copy | str:
        """The copy of a file, or the error that stood against it, which is not to stop the copies of others."""
        try:
            self._copy(source, self.root + path, values)
            with open_file(self.root + path) as file:
                return Copy(path, file.size())
        except (PenstockError, pa.ArrowException, OSError) as error:
            delete_file(self.root + path)
            return str(error)

    def _copy(self, source: str, target: str, values: Mapping[str, str | None]) -> None:
        added = file_schema(self.columns, False, ids=self.field_ids)
        copy_with(source, target, added, lambda item, rows: _repeated(values.get(item.name), item, self.types, rows))


def verified(scan: Scan) -> Report:
    """What is wrong with the files of a table, as the feature has it."""
    data = [scan.schema.physical_name(item) for item in scan.schema.data_fields]
    told: list[list[Finding]] = _run(scan, CheckJob(data, _types(scan)), scan.files)
    findings = sorted(
        (finding for one in told for finding in one), key=lambda one: (one.path, one.kind, one.column or "")
    )
    return Report(len(scan.files), tuple(findings))


def lacking(scan: Scan) -> list[AddFile]:
    """The files whose partition columns are not as they should be. Those that cannot be read at all are left out."""
    wrong = {finding.path for finding in verified(scan).findings if finding.column is not None}
    return [file for file in scan.files if scan.path_of(file) in wrong]


def filled(scan: Scan, files: Sequence[AddFile]) -> Filling:
    """Copies of files with their partition columns. A vector goes along: rows keep their places."""
    partitions = len(scan.schema.partition_columns)
    columns = scan.schema.written_columns(scan.spark, materialized=True)
    write_id = new_write_id()
    own = columns[len(columns) - partitions :]
    job = FillJob(scan.root, own, _types(scan), scan.schema.mapping != "none", write_id)
    with file_writing_job(scan.spark, scan.root, write_id) as written:
        told: list[tuple[int, Copy | str]] = _run(scan, job, files)
        copies = [(files[number], copy) for number, copy in told if isinstance(copy, Copy)]
        written.report(copy.path for _, copy in copies)
    now = int(time.time() * 1000)
    pairs = [
        (file, replace(file, path=log_path(copy.path), size=copy.size, modification_time=now, data_change=False))
        for file, copy in copies
    ]
    return Filling(pairs, {scan.path_of(files[number]): error for number, error in told if isinstance(error, str)})


def _run(scan: Scan, job: CheckJob | FillJob, files: Sequence[AddFile]) -> list[Any]:
    if not files:
        return []
    tasks = min(len(files), 4 * scan.spark.sparkContext.defaultParallelism)
    rows = [(number, scan.path_of(file), json.dumps(dict(file.partition_values))) for number, file in enumerate(files)]
    given = scan.spark.createDataFrame(rows, _TASK).repartition(tasks)
    return [pickle.loads(row.told) for row in map_in_workers(given, job, _RESULT).collect()]


def _types(scan: Scan) -> dict[str, str]:
    return {scan.schema.physical_name(item): type_name(item) for item in scan.schema.partition_fields}


def _tasks(batches: Iterable[pa.RecordBatch]) -> Iterator[Task]:
    for batch in batches:
        for row in batch.to_pylist():
            yield row["number"], row["path"], json.loads(row["partition_values"])


def _told(value: object) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"told": [pickle.dumps(value)]})


def _in_our_form(text: str | None, type_name: str) -> str | None:
    """A partition value of the log as Penstock would write it: others write the same value in other forms."""
    try:
        return to_text(from_text(text, type_name), type_name)
    except InvalidError:
        return text  # no value at all: whatever is in the file differs from it


def _repeated(text: str | None, item: pa.Field, types: Mapping[str, str], rows: int) -> pa.Array:
    """A partition value as often as a file has rows."""
    value = from_text(text, types[item.name])
    if value is None:
        return pa.nulls(rows, item.type)
    numeric = pa.types.is_date(item.type) or pa.types.is_timestamp(item.type)
    one = pa.array([value], pa.int32() if pa.types.is_date(item.type) else pa.int64() if numeric else None)
    typed = one.view(item.type) if numeric else one.cast(item.type)
    return typed.take(pa.array([0] * rows, pa.int32()))
