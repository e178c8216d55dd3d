"""Writes batches of rows to files: splits them by partition, gathers row groups, and rolls files at the target size."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import pyarrow as pa

from penstock.errors import InvalidError
from penstock.schema.statistics import WrittenFile
from penstock.storage.ended_tasks import check_task
from penstock.storage.filesystems import delete_file, list_files
from penstock.storage.parquet.duckdb_writer import DuckDBFile
from penstock.storage.parquet.files import ArrowFile, OpenFile, PartitionValues
from penstock.storage.parquet.names import is_of_write
from penstock.storage.parquet.partitions import sort_rows, split_by_partition
from penstock.storage.parquet.plan import WritePlan, check_writable
from penstock.storage.parquet.schema import needs_duckdb
from penstock.storage.parquet.spill import Spill
from penstock.storage.s3_objects import end_upload, has_s3_client, unfinished_uploads

MEMORY_LIMIT = 256 * 1024 * 1024
_MOST_OPEN_FILES = 100
_SMALLEST_ROW_GROUP = 1024 * 1024  # bytes in Arrow: what is not worth a row group of its own is set aside instead
_ARRAY_OVERHEAD = 512  # bytes that an array takes besides its values
_SMALL_PIECE = 8192  # rows


def write_files(
    plan: WritePlan, batches: Iterable[pa.RecordBatch], memory_limit: int = MEMORY_LIMIT
) -> Iterator[WrittenFile]:
    """Write the rows, and yield each file as it is complete.

    Rows are gathered per partition until a row group is full, and a file is closed when it has the target size. Rows
    that are gathered and the files that are open stay within `memory_limit` and 100; what exceeds them waits on the
    local disk (except for an encrypted table, whose partitions get more, smaller files instead), so that a partition
    is in about as many files as its size needs.

    With a sort order, rows are gathered up to the target size or half the memory limit, and are sorted before they are
    written: a file no larger than that is sorted throughout, a larger one in runs of that size.

    Files that only DuckDB can write (encrypted, or with variants, intervals or times with a zone) are written whole,
    and are no larger than half the memory limit in Arrow.

    When the iterator is closed early, files that it has not yielded are deleted; when it fails, all of them are. It
    also fails in a worker whose task has ended.
    """
    check_writable(plan.columns)
    writer = _Writer(plan, memory_limit)
    yielded: set[str] = set()
    try:
        for file in writer.files(batches):
            check_task()
            yielded.add(file.path)
            yield file
    except GeneratorExit:
        writer.abandon(keep=yielded)
        raise
    except BaseException:
        with suppress(OSError):  # what failed first is the news
            writer.abandon()
        raise
    finally:
        writer.spill.close()


def delete_written(directory: str, write_id: str, keep: Container[str] = ()) -> None:
    """Delete every file of a write, also those that nobody was told of, but for some paths below the directory.

    What writers that were killed had begun to send to S3 goes too.
    """
    for path in list_files(directory):
        if is_of_write(path, write_id) and path.removeprefix(directory) not in keep:
            delete_file(path)
    if has_s3_client(directory):
        for upload in list(unfinished_uploads(directory)):
            if is_of_write(upload.path, write_id):
                end_upload(upload)


@dataclass
class _Partition:
    """The rows of one partition that are under way: in memory, set aside, in an open file."""

    values: PartitionValues
    batches: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    bytes: int = 0
    places: list[tuple[int, int]] = field(default_factory=list)
    spilled_rows: int = 0
    spilled_bytes: int = 0
    file: OpenFile | None = None

    def add(self, batch: pa.RecordBatch, size: int) -> None:
        self.batches.append(batch)
        self.rows += batch.num_rows
        self.bytes += size

    def set_aside(self, place: tuple[int, int]) -> None:
        self.places.append(place)
        self.spilled_rows += self.rows
        self.spilled_bytes += self.bytes
        self.batches, self.rows, self.bytes = [], 0, 0

    def clear(self) -> None:
        self.batches, self.rows, self.bytes = [], 0, 0
        self.places, self.spilled_rows, self.spilled_bytes = [], 0, 0


class _Writer:
    """Writes the files of all partitions of one task."""

    def __init__(self, plan: WritePlan, memory_limit: int) -> None:
        self.spill = Spill()
        self._plan = plan
        self._limit = memory_limit
        self._kind: type[OpenFile] = DuckDBFile if plan.encrypted or needs_duckdb(plan.columns) else ArrowFile
        self._whole_bytes = min(plan.options.target_file_size, memory_limit // 2)
        self._group_bytes = min(plan.options.row_group_bytes or self._whole_bytes, self._whole_bytes)
        self._at_once = bool(plan.sort) or not self._kind.appends
        self._partitions: dict[PartitionValues, _Partition] = {}
        self._gathered = 0
        self._open = 0
        self._paths: list[str] = []

    def files(self, batches: Iterable[pa.RecordBatch]) -> Iterator[WrittenFile]:
        for batch in batches:
            if batch.num_rows:
                yield from self._add(batch)
        check_task()
        for partition in self._partitions.values():
            yield from self._write(partition, everything=True)
            if partition.file:
                yield self._close(partition)

    def abandon(self, keep: Iterable[str] = ()) -> None:
        """Delete what was written, but for some files."""
        kept = set(keep)
        for partition in self._partitions.values():
            if partition.file:
                partition.file.abandon()
        for path in self._paths:
            if path not in kept:
                delete_file(self._plan.directory + path)

    def _add(self, batch: pa.RecordBatch) -> Iterator[WrittenFile]:
        if batch.num_columns != self._plan.width:
            raise InvalidError(f"a batch has {batch.num_columns} columns instead of {self._plan.width}")
        first = self._plan.written_width
        keys = batch.columns[first : first + len(self._plan.partition_names)]
        row_size = batch.nbytes / batch.num_rows
        for values, rows in split_by_partition(batch, keys):
            partition = self._partitions.setdefault(values, _Partition(values))
            size = int(rows.num_rows * row_size) + batch.num_columns * _ARRAY_OVERHEAD
            partition.add(rows, size)
            self._gathered += size
            if self._is_ready(partition):
                yield from self._write(partition)
        if self._gathered > self._limit:
            yield from self._make_room()

    def _is_ready(self, partition: _Partition) -> bool:
        """Whether there is enough for a row group, or, without one of the open files, for a file."""
        size = partition.bytes + partition.spilled_bytes
        if self._at_once or (partition.file is None and self._open >= _MOST_OPEN_FILES):
            return size >= self._whole_bytes
        rows = partition.rows + partition.spilled_rows
        return rows >= self._plan.options.row_group_size or size >= self._group_bytes

    def _make_room(self) -> Iterator[WrittenFile]:
        """Halve what is gathered: write what makes a decent row group or must not be set aside, set aside the rest."""
        largest_first = sorted(self._partitions.values(), key=lambda partition: -partition.bytes)
        for partition in largest_first:
            if self._gathered <= self._limit // 2:
                return
            if self._plan.encrypted or (
                not self._at_once
                and partition.bytes >= _SMALLEST_ROW_GROUP
                and (partition.file or self._open < _MOST_OPEN_FILES)
            ):
                yield from self._write(partition, everything=True)
        self._set_aside([partition for partition in largest_first if partition.rows])

    def _set_aside(self, partitions: list[_Partition]) -> None:
        parts = (pa.concat_batches(partition.batches) for partition in partitions)
        for partition, place in zip(partitions, self.spill.write(parts), strict=True):
            self._gathered -= partition.bytes
            partition.set_aside(place)

    def _write(self, partition: _Partition, everything: bool = False) -> Iterator[WrittenFile]:
        """Write full row groups, or all there is."""
        rows = self._taken(partition)
        if not rows.num_rows:
            return
        full = rows.num_rows - rows.num_rows % self._plan.options.row_group_size
        count = full if full and not everything and not self._at_once else rows.num_rows
        for piece in self._pieces(sort_rows(rows.slice(0, count), self._plan.sort)):
            file = self._file(partition)
            file.write(piece)
            if not file.appends or file.size >= self._plan.options.target_file_size:
                yield self._close(partition)
        for batch in rows.slice(count).to_batches():
            partition.add(batch, batch.nbytes)
        self._gathered += partition.bytes
        if partition.file and self._open > _MOST_OPEN_FILES:
            yield self._close(partition)

    def _pieces(self, rows: pa.Table) -> Iterator[pa.Table]:
        """Row groups; or whole files, of about the same size, where a file is written at once."""
        count = self._plan.options.row_group_size
        if not self._kind.appends:
            files = max(1, round(rows.nbytes / self._whole_bytes))
            count = -(-rows.num_rows // files)
        for start in range(0, rows.num_rows, count):
            yield rows.slice(start, count)

    def _taken(self, partition: _Partition) -> pa.Table:
        """All the rows of a partition that are not written yet, which it then no longer holds."""
        batches = [*self.spill.read(partition.places), *partition.batches]
        self._gathered -= partition.bytes
        partition.clear()
        if not batches:
            return pa.table({})
        table = pa.Table.from_batches(batches)
        # Many small pieces are slower to write than to copy.
        return table.combine_chunks() if table.num_rows < len(batches) * _SMALL_PIECE else table

    def _file(self, partition: _Partition) -> OpenFile:
        if partition.file is None:
            partition.file = self._kind(self._plan, partition.values)
            self._paths.append(partition.file.path)
            self._open += 1
        return partition.file

    def _close(self, partition: _Partition) -> WrittenFile:
        assert partition.file is not None
        written = partition.file.close()
        partition.file = None
        self._open -= 1
        return written
