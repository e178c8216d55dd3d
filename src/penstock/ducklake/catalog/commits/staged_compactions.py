"""Stages what a compaction did: files in the place of others, for all snapshots or from this one on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from penstock.ducklake.catalog.catalog_tables import FILE_DETAILS
from penstock.ducklake.catalog.commits.compacted_sources import CompactedSources, SourceState
from penstock.ducklake.catalog.commits.staged_files import add_file_details
from penstock.ducklake.catalog.commits.staging import Staging
from penstock.ducklake.catalog.compactable_files import CompactableFile
from penstock.ducklake.catalog.file_paths import SCHEDULE, StoredPath
from penstock.ducklake.model.objects import TableInfo
from penstock.schema.statistics import WrittenFile


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
    _add(
        staging, table, sources[0], written, begin_snapshot=begin_snapshot,
        partial_max=max(file.last_snapshot for file in sources),
    )  # fmt: skip
    now = datetime.now(UTC)
    for file in sources:
        inside = file.path_is_relative
        staging.add(
            SCHEDULE,
            data_file_id=file.id,
            path=directory.path + file.stored_path if inside else file.stored_path,
            path_is_relative=directory.is_relative and inside,
            schedule_start=now,
        )
    ids = {file.id for file in sources}
    for name in ("ducklake_data_file", *FILE_DETAILS):
        staging.replaced.setdefault(name, set()).update(ids)
    _log(staging, "merge_adjacent", table.id)


def stage_rewrite(
    staging: Staging, table: TableInfo, sources: Sequence[CompactableFile], written: WrittenFile | None
) -> None:
    """Put a file in the place of others, from this snapshot on; none where all of their rows were deleted."""
    if written is not None:
        _add(staging, table, sources[0], written, begin_snapshot=staging.own, partial_max=None)
    staging.end("ducklake_data_file", data_file_id={file.id for file in sources})
    deletes = {file.deletes.delete_file_id for file in sources if file.deletes}
    staging.end("ducklake_delete_file", delete_file_id={number for number in deletes if number is not None})
    _log(staging, "rewrite_delete", table.id)


def _add(staging: Staging, table: TableInfo, like: CompactableFile, file: WrittenFile, **snapshots: int | None) -> None:
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
        partition_id=like.partition_id,
        encryption_key=file.encryption_key,
        **snapshots,
    )
    add_file_details(staging, table.id, file_id, file, like.partition_values)


def _log(staging: Staging, kind: str, table_id: int) -> None:
    """Note the change. The extension does not refuse inlined deletes beside it, unless it is noted as a flush too."""
    staging.log(kind, table_id)
    staging.log("inline_flush", table_id)
