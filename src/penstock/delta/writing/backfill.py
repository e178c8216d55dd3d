"""Copies data files that lack their partition columns, with the log's values, and commits the copies."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.delta.format.actions import AddFile
from penstock.delta.format.file_paths import log_path, partition_directory
from penstock.delta.format.partition_values import repeated_value
from penstock.delta.format.times import now_milliseconds
from penstock.delta.log.commits import writable_snapshot
from penstock.delta.log.table_log import TableLog
from penstock.delta.reading.file_jobs import file_tasks, result, run_on_files
from penstock.delta.reading.file_scan import FileScan
from penstock.delta.reading.verification import verify_files
from penstock.delta.writing.file_commits import commit_rearranged
from penstock.delta.writing.file_copies import copy_with_columns
from penstock.errors import ConflictError, PenstockError
from penstock.schema.columns import Column
from penstock.spark.file_tasks import file_writing_job
from penstock.storage.filesystems import delete_file, make_directory, open_file
from penstock.storage.parquet.names import new_file_name, new_write_id
from penstock.storage.parquet.schema import file_schema

_FILES_A_COMMIT = 1000
_FILES_NAMED = 10  # in an error
_TRIES = 3


@dataclass(frozen=True)
class FileCopy:
    """A new file, by its path in the table."""

    path: str
    size: int


@dataclass(frozen=True)
class CopiedFiles:
    """The files that were copied, each with its copy, and errors by the paths of those that could not be."""

    pairs: Sequence[tuple[AddFile, AddFile]] = ()
    errors: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class BackfillJob:
    """Copies each file with its partition columns last: files in; their numbers and copies, or errors, out."""

    root: str
    columns: Sequence[Column]  # the partition columns, as a new file has them
    types: Mapping[str, str]
    field_ids: bool
    write_id: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields the number of each file that a task was given, with its copy or the error that stopped it."""
        for number, source, values in file_tasks(batches):
            folder = partition_directory(self.types, [values.get(name) for name in self.types])
            make_directory(self.root + folder)
            path = folder + new_file_name(self.write_id, ".c000.snappy", prefix="part-")
            yield result((number, self._copied(source, path, values)))

    def _copied(self, source: str, path: str, values: Mapping[str, str | None]) -> FileCopy | str:
        """Returns the copy of a file, or the error that stood against it, which is not to stop the copies of others."""
        try:
            self._copy(source, self.root + path, values)
            with open_file(self.root + path) as file:
                return FileCopy(path, file.size())
        except (PenstockError, pa.ArrowException, OSError) as error:
            delete_file(self.root + path)
            return str(error)

    def _copy(self, source: str, target: str, values: Mapping[str, str | None]) -> None:
        added = file_schema(self.columns, False, ids=self.field_ids)

        def constant(item: pa.Field, rows: int) -> pa.Array:
            return repeated_value(values.get(item.name), self.types[item.name], item.type, rows)

        copy_with_columns(source, target, added, constant)


def backfill(spark: SparkSession, log: TableLog) -> int:
    """Replaces the files whose partition columns are not as they should be by copies, and returns the newest version.

    Each commit takes some of the files, so that what is done stays done. A PenstockError names the files that could not
    be copied, when all others are.
    """
    scan = FileScan.of(spark, log, writable_snapshot(log))
    paths = [file.decoded_path for file in _files_to_backfill(scan)]
    errors: dict[str, str] = {}
    for start in range(0, len(paths), _FILES_A_COMMIT):
        errors |= _backfill_files(spark, log, frozenset(paths[start : start + _FILES_A_COMMIT]))
    if errors:
        named = "; ".join(f"{path}: {error}" for path, error in sorted(errors.items())[:_FILES_NAMED])
        raise PenstockError(
            f"{len(errors)} of the files of Delta table {log.path} could not be copied and stay as they are (all "
            f"others have their partition columns); overwrite their rows with Spark: {named}"
        )
    return log.latest_version()


def _backfill_files(spark: SparkSession, log: TableLog, paths: Collection[str]) -> Mapping[str, str]:
    """Commits copies of those of the files that are still in the table; returns errors by the paths of the others."""
    for _ in range(_TRIES):
        base = writable_snapshot(log)
        scan = FileScan.of(spark, log, base)
        copied = _copy_files(scan, [file for file in scan.files if file.decoded_path in paths])
        if not copied.pairs:
            return copied.errors
        try:
            added, removed = [new for _, new in copied.pairs], [old for old, _ in copied.pairs]
            commit_rearranged(log, base, added, removed, "REORG", {"materialize": "partition columns"})
            return copied.errors
        except ConflictError as error:
            conflict = error  # a file has gone meanwhile: look again
    raise conflict


def _files_to_backfill(scan: FileScan) -> list[AddFile]:
    """Returns the files whose partition columns are not as they should be, without those that cannot be read at all."""
    wrong = {finding.path for finding in verify_files(scan).findings if finding.column is not None}
    return [file for file in scan.files if scan.path_of(file) in wrong]


def _copy_files(scan: FileScan, files: Sequence[AddFile]) -> CopiedFiles:
    """Copies files with their partition columns. A deletion vector goes along: rows keep their places."""
    partitions = len(scan.schema.partition_columns)
    columns = scan.schema.written_columns(scan.spark, materialized=True)
    write_id = new_write_id()
    own = columns[len(columns) - partitions :]
    job = BackfillJob(scan.root, own, scan.schema.partition_types, scan.schema.mapping != "none", write_id)
    with file_writing_job(scan.spark, scan.root, write_id) as written:
        told: list[tuple[int, FileCopy | str]] = run_on_files(scan, job, files)
        copies = [(files[number], copy) for number, copy in told if isinstance(copy, FileCopy)]
        written.report(copy.path for _, copy in copies)
    now = now_milliseconds()
    pairs = [
        (file, replace(file, path=log_path(copy.path), size=copy.size, modification_time=now, data_change=False))
        for file, copy in copies
    ]
    return CopiedFiles(pairs, {scan.path_of(files[number]): error for number, error in told if isinstance(error, str)})
