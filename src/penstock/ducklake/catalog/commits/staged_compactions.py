"""Stages what a compaction did: files in the place of others, or of rows and deletes that the catalog kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from penstock.ducklake.catalog.catalog_tables import FILE_DETAILS
from penstock.ducklake.catalog.commits.compacted_sources import CompactedSources, SourceState
from penstock.ducklake.catalog.commits.removed_rows import removed_by_id
from penstock.ducklake.catalog.commits.staged_files import add_file_details
from penstock.ducklake.catalog.commits.staging import Staging
from penstock.ducklake.catalog.compactable_files import CompactableFile
from penstock.ducklake.catalog.file_paths import SCHEDULE, StoredPath
from penstock.ducklake.files.delete_files import DeletableFile, WrittenDelete
from penstock.ducklake.model.objects import TableInfo
from penstock.schema.statistics import WrittenFile


@dataclass(frozen=True)
class FlushedFile:
    """A file of rows that were inlined, the first and last snapshot of them, and those that were deleted since."""

    file: WrittenFile
    first_snapshot: int
    last_snapshot: int
    delete: WrittenDelete | None = None
    first_delete: int | None = None


@dataclass(frozen=True)
class FlushedDelete:
    """A delete file with all that a data file has lost; `replaced` is the one before it, as the catalog has it."""

    file: DeletableFile
    delete: WrittenDelete
    first_snapshot: int
    last_snapshot: int
    replaced: tuple[str, bool] = ("", False)


def read_sources(staging: Staging, table: TableInfo, sources: Iterable[CompactableFile]) -> None:
    """Note the files that were read: they have to be what they were when the transaction is committed."""
    states = {
        file.id: SourceState(file.deletes.delete_file_id, file.deletes.inlined_deletes)
        if file.deletes
        else SourceState()
        for file in sources
    }
    staging.sources.append(CompactedSources(table.id, table.full_name, states))


def stage_merge(
    staging: Staging,
    table: TableInfo,
    directory: StoredPath,
    sources: Sequence[CompactableFile],
    written: WrittenFile,
    begin_snapshot: int,
) -> None:
    """Put a file in the place of others, in every snapshot that shows them; those are scheduled for deletion."""
    like = sources[0]
    _add_file(
        staging, table, written, like.partition_id, like.partition_values, begin_snapshot=begin_snapshot,
        partial_max=max(file.last_snapshot for file in sources),
    )  # fmt: skip
    for file in sources:
        _schedule(staging, directory, file.id, file.stored_path, file.path_is_relative)
    ids = [file.id for file in sources]
    staging.removed.extend(removed_by_id("ducklake_data_file", "data_file_id", ids, counted=True))
    for name in FILE_DETAILS:
        staging.removed.extend(removed_by_id(name, "data_file_id", ids))
    _log(staging, "merge_adjacent", table.id)


def stage_rewrite(
    staging: Staging, table: TableInfo, sources: Sequence[CompactableFile], written: WrittenFile | None
) -> None:
    """Put a file in the place of others, from this snapshot on; none where all of their rows were deleted."""
    if written is not None:
        like = sources[0]
        _add_file(
            staging, table, written, like.partition_id, like.partition_values, begin_snapshot=staging.own,
            partial_max=None,
        )  # fmt: skip
    staging.end("ducklake_data_file", data_file_id={file.id for file in sources})
    deletes = {file.deletes.delete_file_id for file in sources if file.deletes}
    staging.end("ducklake_delete_file", delete_file_id={number for number in deletes if number is not None})
    _log(staging, "rewrite_delete", table.id)


def stage_flushed_rows(
    staging: Staging, table: TableInfo, partition_id: int | None, files: Iterable[FlushedFile]
) -> None:
    """Add files of rows that were inlined, each with its delete file, if it has one."""
    for flushed in files:
        file = flushed.file
        file_id = _add_file(
            staging, table, file, partition_id, file.partition_values, begin_snapshot=flushed.first_snapshot,
            partial_max=flushed.last_snapshot,
        )  # fmt: skip
        if flushed.delete is not None:
            _add_delete(staging, table, file_id, flushed.delete, flushed.first_delete, None)
        staging.growing(table.id).file_bytes += file.size
    staging.log("inline_flush", table.id)


def stage_flushed_deletes(
    staging: Staging, table: TableInfo, directory: StoredPath, deletes: Iterable[FlushedDelete]
) -> None:
    """Put delete files in the place of those that data files have and of their inlined deletes."""
    for flushed in deletes:
        file = flushed.file
        if file.delete_file_id is not None:
            stored, is_relative = flushed.replaced
            _schedule(staging, directory, file.delete_file_id, stored, is_relative)
            ids = [file.delete_file_id]
            staging.removed.extend(removed_by_id("ducklake_delete_file", "delete_file_id", ids, counted=True))
        _add_delete(staging, table, file.id, flushed.delete, flushed.first_snapshot, flushed.last_snapshot)
        staging.log("deleted_from_table", table.id)


def _schedule(staging: Staging, directory: StoredPath, file_id: int, stored: str, inside: bool) -> None:
    staging.add(
        SCHEDULE,
        data_file_id=file_id,
        path=directory.path + stored if inside else stored,
        path_is_relative=directory.is_relative and inside,
        schedule_start=datetime.now(UTC),
    )


def _add_delete(
    staging: Staging, table: TableInfo, file_id: int, delete: WrittenDelete, begin: int | None, last: int | None
) -> None:
    staging.add(
        "ducklake_delete_file",
        delete_file_id=staging.ids.file_id(),
        table_id=table.id,
        begin_snapshot=begin,
        end_snapshot=None,
        data_file_id=file_id,
        path=delete.path,
        path_is_relative=True,
        format=delete.format,
        delete_count=delete.count,
        file_size_bytes=delete.size,
        footer_size=delete.footer_size,
        encryption_key=delete.encryption_key,
        partial_max=last,
    )


def _add_file(
    staging: Staging,
    table: TableInfo,
    file: WrittenFile,
    partition_id: int | None,
    partition_values: Sequence[str | None],
    **snapshots: int | None,
) -> int:
    file_id = staging.ids.file_id()
    staging.add(
        "ducklake_data_file",
        data_file_id=file_id,
        table_id=table.id,
        end_snapshot=None,
        path=file.path,
        path_is_relative=True,
        file_format="parquet",
        record_count=file.record_count,
        file_size_bytes=file.size,
        footer_size=file.footer_size,
        row_id_start=None,  # it brings the row ids
        partition_id=partition_id,
        encryption_key=file.encryption_key,
        **snapshots,
    )
    add_file_details(staging, table.id, file_id, file, partition_values)
    return file_id


def _log(staging: Staging, kind: str, table_id: int) -> None:
    """Note the change. The extension does not refuse inlined deletes beside it, unless it is noted as a flush too."""
    staging.log(kind, table_id)
    staging.log("inline_flush", table_id)
