"""Keeps the metadata in a SQLite file."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from tempfile import TemporaryDirectory
from typing import Any, ClassVar
from urllib.parse import quote

from penstock.ducklake.catalog.databases.base import (
    ConnectOptions,
    Database,
    InlinedColumn,
    Row,
    no_such_file,
    refuse_unknown,
)
from penstock.ducklake.catalog.databases.open_files import opened_file
from penstock.ducklake.catalog.dialects import SQLITE
from penstock.ducklake.catalog.location import Location
from penstock.ducklake.catalog.remote_files import local_copy
from penstock.errors import AttachError, CatalogError

_BUSY_TIMEOUT_SECONDS = 30.0
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_WAITED = sqlite3.SQLITE_BUSY  # for as long as the timeout: to try again would take as long again
_TAKEN = (sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE)


class SqliteDatabase(Database):
    """A SQLite file as the metadata database."""

    engine = "sqlite"
    product = "SQLite"
    dialect = SQLITE
    column_types: ClassVar = {"boolean": "BIGINT", "timestamptz": "VARCHAR", "uuid": "VARCHAR"}
    # A reader that starts to write cannot wait for a writer that waits for its readers.
    _commit_sql = _scratch_sql = "BEGIN IMMEDIATE"
    _indexes_sql = "SELECT name FROM sqlite_master WHERE type = 'index'"
    errors = (sqlite3.Error,)

    def __init__(self, location: Location, options: ConnectOptions) -> None:
        super().__init__(location)
        self._folder: TemporaryDirectory[str] | None = None  # of the copy of a file that is elsewhere
        if options.schema not in (None, "main"):
            raise AttachError(
                f"{location} has no schema {options.schema!r}: SQLite has none; leave metadata_schema out"
            )
        refuse_unknown(location, tuple(options.parameters), "none: SQLite has no connection to describe")
        file, mode = location.target, "ro" if options.read_only else "rwc" if options.create else "rw"
        if location.is_remote:
            self._folder, copy = local_copy(location)
            file, mode = str(copy), "ro&immutable=1"
        elif not os.path.exists(file) and not options.create:
            raise AttachError(no_such_file(location))
        uri = f"file:{quote(os.path.abspath(file))}?mode={mode}"
        try:
            self._connection = sqlite3.connect(
                uri, uri=True, timeout=_BUSY_TIMEOUT_SECONDS, check_same_thread=False, isolation_level=None
            )
            self._query("SELECT count(*) FROM sqlite_master", ())
            # What a transaction writes stays in memory until it commits: readers are not shut out before that.
            self._execute("PRAGMA cache_spill = off", ())
        except sqlite3.Error as error:
            if self._folder is not None:
                self._folder.cleanup()
            raise AttachError(f"{location} is not a DuckLake: SQLite cannot open the file ({error})") from None
        self._file = None if location.is_remote else opened_file(location)

    def _fetched(self, sql: str, parameters: Sequence[Any]) -> list[Row]:
        return self._connection.execute(sql, tuple(parameters)).fetchall()

    def _run(self, sql: str, parameters: Sequence[Any]) -> None:
        self._connection.execute(sql, tuple(parameters))

    @contextmanager
    def _cursor(self, sql: str) -> Iterator[sqlite3.Cursor]:
        yield self._connection.execute(sql)

    def _insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        places = ", ".join("?" * len(columns))
        sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})"
        self._connection.executemany(sql, map(self._adapted, rows))

    def _is_collision(self, error: BaseException) -> bool:
        return (_is_busy(error) and _code(error) != _WAITED) or _code(error) in _TAKEN

    def _failure(self, error: Exception) -> CatalogError:
        if _is_busy(error):
            return CatalogError(
                f"{self.location} is in use: another program has held it for {_BUSY_TIMEOUT_SECONDS:.0f} seconds, and "
                "nothing was done; try again when it has finished"
            )
        return super()._failure(error)

    def expect_many_rows(self) -> None:
        self.execute("PRAGMA cache_spill = on")

    def _close(self) -> None:
        self._connection.close()
        if self._folder is not None:
            self._folder.cleanup()

    def tables(self, prefix: str) -> set[str]:
        names = self.query("SELECT name FROM sqlite_master WHERE type = 'table'")
        return {name for (name,) in names if name.startswith(prefix)}

    def columns(self, table: str) -> list[str]:
        return [name for (name,) in self.query("SELECT name FROM pragma_table_info(?) ORDER BY cid", [table])]

    def inlined_text(
        self, table: str, columns: Sequence[InlinedColumn], where: str, parameters: Sequence[Any]
    ) -> list[Row]:
        names = "".join(f", {self.identifier(column.name)}" for column in columns)
        rows = self.query(f"SELECT row_id{names} FROM {self.identifier(table)} WHERE {where}", parameters)
        return [(row[0], *map(_text, row[1:])) for row in rows]

    def time_parameter(self, value: datetime) -> str:
        """DuckDB writes `2026-11-15 01:11:22.07116+00`: UTC with the fraction's zeros trimmed, which sorts as text."""
        utc = value.astimezone(UTC)
        fraction = f".{utc.microsecond:06d}".rstrip("0").rstrip(".")
        return utc.strftime("%Y-%m-%d %H:%M:%S") + fraction + "+00"


def _code(error: BaseException) -> int | None:
    return getattr(error, "sqlite_errorcode", None) if isinstance(error, sqlite3.Error) else None


def _is_busy(error: BaseException) -> bool:
    code = _code(error)
    return code is not None and code & 0xFF in _BUSY


def _text(value: Any) -> Any:
    return value if value is None or isinstance(value, str | bytes) else str(value)
