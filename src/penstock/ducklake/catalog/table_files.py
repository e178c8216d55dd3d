"""Lists and counts the files of tables, whatever kinds they are of."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Sequence
from typing import Any

from penstock.ducklake.catalog.databases import Database, Row
from penstock.ducklake.catalog.remembered_answers import Moment
from penstock.ducklake.catalog.snapshots import latest_snapshot
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.catalog.visible_files import MANY_FILES
from penstock.storage.paths import resolve

TableSizes = tuple[int, int, int, int]
_LISTED = "path, path_is_relative, file_size_bytes, footer_size, encryption_key"
_NO_DELETES: list[Row] = [(None,) * 6]


def table_sizes(database: Database, at: At) -> dict[int, TableSizes]:
    """For each table: the number and bytes of its data files and of its delete files."""
    if at.own is not None:
        return _table_sizes(database, at)
    newest = latest_snapshot(database)
    return database.answers.answer(
        ("sizes", at),
        Moment(newest.id, newest.time),
        lambda: _table_sizes(database, at),
        lambda sizes: sum(size[0] for size in sizes.values()) >= MANY_FILES,
    )


def _table_sizes(database: Database, at: At) -> dict[int, TableSizes]:
    sizes: dict[int, list[int]] = {}
    for place, table in ((0, "ducklake_data_file"), (2, "ducklake_delete_file")):
        sizes_sql = "coalesce(sum(file_size_bytes), 0)"  # other writers may leave them out
        sql = f"SELECT table_id, count(*), {sizes_sql} FROM {table} WHERE {at.visible()} GROUP BY table_id"
        for table_id, count, size in database.query(sql):
            sizes.setdefault(table_id, [0, 0, 0, 0])[place : place + 2] = [count, int(size)]
    return {table_id: (row[0], row[1], row[2], row[3]) for table_id, row in sizes.items()}


def table_size(database: Database, at: At, table_id: int) -> tuple[int, int]:
    """The rows and bytes of a table's data files; deleted rows still count, and rows of the catalog do not."""
    sql = f"""SELECT coalesce(sum(record_count), 0), coalesce(sum(file_size_bytes), 0)
              FROM ducklake_data_file WHERE table_id = ? AND {at.visible()}"""
    [(rows, size)] = database.query(sql, [table_id])
    return int(rows), int(size)


def listed_files(database: Database, table_id: int, table_path: str, at: At) -> list[Sequence[Any]]:
    """The data files of a table with their delete files, as the columns of the extension's `ducklake_list_files`."""
    where = f"table_id = ? AND {at.visible()}"
    with database.consistent():
        deletes = database.query(f"SELECT {_LISTED}, data_file_id FROM ducklake_delete_file WHERE {where}", [table_id])
        id_too = ", data_file_id" if deletes else ""  # each value of so many rows takes its time
        files = database.query(
            f"SELECT {_LISTED}{id_too} FROM ducklake_data_file WHERE {where} ORDER BY file_order, data_file_id",
            [table_id],
        )
    if not deletes:
        return [*_listed(table_path, files), *[[None] * len(files)] * 4]
    of_file: dict[int, list[Row]] = {}
    for row in deletes:
        of_file.setdefault(row[-1], []).append(row)
    each = [of_file.get(file[-1], _NO_DELETES) for file in files]
    data_rows = [file for file, found in zip(files, each, strict=True) for _ in found]
    return [*_listed(table_path, data_rows), *_listed(table_path, [delete for found in each for delete in found])]


def _listed(table_path: str, rows: Sequence[Row]) -> Iterator[Sequence[Any]]:
    """The columns of some rows, with whole paths."""
    paths, are_relative, sizes, footer_sizes, keys, *_ = zip(*rows, strict=True) if rows else [()] * 5
    yield [
        None if path is None else resolve(table_path, path, bool(is_relative))
        for path, is_relative in zip(paths, are_relative, strict=True)
    ]
    yield sizes
    yield footer_sizes
    yield [b64decode(key) if key else None for key in keys]
