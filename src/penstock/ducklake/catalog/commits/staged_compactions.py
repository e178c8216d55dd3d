"""Stages what a compaction did: files in the place of others, or of rows and deletes that the catalog kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from penstock.ducklake.catalog.catalog_tables import FILE_DETAILS
from penstock.ducklake.catalog.commits.compacted_sources import CompactedSources, SourceState
from penstock.ducklake.catalog.commits.removed_rows import removed_by_id
from penstock.ducklake.catalog.commits.staged_deletes import add_delete_row, add_flushed_deletes
from penstock.ducklake.catalog.commits.staged_files import add_compacted_file
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
    first_delete: int = 0


@dataclass(frozen=True)
class FlushedDelete:
    """A delete file with all that a data file has lost."""

    file: DeletableFile
    delete: WrittenDelete
    first_snapshot: int
    last_snapshot: int


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
    add_compacted_file(
        staging, table.id, written, like.partition_id, like.partition_values, begin_snapshot=begin_snapshot,
        partial_max=max(file.last_snapshot for file in sources),
    )  # fmt: skip
    now = datetime.now(UTC)
    for file in sources:
        path, is_relative = directory.of(file.stored_path, file.path_is_relative)
        staging.add(SCHEDULE, data_file_id=file.id, path=path, path_is_relative=is_relative, schedule_start=now)
    ids = [file.id for file in sources]
    staging.removed.extend(removed_by_id("ducklake_data_file", "data_file_id", ids, counted=True))
    for name in FILE_DETAILS:
        staging.removed.extend(removed_by_id(name, "data_file_id", ids, of=table.id))
    _log(staging, "merge_adjacent", table.id)


def stage_rewrite(
    staging: Staging, table: TableInfo, sources: Sequence[CompactableFile], written: WrittenFile | None
) -> None:
    """Put a file in the place of others, from this snapshot on; none where all of their rows were deleted."""
    if written is not None:
        like = sources[0]
        add_compacted_file(
            staging, table.id, written, like.partition_id, like.partition_values, begin_snapshot=staging.own,
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
        file_id = add_compacted_file(
            staging, table.id, file, partition_id, file.partition_values, begin_snapshot=flushed.first_snapshot,
            partial_max=flushed.last_snapshot,
        )  # fmt: skip
        if flushed.delete is not None:
            add_delete_row(staging, table.id, file_id, flushed.delete, flushed.first_delete)
        staging.growing(table.id).file_bytes += file.size
    staging.log("inline_flush", table.id)


def stage_flushed_deletes(staging: Staging, table: TableInfo, deletes: Iterable[FlushedDelete]) -> None:
    """Put delete files in the place of those that data files have and of their inlined deletes."""
    given = [(one.file, one.delete, one.first_snapshot, one.last_snapshot) for one in deletes]
    add_flushed_deletes(staging, table, given)


def _log(staging: Staging, kind: str, table_id: int) -> None:
    """Note the change. The extension does not refuse inlined deletes beside it, unless it is noted as a flush too."""
    staging.log(kind, table_id)
    staging.log("inline_flush", table_id)
