"""Stages deletes of rows in files: by delete files, or as positions that the catalog itself keeps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from penstock.ducklake.catalog.commits.provisional_ids import is_provisional
from penstock.ducklake.catalog.commits.replaced_deletes import stored_delete
from penstock.ducklake.catalog.commits.staging import ReplacedDelete, Staging
from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.catalog.inlined_rows import inlined_delete_name, inlined_delete_table
from penstock.ducklake.catalog.inlined_storage import create_inlined_deletes_sql
from penstock.ducklake.files.delete_files import DeletableFile, WrittenDelete
from penstock.ducklake.model.objects import TableInfo


def replaced_delete(staging: Staging, table: TableInfo, file: DeletableFile) -> ReplacedDelete | None:
    """The committed delete file that a new one of a data file takes the place of."""
    number = file.delete_file_id
    if number is None or is_provisional(number):
        return staging.replaced.get(number) if number is not None else None
    return ReplacedDelete(number, file.delete_begin or 0, file.path, table.path)


def add_delete_files(
    staging: Staging, table: TableInfo, deletes: Sequence[tuple[DeletableFile, WrittenDelete]], snapshot: int
) -> None:
    """Add delete files, in the place of those that the data files have.

    Where those are committed, the new ones tell `snapshot` as the number of what the transaction deletes.
    """
    replaced = [replaced_delete(staging, table, file) for file, _ in deletes]
    _end(staging, (file for file, _ in deletes))
    for (file, delete), before in zip(deletes, replaced, strict=True):
        if before is None:
            add_delete_row(staging, table.id, file.id, delete, staging.own)
        else:
            number = add_delete_row(staging, table.id, file.id, delete, before.begin_snapshot, staging.own)
            staging.replaced[number] = replace(before, expected=snapshot)
    if deletes:
        _log(staging, table.id)


def add_flushed_deletes(
    staging: Staging, table: TableInfo, deletes: Sequence[tuple[DeletableFile, WrittenDelete, int, int]]
) -> None:
    """Add delete files that hold inlined deletes too, each with its first and last snapshot."""
    replaced = [replaced_delete(staging, table, file) for file, *_ in deletes]
    _end(staging, (file for file, *_ in deletes))
    for (file, delete, first, last), before in zip(deletes, replaced, strict=True):
        number = add_delete_row(staging, table.id, file.id, delete, first, last)
        if before is not None:
            staging.replaced[number] = before
    if deletes:
        _log(staging, table.id)


def _end(staging: Staging, files: Iterable[DeletableFile]) -> None:
    ids = {file.delete_file_id for file in files if file.delete_file_id is not None}
    if ids:
        staging.end("ducklake_delete_file", delete_file_id=ids)


def _log(staging: Staging, table_id: int) -> None:
    """Note deletes in files, so that the extension refuses its own beside them.

    It looks for delete files that begin later than its transaction, which replaced ones and inlined deletes do not, and
    knows of merges; and it keeps deletes of the same rows in the catalog, unless there was a flush.
    """
    for kind in ("deleted_from_table", "inline_flush", "merge_adjacent"):
        staging.log(kind, table_id)


def add_delete_row(
    staging: Staging, table_id: int, file_id: int, delete: WrittenDelete, first: int, last: int | None = None
) -> int:
    """Add the row of a delete file, from one snapshot on; `last` where it tells the snapshots of its positions."""
    number = staging.ids.file_id()
    staging.add(
        "ducklake_delete_file",
        delete_file_id=number,
        table_id=table_id,
        begin_snapshot=first,
        end_snapshot=None,
        data_file_id=file_id,
        partial_max=last,
        **stored_delete(delete),
    )
    return number


def keeps_deletes(database: Database, table_id: int) -> bool:
    """Whether positions in files can be kept in the catalog: their table is there, or may be made."""
    return database.can_create_tables or inlined_delete_table(database, table_id) is not None


def add_inlined_deletes(
    staging: Staging, database: Database, table_id: int, deletes: Iterable[tuple[int, Iterable[int]]]
) -> None:
    """Keep deleted positions in the catalog. Their table is made at once: empty, it says nothing."""
    name = inlined_delete_name(table_id)
    if not database.existing([name]):
        _make_inlined_delete_table(database, name)
    for file_id, positions in deletes:
        for position in positions:
            staging.add(name, file_id=file_id, row_id=position, begin_snapshot=staging.own)
    staging.log("inlined_delete", table_id)
    _log(staging, table_id)


def _make_inlined_delete_table(database: Database, name: str) -> None:
    try:
        database.execute(create_inlined_deletes_sql(database, name, "IF NOT EXISTS "))
    except Exception:
        # Two that make it at the same time collide in PostgreSQL in spite of IF NOT EXISTS; the other's is as good.
        if not database.existing([name]):
            raise
