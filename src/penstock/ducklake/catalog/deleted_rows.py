"""Looks up which rows data files have lost, as far as the catalog knows."""

from __future__ import annotations

from collections.abc import Collection

from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.catalog.id_lists import id_lists
from penstock.ducklake.catalog.inlined_rows import inlined_delete_table
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.files.delete_files import DeletableFile
from penstock.ducklake.model.objects import TableInfo
from penstock.storage.paths import resolve


def deletable_files(database: Database, table: TableInfo, at: At, ids: Collection[int]) -> list[DeletableFile]:
    """Data files by their ids, each with the delete file that it has."""
    with database.consistent():
        inlined = _inlined_counts(database, table.id, at)
        found: list[DeletableFile] = []
        for listed in id_lists(ids):
            rows = database.query(
                f"""SELECT d.data_file_id, d.path, d.path_is_relative, d.record_count,
                           x.delete_file_id, x.path, x.path_is_relative, x.format, x.encryption_key,
                           x.begin_snapshot, coalesce(x.delete_count, 0)
                    FROM ducklake_data_file d
                    LEFT JOIN (SELECT * FROM ducklake_delete_file WHERE table_id = ? AND {at.visible()}) x
                      ON x.data_file_id = d.data_file_id
                    WHERE d.data_file_id IN ({listed})""",
                [table.id],
            )
            for r in rows:
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


def _inlined_counts(database: Database, table_id: int, at: At) -> dict[int, int]:
    name = inlined_delete_table(database, table_id)
    if name is None:
        return {}
    sql = f"SELECT file_id, count(*) FROM {database.identifier(name)} WHERE {at.begun()} GROUP BY file_id"
    return dict(database.query(sql))
