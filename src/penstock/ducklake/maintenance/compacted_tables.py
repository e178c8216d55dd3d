"""Merges small files of tables, and writes files anew that have lost many rows: table by table, each by itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penstock.ducklake.attachment import Attachment
from penstock.ducklake.catalog import objects
from penstock.ducklake.catalog.commits.staged_compactions import stage_merge, stage_rewrite
from penstock.ducklake.catalog.compactable_files import CompactableFile
from penstock.ducklake.catalog.file_bins import Bin, SizeLimits, merge_bins, rewrite_bins
from penstock.ducklake.maintenance.compaction import Compacted, Compaction, TableCompaction, compact
from penstock.ducklake.model.names import DEFAULT_SCHEMA
from penstock.ducklake.model.objects import TableInfo
from penstock.ducklake.model.option_values import parse_threshold
from penstock.ducklake.writing.file_options import file_options
from penstock.errors import InvalidError, NotFoundError
from penstock.schema.statistics import WrittenFile


def merge_adjacent_files(
    attachment: Attachment,
    tables: Sequence[TableInfo],
    min_file_size: int | None = None,
    max_file_size: int | None = None,
    max_compacted_files: int | None = None,
    where: str | None = None,
) -> list[Compacted]:
    """Merge the small files of tables. Returns a line for each file that was made."""
    _check_merge(min_file_size, max_file_size, max_compacted_files)

    def plan(work: TableCompaction, files: Sequence[CompactableFile]) -> list[Bin]:
        limits = SizeLimits(file_options(work.target.option).target_file_size, min_file_size, max_file_size)
        return merge_bins(files, work.table.history, limits, max_compacted_files)

    def stage(work: TableCompaction, each: Bin, written: WrittenFile | None) -> None:
        assert written is not None  # there are rows, since nothing was deleted
        staging, info = work.transaction.staging, work.table.info
        stage_merge(staging, info, work.directory, each.files, written, each.begin_snapshot)

    way = Compaction("merge_adjacent_files", True, plan, stage)
    return [line for table in tables for line in compact(attachment, way, table, where)]


def rewrite_data_files(
    attachment: Attachment, tables: Sequence[TableInfo], delete_threshold: float | None = None, where: str | None = None
) -> list[Compacted]:
    """Write files anew, without the rows that they have lost. Returns a line for each that was made, or is gone."""
    if delete_threshold is not None and not 0 <= delete_threshold <= 1:
        raise InvalidError(f"delete_threshold cannot be {delete_threshold}: it is a part of a file's rows, from 0 to 1")

    def plan(work: TableCompaction, files: Sequence[CompactableFile]) -> list[Bin]:
        threshold = delete_threshold
        if threshold is None:
            threshold = parse_threshold(work.target.option("rewrite_delete_threshold"))
        return rewrite_bins(files, threshold, file_options(work.target.option).target_file_size, work.table.base)

    def stage(work: TableCompaction, each: Bin, written: WrittenFile | None) -> None:
        stage_rewrite(work.transaction.staging, work.table.info, each.files, written)

    way = Compaction("rewrite_data_files", False, plan, stage)
    return [line for table in tables for line in compact(attachment, way, table, where)]


def compacted_tables(attachment: Attachment, table: str | None, schema: str | None) -> list[TableInfo]:
    """The table of a name, or all tables that are compacted without being named: of a schema, or of the lake."""
    shown = attachment.shown()
    if table is not None:
        return [objects.find_table(shown.database, shown.at, shown.data_path, schema or DEFAULT_SCHEMA, table)]
    if schema is not None and attachment.schema_id(schema) is None:
        raise NotFoundError(f"there is no schema {schema}")
    found = objects.tables(shown.database, shown.at, shown.data_path)
    return list(
        _automatic(attachment, (one for one in found if schema is None or objects.same_name(one.schema.name, schema)))
    )


def _automatic(attachment: Attachment, tables: Iterable[TableInfo]) -> Iterable[TableInfo]:
    return (one for one in tables if attachment.option("auto_compact", one.schema.id, one.id) != "false")


def _check_merge(min_file_size: int | None, max_file_size: int | None, max_compacted_files: int | None) -> None:
    for name, value in (("max_file_size", max_file_size), ("max_compacted_files", max_compacted_files)):
        if value is not None and value < 1:
            raise InvalidError(f"{name} cannot be {value}: it takes 1 or more")
    if min_file_size is not None and min_file_size < 0:
        raise InvalidError(f"min_file_size cannot be {min_file_size}: it is a number of bytes")
    if min_file_size is not None and max_file_size is not None and min_file_size >= max_file_size:
        raise InvalidError(f"min_file_size ({min_file_size}) has to be less than max_file_size ({max_file_size})")
