"""Lists the paths of all files that the catalog names, whichever snapshots see them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.catalog.id_lists import id_lists
from penstock.storage.paths import folder, resolve

SCHEDULE = "ducklake_files_scheduled_for_deletion"
_ROWS_A_QUERY = 100_000


@dataclass(frozen=True)
class ScheduledFile:
    """A file that waits for its deletion; `stored` is its path as the catalog has it, `path` the absolute one."""

    id: int
    stored: str
    path: str


def scheduled_files(database: Database, data_path: str, before: datetime | None = None) -> list[ScheduledFile]:
    """The files that were scheduled for deletion, all or before a time."""
    where, parameters = ("WHERE schedule_start < ?", [before]) if before is not None else ("", [])
    sql = f"SELECT data_file_id, path, path_is_relative FROM {SCHEDULE} {where} ORDER BY data_file_id"
    return [ScheduledFile(r[0], r[1], resolve(data_path, r[1], bool(r[2]))) for r in database.query(sql, parameters)]


def check_may_forget(database: Database) -> None:
    """An error for a user who may not forget files: such a one shall not delete them first."""
    database.execute(f"DELETE FROM {SCHEDULE} WHERE 1 = 0")


def forget_scheduled(database: Database, files: Iterable[ScheduledFile]) -> None:
    """Forget files that are deleted. Others may have been scheduled under the same id: the path has to be theirs."""
    deleted = {(file.id, file.stored) for file in files}
    with database.turn(), database.transaction():
        for listed in id_lists({number for number, _ in deleted}):
            rows = database.query(f"SELECT data_file_id, path FROM {SCHEDULE} WHERE data_file_id IN ({listed})")
            others = {number for number, path in rows if (number, path) not in deleted}
            for ids in id_lists({number for number, _ in rows} - others):
                database.execute(f"DELETE FROM {SCHEDULE} WHERE data_file_id IN ({ids})")
            for number, path in rows:
                if number in others and (number, path) in deleted:
                    database.execute(f"DELETE FROM {SCHEDULE} WHERE data_file_id = ? AND path = ?", [number, path])


class NamedFile(NamedTuple):
    """A data or delete file that the catalog names; a `live` one has not been removed from its table."""

    path: str  # absolute
    table_id: int
    live: bool


def named_files(database: Database, data_path: str) -> Iterator[NamedFile]:
    """All data and delete files of all tables."""
    directories = _table_directories(database, data_path)
    for table, key in (("ducklake_data_file", "data_file_id"), ("ducklake_delete_file", "delete_file_id")):
        last = -1
        while True:
            rows = database.query(
                f"""SELECT {key}, table_id, path, path_is_relative, end_snapshot FROM {table} WHERE {key} > ?
                    ORDER BY {key} LIMIT {_ROWS_A_QUERY}""",
                [last],
            )
            for file_id, table_id, path, is_relative, end in rows:
                absolute = resolve(directories.get(table_id, data_path), path, bool(is_relative))
                yield NamedFile(absolute, table_id, end is None)
                last = file_id
            if len(rows) < _ROWS_A_QUERY:
                break


def schema_directories(database: Database, data_path: str) -> set[str]:
    """Where the tables of every schema are that the catalog knows, of any snapshot."""
    rows = database.query("SELECT path, path_is_relative FROM ducklake_schema")
    return {folder(resolve(data_path, path or "", bool(is_relative))) for path, is_relative in rows}


def table_directories(database: Database, data_path: str) -> set[str]:
    """Where the files of every table are that the catalog knows, of any snapshot."""
    return set(_table_directories(database, data_path).values())


def _table_directories(database: Database, data_path: str) -> dict[int, str]:
    stored = stored_directories(database)
    return {table_id: folder(resolve(data_path, *directory)) for table_id, directory in stored.items()}


def _folder(path: str | None) -> str:
    """A stored path with a slash at its end, which other writers may leave out."""
    return folder(path) if path else ""


class StoredPath(NamedTuple):
    """A path as the catalog has it."""

    path: str
    is_relative: bool  # to the data path

    def of(self, stored: str, inside: bool) -> StoredPath:
        """The path of a file that is stored as one inside this directory, or as one anywhere."""
        return StoredPath(self.path + stored if inside else stored, self.is_relative and inside)


def stored_directories(database: Database) -> dict[int, StoredPath]:
    """Where the files of every table are that the catalog knows: as its last row says, whichever snapshots see it."""
    rows = database.query(
        """SELECT t.table_id, t.path, t.path_is_relative, s.path, s.path_is_relative FROM ducklake_table t
           LEFT JOIN ducklake_schema s ON s.schema_id = t.schema_id ORDER BY t.begin_snapshot"""
    )
    found = {}
    for table_id, path, is_relative, schema_path, schema_is_relative in rows:
        schema = StoredPath(_folder(schema_path), schema_is_relative is None or bool(schema_is_relative))
        found[table_id] = schema.of(_folder(path), bool(is_relative))
    return found
