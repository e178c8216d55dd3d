"""Puts delete files in the place of earlier ones of the same data files, as the extension does.

There is one row for all that a data file has lost, and its file says for each position which snapshot deleted it. What
number a transaction's own snapshot has is known only when it commits: its files are written with the number that it
probably has, and once more where another writer was faster.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from penstock.ducklake.catalog.commits.staging import DELETE_FILES, ReplacedDelete, Staging
from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.catalog.file_paths import SCHEDULE, StoredPath, stored_directories
from penstock.ducklake.catalog.id_lists import id_lists
from penstock.ducklake.files.delete_files import (
    DatedPositions,
    DeletableFile,
    WrittenDelete,
    read_dated_positions,
    write_dated_delete_file,
)
from penstock.errors import ConflictError
from penstock.storage.parquet import delete_written
from penstock.storage.parquet.names import new_write_id

_WRITERS = 16


def date_deletes(staging: Staging, snapshot: int) -> None:
    """Write the staged delete files anew that expected another number than the snapshot has."""
    late = [
        (row, replaced)
        for row in staging.rows(DELETE_FILES)
        if (replaced := staging.replaced.get(row["delete_file_id"])) and replaced.expected not in (None, snapshot)
    ]
    if not late:
        return
    write_id, pool = new_write_id(), ThreadPoolExecutor(_WRITERS)
    try:
        written = list(pool.map(lambda one: _dated(one[0], one[1], snapshot, write_id), late))
        staging.files.extend(late[n][1].directory + delete.path for n, delete in enumerate(written))
    except BaseException:
        pool.shutdown(cancel_futures=True)
        for directory in {replaced.directory for _, replaced in late}:
            with suppress(OSError):  # what failed first is the news
                delete_written(directory, write_id)
        raise
    finally:
        pool.shutdown()
    for (row, replaced), delete in zip(late, written, strict=True):
        staging.dated[row["delete_file_id"]] = stored_delete(delete)
        staging.replaced[row["delete_file_id"]] = replace(replaced, expected=snapshot)


def stored_delete(delete: WrittenDelete) -> dict[str, Any]:
    """What the catalog's row says of a delete file, besides which data file and which snapshots it is for."""
    return {
        "path": delete.path,
        "path_is_relative": True,
        "format": delete.format,
        "delete_count": delete.count,
        "file_size_bytes": delete.size,
        "footer_size": delete.footer_size,
        "encryption_key": delete.encryption_key,
    }


def _dated(row: Mapping[str, Any], replaced: ReplacedDelete, snapshot: int, write_id: str) -> WrittenDelete:
    key = row["encryption_key"]
    path = replaced.directory + row["path"]
    file = DeletableFile(row["data_file_id"], replaced.data_file, 0, None, path, row["format"], key)
    deleted = read_dated_positions(file)
    snapshots = np.where(deleted.snapshots == replaced.expected, snapshot, deleted.snapshots)
    dated = DatedPositions(deleted.positions, snapshots)
    return write_dated_delete_file(replaced.directory, write_id, replaced.data_file, dated, encrypted=key is not None)


def remove_replaced(database: Database, staging: Staging, snapshot: int) -> None:
    """Remove the rows of replaced delete files, which the snapshot has just ended, and schedule the files."""
    staged = (row["delete_file_id"] for row in staging.added.get(DELETE_FILES, ()))
    ids = {staging.replaced[number].id for number in staged if number in staging.replaced}
    if not ids:
        return
    directories, now, scheduled = stored_directories(database), datetime.now(UTC), []
    for listed in id_lists(ids):
        where = f"delete_file_id IN ({listed}) AND end_snapshot = ?"
        sql = f"SELECT delete_file_id, table_id, path, path_is_relative FROM {DELETE_FILES} WHERE {where}"
        for number, table_id, path, is_relative in database.query(sql, [snapshot]):
            directory = directories.get(table_id, StoredPath("", True))
            scheduled.append((number, *directory.of(path, bool(is_relative)), now))
        database.execute(f"DELETE FROM {DELETE_FILES} WHERE {where}", [snapshot])
    if len(scheduled) < len(ids):
        raise ConflictError(
            "delete files were replaced by another writer meanwhile; nothing was committed: read the lake again and "
            "repeat what you did"
        )
    database.insert(SCHEDULE, ("data_file_id", "path", "path_is_relative", "schedule_start"), scheduled)
