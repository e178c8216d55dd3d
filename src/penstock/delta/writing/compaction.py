"""Compacts small files: a task makes one of each bin, with PyArrow, so that no row crosses into the JVM."""

from __future__ import annotations

import json
import logging
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import SparkSession

from penstock.delta.format.actions import AddFile
from penstock.delta.format.partition_values import repeated_value
from penstock.delta.format.properties import target_file_size as table_file_size
from penstock.delta.log.commits import writable_snapshot
from penstock.delta.log.table_log import TableLog
from penstock.delta.reading.file_jobs import result
from penstock.delta.reading.file_scan import FileScan
from penstock.delta.writing.file_bins import FileBin, PartitionTexts, file_bins
from penstock.delta.writing.file_commits import commit_rearranged
from penstock.delta.writing.file_writer import FILE_SIZE, FileWriter
from penstock.delta.writing.source_files import SourceColumns, SourceFile, UnfitFileError
from penstock.errors import InvalidError, PenstockError
from penstock.schema.columns import Column
from penstock.schema.statistics import WrittenFile
from penstock.spark.expressions import as_column, has_subquery
from penstock.spark.file_tasks import file_writing_job
from penstock.spark.job_progress import Work
from penstock.spark.workers import map_in_workers
from penstock.storage.parquet import WritePlan, write_files
from penstock.storage.parquet.schema import file_field

_RESULT = "told binary"
_TASKS_A_CORE = 4
_UNLIMITED = 2**62  # bytes: a bin becomes one file, whatever it weighs in the end
_log = logging.getLogger("penstock")


@dataclass(frozen=True)
class BinTask:
    """A bin on its way to a task: its number, its sources, and the texts of its partition values."""

    number: int
    sources: tuple[SourceFile, ...]
    partition: PartitionTexts


@dataclass(frozen=True)
class CompactedBin:
    """What a task made of a bin: the numbers of the files whose rows it took, and their file if any row was left.

    `left` are the reasons why other files stay as they are, by their paths.
    """

    number: int
    taken: tuple[int, ...]
    written: WrittenFile | None
    left: Mapping[str, str]


@dataclass(frozen=True)
class CompactionJob:
    """Makes one file of each bin that comes to a task. Bins come pickled."""

    plan: WritePlan
    source: SourceColumns
    partition_columns: tuple[Column, ...]  # those that files hold
    partition_types: tuple[str, ...]  # Delta's, of all

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for packed in batch.column(0).to_pylist():
                yield result(self._compacted(pickle.loads(packed)))

    def _compacted(self, task: BinTask) -> CompactedBin:
        left: dict[str, str] = {}
        sources = {one: rows for one in task.sources if (rows := self._live_rows(one, left)) is not None}
        while len(sources) > 1:
            read: list[SourceFile] = []
            try:
                written = self._written(task, sources, read)
                return CompactedBin(task.number, tuple(one.number for one in sources), written, left)
            except UnfitFileError as error:
                left[read[-1].path] = str(error)
                del sources[read[-1]]
        return CompactedBin(task.number, (), None, left)

    def _live_rows(self, source: SourceFile, left: dict[str, str]) -> int | None:
        """Counts the rows of a file; None, and a reason in `left`, where it stays as it is."""
        try:
            return self.source.live_rows(source)
        except UnfitFileError as error:
            left[source.path] = str(error)
            return None

    def _written(self, task: BinTask, sources: Mapping[SourceFile, int], read: list[SourceFile]) -> WrittenFile | None:
        """Writes the rows of files; None where all of them are deleted. The last of `read` is the one in work."""
        files = list(write_files(self.plan, self._batches(task, sources, read)))
        found = sum(file.record_count for file in files)
        if found != sum(sources.values()) or len(files) > 1:
            raise PenstockError(
                f"{len(sources)} files of Delta table {self.plan.directory} hold {found} rows where their footers say "
                f"{sum(sources.values())}; they are left as they are"
            )
        return files[0] if files else None

    def _batches(
        self, task: BinTask, sources: Iterable[SourceFile], read: list[SourceFile]
    ) -> Iterator[pa.RecordBatch]:
        for source in sources:
            read.append(source)
            for arrays in self.source.batches(source, self.plan.directory):
                rows = len(arrays[0])
                columns = [*arrays, *self._partition_arrays(task, rows)]
                columns += [pa.repeat(pa.scalar(text, pa.string()), rows) for text in task.partition]
                yield pa.RecordBatch.from_arrays(columns, names=[f"c{place}" for place in range(len(columns))])

    def _partition_arrays(self, task: BinTask, rows: int) -> list[pa.Array]:
        if not self.partition_columns:
            return []
        own = zip(task.partition, self.partition_types, self.partition_columns, strict=True)
        return [repeated_value(text, kind, file_field(column).type, rows) for text, kind, column in own]


