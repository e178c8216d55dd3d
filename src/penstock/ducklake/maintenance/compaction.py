"""Compacts a table: plans which files become one, lets the tasks write them, and commits, as often as it takes."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

from penstock.ducklake.attachment import Attachment
from penstock.ducklake.catalog.commits.commit import CommitInfo
from penstock.ducklake.catalog.commits.staged_compactions import read_sources
from penstock.ducklake.catalog.compactable_files import (
    CompactableFile,
    CompactableTable,
    compactable_table,
    files_with_nan,
    inlined_positions,
)
from penstock.ducklake.catalog.file_bins import Bin
from penstock.ducklake.catalog.file_paths import StoredPath, stored_directories
from penstock.ducklake.catalog.objects import columns_at
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.catalog.visible_files import name_mapping
from penstock.ducklake.files.delete_files import DeletableFile
from penstock.ducklake.files.sealed_keys import Seal
from penstock.ducklake.maintenance.compaction_job import (
    RESULT,
    CompactionJob,
    FileBin,
    SourceFile,
    idle_threads,
)
from penstock.ducklake.maintenance.file_shapes import FileShapes
from penstock.ducklake.model.files import MappedField
from penstock.ducklake.model.objects import TableInfo
from penstock.ducklake.reading.pushed_filters import pushed_filters
from penstock.ducklake.reading.table_scan import table_scan
from penstock.ducklake.transaction import Transaction
from penstock.ducklake.writing.file_options import file_options
from penstock.ducklake.writing.sort_order import columns_of_key, sort_expressions
from penstock.ducklake.writing.write_target import WriteTarget, write_target
from penstock.errors import ConflictError
from penstock.partitioning import directory as hive_directory
from penstock.partitioning import directory_names
from penstock.schema.statistics import WrittenFile
from penstock.schema.types import Order
from penstock.spark.cores import core_count
from penstock.spark.file_tasks import file_writing_job
from penstock.spark.job_progress import job_progress
from penstock.spark.stores import prepare_other_store
from penstock.spark.task_rows import rows_in_tasks
from penstock.spark.workers import map_in_workers
from penstock.storage.parquet.names import new_write_id

_T = TypeVar("_T")
_ATTEMPTS = 5  # plans that other writers may spoil
_log = logging.getLogger("penstock")
Compacted = tuple[str, str, int, int]  # schema, table, files processed, files created


@dataclass(frozen=True)
class TableCompaction:
    """A table that is compacted inside a transaction: what was found, and how it is written."""

    transaction: Transaction
    table: CompactableTable
    target: WriteTarget
    directory: StoredPath


@dataclass(frozen=True)
class Compaction:
    """One way to compact: which files become one, and how a result is staged."""

    verb: str
    snapshot_ids: bool  # whether rows bring the snapshots that they are of
    plan: Callable[[TableCompaction, Sequence[CompactableFile]], Sequence[Bin]]
    stage: Callable[[TableCompaction, Bin, WrittenFile | None], None]


def compact(attachment: Attachment, way: Compaction, table: TableInfo, where: str | None) -> list[Compacted]:
    """Compact one table in a transaction of its own."""
    return repeated(way.verb, table, lambda: _compact(attachment, way, table, where))


def repeated(verb: str, table: TableInfo, attempt: Callable[[], _T]) -> _T:
    """Try the compaction of a table. Other writers may spoil it: then what is left is planned again."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return attempt()
        except ConflictError as error:
            _log.info("%s of %s is planned again: %s", verb, table.full_name, error)
    return attempt()


@contextmanager
def compaction_transaction(attachment: Attachment, verb: str) -> Iterator[Transaction]:
    """A transaction of its own; where the lake wants a message with every commit, the verb is that."""
    demanded = attachment.option("require_commit_message", None, None) == "true"
    with attachment.transaction(CommitInfo(message=verb if demanded else None)) as transaction:
        yield transaction


def _compact(attachment: Attachment, way: Compaction, info: TableInfo, where: str | None) -> list[Compacted]:
    with compaction_transaction(attachment, way.verb) as transaction:
        table = compactable_table(transaction.catalog.database, info)
        target = write_target(transaction, info, attachment.options)
        directory = stored_directories(transaction.catalog.database).get(info.id, StoredPath("", True))
        work = TableCompaction(transaction, table, target, directory)
        files = table.files if where is None else _chosen(attachment, table, where)
        bins = way.plan(work, files)
        if not bins:
            return []
        written = _written(attachment, way, work, bins)
        read_sources(transaction.staging, info, [file for each in bins for file in each.files])
        for number, each in enumerate(bins):
            way.stage(work, each, written[number])
    return [
        (info.schema.name, info.name, len(each.files), int(written[number] is not None))
        for number, each in enumerate(bins)
    ]


