"""Looks up which rows data files have lost, as far as the catalog knows."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from penstock.ducklake.catalog.databases import Database, Row
from penstock.ducklake.catalog.id_lists import id_lists
from penstock.ducklake.catalog.inlined_rows import inlined_delete_table
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.files.delete_files import DeletableFile
from penstock.ducklake.model.objects import TableInfo
from penstock.storage.paths import resolve

_NO_DELETES: list[Row] = [(None, None, None, None, None, None, 0)]


def deletable_files(database: Database, table: TableInfo, at: At, ids: Collection[int]) -> list[DeletableFile]:
    """Data files by their ids, each with the delete file that it has."""
    with database.consistent():
        inlined = _inlined_counts(database, table.id, at)
        found: list[DeletableFile] = []
        for listed in id_lists(ids):
            for r in _files(database, table.id, at, listed):
                delete_path = None if r[5] is None else resolve(table.path, r[5], bool(r[6]))
                found.append(
                    DeletableFile(
                        r[0],
                        resolve(table.path, r[1], bool(r[2])),
                        r[3],
                        r[4],
                        delete_path,
                        r[7],
                        r[8],
                        inlined.get(r[0], 0),
                        r[9],
                        int(r[10]),
                    )
                )
    return found


def _files(database: Database, table_id: int, at: At, listed: str) -> Iterator[Row]:
    """Data files of a list, each with what its delete file is."""
    deletes: dict[int, list[Row]] = {}
    for file_id, *found in database.query(
        f"""SELECT data_file_id, delete_file_id, path, path_is_relative, format, encryption_key, begin_snapshot,
                   coalesce(delete_count, 0)
            FROM ducklake_delete_file WHERE table_id = ? AND {at.visible()} AND data_file_id IN ({listed})""",
        [table_id],
    ):
        deletes.setdefault(file_id, []).append(tuple(found))
    for file in database.query(
        f"""SELECT data_file_id, path, path_is_relative, record_count FROM ducklake_data_file
            WHERE data_file_id IN ({listed})"""
    ):
        for delete in deletes.get(file[0], _NO_DELETES):
            yield (*file, *delete)


def _inlined_counts(database: Database, table_id: int, at: At) -> dict[int, int]:
    name = inlined_delete_table(database, table_id)
    if name is None:
        return {}
    sql = f"SELECT file_id, count(*) FROM {database.identifier(name)} WHERE {at.begun()} GROUP BY file_id"
    return dict(database.query(sql))
