"""Writes inlined deletes to delete files, in the tasks: each with all that its data file has lost so far."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.ducklake.catalog.commits.staged_compactions import FlushedDelete
from penstock.ducklake.files.delete_files import (
    DatedPositions,
    DeletableFile,
    read_dated_positions,
    write_dated_delete_file,
)
from penstock.ducklake.files.sealed_keys import Seal
from penstock.spark.file_tasks import file_writing_job
from penstock.spark.task_rows import rows_in_tasks
from penstock.spark.workers import map_in_workers

_RESULT = "flushed binary"
_RESULT_ARROW = pa.schema([("flushed", pa.binary())])
_MOST_TASKS = 200


@dataclass(frozen=True)
class DeleteFlushJob:
    """Does the work of a task: files come pickled, with the keys of encrypted ones sealed."""

    directory: str
    write_id: str
    encrypted: bool
    seal: Seal = field(default_factory=Seal)

    def packed(self, file: DeletableFile, inlined: DatedPositions) -> bytes:
        """A file as it travels to a task."""
        sealed = self.seal.close(file.delete_key, file.delete_path or "")
        return pickle.dumps((replace(file, delete_key=sealed), inlined))

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for packed in batch.column(0).to_pylist():
                file, inlined = pickle.loads(packed)
                key = self.seal.open(file.delete_key, file.delete_path or "")
                flushed = self._flushed(replace(file, delete_key=key), inlined)
                yield pa.RecordBatch.from_pydict({"flushed": [pickle.dumps(flushed)]}, schema=_RESULT_ARROW)

    def _flushed(self, file: DeletableFile, inlined: DatedPositions) -> FlushedDelete:
        deleted = read_dated_positions(file).joined(inlined)
        written = write_dated_delete_file(self.directory, self.write_id, file.path, deleted, encrypted=self.encrypted)
        unkeyed = replace(file, delete_key=None)
        return FlushedDelete(unkeyed, written, int(deleted.snapshots.min()), int(deleted.snapshots.max()))


def write_flushed_deletes(
    spark: SparkSession, job: DeleteFlushJob, files: Sequence[tuple[DeletableFile, DatedPositions]]
) -> list[FlushedDelete]:
    """Let the tasks write the delete files."""
    packed = [(bytearray(job.packed(*each)),) for each in files]
    tasks = min(len(packed), _MOST_TASKS)
    rows = rows_in_tasks(spark, packed, "file binary", tasks)
    with file_writing_job(spark, job.directory, job.write_id) as written:
        found = map_in_workers(rows, job, _RESULT).collect()
        flushed: list[FlushedDelete] = [pickle.loads(row.flushed) for row in found]
        written.report(one.delete.path for one in flushed)
    return flushed