def _chosen(attachment: Attachment, table: CompactableTable, where: str) -> list[CompactableFile]:
    """The files that may hold a row for which a predicate is true, by partition values and statistics."""
    shown = attachment.shown()
    with shown.database.consistent():
        scan = table_scan(attachment, shown, table.info)
        contents = scan.contents()
    ids = {
        file.id
        for group in contents.groups
        for planner, filters in pushed_filters(scan, group, contents, where)
        for file in planner.files_for(filters)
    }
    return [file for file in table.files if file.id in ids]


def _written(
    attachment: Attachment, way: Compaction, work: TableCompaction, bins: Sequence[Bin]
) -> Mapping[int, WrittenFile | None]:
    """Let a task write each bin. The files are noted, so that they go if the transaction fails."""
    spark, info = attachment.spark, work.table.info
    cores = core_count(spark)
    for file in (file for each in bins for file in each.files if not file.path_is_relative):
        prepare_other_store(spark, file.path, info.path)
    job = _job(work, way, threads=idle_threads(cores, len(bins)))
    packed = [(bytearray(pickle.dumps(each)),) for each in _file_bins(work, job, bins)]
    rows = rows_in_tasks(spark, packed, "bin binary", len(packed))
    sources = [file.size for each in bins for file in each.files]
    with (
        file_writing_job(spark, info.path, job.write_id) as files,
        job_progress(spark, files.tag, f"{way.verb}:", len(sources), sum(sources)),
    ):
        results = map_in_workers(rows, job, RESULT).collect()
        written: dict[int, WrittenFile | None] = {row.bin: pickle.loads(row.file) for row in results}
        paths = [file.path for file in written.values() if file is not None]
        files.report(paths)
        work.transaction.staging.files.extend(info.path + path for path in paths)
    return written


def _job(work: TableCompaction, way: Compaction, *, threads: int) -> CompactionJob:
    target = work.target
    order = target.sort_order
    sort = sort_expressions(order, target.columns, target.info.full_name, target.macros) if order else None
    return CompactionJob(
        directory=target.info.path,
        options=file_options(target.option),
        write_id=new_write_id(),
        encrypted=target.encrypted,
        snapshot_ids=way.snapshot_ids,
        sort=sort.keys if sort else (),
        macros=sort.macros if sort else (),
        threads=threads,
    )


def _file_bins(work: TableCompaction, job: CompactionJob, bins: Sequence[Bin]) -> list[FileBin]:
    table, target = work.table, work.target
    database = work.transaction.catalog.database
    ids = {file.id for each in bins for file in each.files if file.delete_count}
    inlined = inlined_positions(database, table.info.id, At(table.base), ids) if ids else {}
    mapped = {file.mapping_id for each in bins for file in each.files if file.mapping_id is not None}
    mappings: dict[int, Sequence[MappedField]] = {number: name_mapping(database, number) for number in mapped}
    floats = {version.column.id for version in table.history.columns if version.column.type.order is Order.FLOAT}
    nans = files_with_nan(database, table.info.id, {file.id for each in bins for file in each.files}, floats)
    found = []
    for number, each in enumerate(bins):
        columns = columns_at(table.history.columns, At(each.columns_at))
        shapes = FileShapes(columns, table.history, mappings)
        sources = tuple(
            SourceFile(
                file.path,
                job.seal.close(file.encryption_key, file.path),
                shapes.number(file),
                file.row_id_start,
                file.begin_snapshot,
                file.size,
                _sealed(file.deletes, job.seal) if file.deletes and file.deletes.delete_path else None,
                tuple(inlined[file.id].positions.tolist()) if file.id in inlined else (),
            )
            for file in each.files
        )
        rows = sum(file.record_count for file in each.files)
        names = _current_names(target, {column.id for column in columns})
        current = tuple(names.get(column.id) for column in columns) if names is not None else ()
        with_nan = frozenset().union(*(nans[file.id] for file in each.files))
        folder = _folder(target, each)
        found.append(FileBin(number, columns, shapes.shapes, sources, folder, rows, with_nan, current))
    return found


def _sealed(file: DeletableFile, seal: Seal) -> DeletableFile:
    return replace(file, delete_key=seal.close(file.delete_key, file.delete_path or ""))


def _current_names(target: WriteTarget, ids: set[int]) -> dict[int, str] | None:
    """What the sort order calls columns; None where a column that it sorts by is not there."""
    used = {column.id for key in target.sort_order for column in columns_of_key(key, target.columns)}
    return {column.id: column.name for column in target.columns} if used <= ids else None


def _folder(target: WriteTarget, each: Bin) -> str:
    """The folder of the files, below the table's; of linked ones, where new files of their partition would be."""
    relative = next((file.stored_path for file in each.files if file.path_is_relative), None)
    if relative is not None:
        return relative[: relative.rfind("/") + 1]
    spec, first = target.spec, each.files[0]
    if spec is None or spec.partition_id != first.partition_id or target.option("hive_file_pattern") == "false":
        return ""
    return hive_directory(directory_names(spec, target.columns), first.partition_values)