def compact(
    spark: SparkSession, log: TableLog, where: str | SparkColumn | None = None, target_file_size: int | None = None
) -> int:
    """Puts small files together, and returns the version; the newest where there is nothing to do.

    Files take part that can hold rows which `where` is true for, as the log tells. One commit takes them all.
    """
    base = writable_snapshot(log)
    target = _checked_size(target_file_size) or table_file_size(base.metadata) or FILE_SIZE
    scan = FileScan.of(spark, log, base)
    writer = FileWriter.of(spark, log, base)
    bins = file_bins(_chosen_files(scan, where), scan.schema, target)
    if not bins:
        return base.version
    compacted = _run(scan, writer, bins)
    removed = [bins[one.number].files[place] for one in compacted for place in one.taken]
    added = [writer.added(one.written, data_change=False) for one in compacted if one.written is not None]
    if not removed:
        return base.version
    parameters = {"predicate": json.dumps([] if where is None else [str(where)]), "targetSize": str(target)}
    return commit_rearranged(log, base, added, removed, "OPTIMIZE", parameters)


def _checked_size(size: int | None) -> int | None:
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
        raise InvalidError(f"compact(target_file_size={size!r}): it is a number of bytes, at least 1")
    return size


def _chosen_files(scan: FileScan, where: str | SparkColumn | None) -> list[AddFile]:
    """Returns the files that can hold rows which a predicate is true for; all where it asks other tables."""
    if where is None:
        return list(scan.files)
    predicate = as_column(where)
    if has_subquery(scan.frame().where(predicate)):
        raise InvalidError(f"compact(where={str(where)!r}): it chooses files by the log alone, without a subquery")
    test = scan.file_test(predicate)
    return [file for file in scan.files if test(file)]


def _run(scan: FileScan, writer: FileWriter, bins: Sequence[FileBin]) -> list[CompactedBin]:
    """Lets tasks make a file of each bin. When the job fails, its files are gone."""
    job = _job(scan, writer)
    cores = scan.spark.sparkContext.defaultParallelism
    rows = [(pickle.dumps(_task(scan, number, one)),) for number, one in enumerate(bins)]
    given = scan.spark.createDataFrame(rows, "bin binary").repartition(min(len(bins), _TASKS_A_CORE * cores))
    work = Work(sum(len(one.files) for one in bins))
    with file_writing_job(scan.spark, scan.root, job.plan.write_id, work) as files:
        told = map_in_workers(given, job, _RESULT).collect()
        compacted: list[CompactedBin] = [pickle.loads(row.told) for row in told]
        files.report(one.written.path for one in compacted if one.written is not None)
    for one in compacted:
        for path, reason in one.left.items():
            _log.warning("%s is not compacted: %s", path, reason)
    return sorted(compacted, key=lambda one: one.number)


def _job(scan: FileScan, writer: FileWriter) -> CompactionJob:
    plan = writer.plan()
    width = len(scan.schema.partition_columns) if writer.materialized else 0
    # Where other writers have let NULL through that the schema does not allow, it stays.
    columns = tuple(replace(column, nulls_allowed=True) for column in plan.columns)
    return CompactionJob(
        replace(plan, columns=columns, options=replace(plan.options, target_file_size=_UNLIMITED)),
        SourceColumns(columns[: len(columns) - width], by_id=scan.schema.mapping == "id"),
        columns[len(columns) - width :],
        tuple(scan.schema.partition_types.values()),
    )


def _task(scan: FileScan, number: int, one: FileBin) -> BinTask:
    sources = (SourceFile(place, scan.path_of(file), file.deletion_vector) for place, file in enumerate(one.files))
    return BinTask(number, tuple(sources), one.partition)
