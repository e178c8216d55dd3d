"""Runs the job that removes rows: its tasks write the delete files that hide them."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from penstock.ducklake.changing.row_places import PLACES, RowPlaces, numbers_of, unpack
from penstock.ducklake.files.delete_files import (
    DatedPositions,
    DeletableFile,
    Positions,
    WrittenDelete,
    read_dated_positions,
    write_dated_delete_file,
    write_delete_file,
)
from penstock.ducklake.reading.pushed_filters import pushed_filters
from penstock.ducklake.reading.scan_columns import FILE
from penstock.ducklake.reading.table_scan import TableContents, TableScan
from penstock.predicates import implied_by
from penstock.predicates.implication import Anything
from penstock.spark.file_tasks import file_writing_job
from penstock.spark.jvm import optimized_filter_text
from penstock.spark.local_rows import local_frame
from penstock.spark.pushdown import covered_whole
from penstock.spark.workers import map_in_workers
from penstock.storage.parquet import delete_written
from penstock.storage.parquet.names import new_write_id

# What one process writes in less time than a job begins.
FEW_FILES, FEW_POSITIONS, _THREADS = 64, 1_000_000, 8
_RESULT = "removed binary"
_RESULT_ARROW = pa.schema([("removed", pa.binary())])


@dataclass(frozen=True)
class FileRemoval:
    """What one data file loses: all of its rows, some by a delete file, or a few positions for the catalog.

    Without a file, the positions are the row ids of inlined rows.
    """

    file_id: int | None
    all_rows: bool = False
    delete: WrittenDelete | None = None
    positions: tuple[int, ...] = ()


@dataclass(frozen=True)
class DeleteJob:
    """Does the work of a task on deleted positions: all those of a file come to one task."""

    directory: str
    files: Mapping[int, DeletableFile]
    inlined_limit: int
    vectors: bool
    encrypted: bool
    dated: frozenset[int] = frozenset()  # files that had lost rows before: theirs tell which snapshot deleted which row
    snapshot: int = 0  # that deletes the rows now
    write_id: str = field(default_factory=new_write_id)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for file_id, positions in _by_file(batches):
            removed = self.removal(file_id, positions)
            yield pa.RecordBatch.from_pydict({"removed": [pickle.dumps(removed)]}, schema=_RESULT_ARROW)

    def is_little(self, found: Mapping[int | None, BitMap64]) -> bool:
        """Whether positions by file, with those that the files lost before, are few and of few files."""
        before = sum(self.files[file].deleted for file in found if file is not None)
        return len(found) <= FEW_FILES and before + sum(map(len, found.values())) <= FEW_POSITIONS

    def removal(self, file_id: int | None, positions: Positions) -> FileRemoval:
        """Remove rows of a file by their positions, in order: writes the delete file that this takes."""
        if file_id is None:
            return FileRemoval(None, positions=tuple(positions.tolist()))
        file = self.files[file_id]
        if len(positions) <= self.inlined_limit and not self._ends(file, len(positions)):
            return FileRemoval(file_id, positions=tuple(positions.tolist()))
        now = DatedPositions(positions, np.full(len(positions), self.snapshot, np.int64))
        deleted = read_dated_positions(file).joined(now)
        if self._ends(file, len(deleted.positions)):
            return FileRemoval(file_id, all_rows=True)
        return FileRemoval(file_id, delete=self._written(file, deleted))

    def _written(self, file: DeletableFile, deleted: DatedPositions) -> WrittenDelete:
        if file.id in self.dated:
            return write_dated_delete_file(self.directory, self.write_id, file.path, deleted, encrypted=self.encrypted)
        return write_delete_file(
            self.directory, self.write_id, file, deleted.positions, vectors=self.vectors, encrypted=self.encrypted
        )

    def _ends(self, file: DeletableFile, count: int) -> bool:
        return count + file.inlined_deletes >= file.record_count


def _by_file(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int | None, Positions]]:
    """The positions of each file; rows come sorted by file."""
    rows = (row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns), strict=True))
    for file_id, parts in groupby(rows, key=itemgetter(0)):
        yield file_id, unpack(packed for _, packed in parts)


def write_delete_files(places: RowPlaces, job: DeleteJob) -> list[FileRemoval]:
    """Write the delete files of rows: few of them here, others in tasks."""
    found = places.by_file
    if found is not None and job.is_little(found):
        return _written_here(found, job)
    return _written_by_tasks(places.kept if places.at_hand is None else _given(places), job)


def _written_here(found: Mapping[int | None, BitMap64], job: DeleteJob) -> list[FileRemoval]:
    """Write few and small files: a job would take longer to begin."""
    try:
        with ThreadPoolExecutor(_THREADS) as threads:
            return list(threads.map(job.removal, found.keys(), map(numbers_of, found.values())))
    except BaseException:
        with suppress(OSError):  # what failed first is the news
            delete_written(job.directory, job.write_id)
        raise


def _given(places: RowPlaces) -> DataFrame:
    return local_frame(places.results.sparkSession, places.at_hand or (), PLACES)


def _written_by_tasks(places: DataFrame, job: DeleteJob) -> list[FileRemoval]:
    together = places.repartition(F.col(FILE)).sortWithinPartitions(FILE)
    with file_writing_job(places.sparkSession, job.directory, job.write_id) as files:
        found = map_in_workers(together, job, _RESULT).collect()
        removed: list[FileRemoval] = [pickle.loads(row.removed) for row in found]
        files.report(one.delete.path for one in removed if one.delete)
    return removed


def files_covered_whole(
    scan: TableScan, contents: TableContents, named: DataFrame, where: SparkColumn
) -> frozenset[int]:
    """Find the data files that hold only rows that a predicate is true for: the catalog's statistics say so, unread.

    The catalog is not asked where the opposite of the predicate, over rows of these names, says nothing of any column.
    """
    opposite = optimized_filter_text(named, ~where | where.isNull())
    if opposite is not None and _says_nothing(scan, opposite):
        return frozenset()

    def possible(predicate: SparkColumn) -> Iterator[int]:
        for group in contents.groups:
            for planner, filters in pushed_filters(scan, group, contents, predicate):
                yield from (file.id for file in planner.files_for(filters))

    return frozenset(covered_whole(where, possible))


def _says_nothing(scan: TableScan, filters: str) -> bool:
    return implied_by([json.dumps(item) for item in json.loads(filters)], scan.layout.columns) == Anything()
