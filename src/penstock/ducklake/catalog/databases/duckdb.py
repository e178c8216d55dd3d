"""Keeps the metadata in a DuckDB file."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa

from penstock.ducklake.catalog.databases.base import ConnectOptions, Database, InlinedColumn, Row, no_such_file
from penstock.ducklake.catalog.databases.open_files import shared_file
from penstock.ducklake.catalog.databases.statement_log import logged
from penstock.ducklake.catalog.dialects import DUCKDB
from penstock.ducklake.catalog.location import Location
from penstock.errors import AttachError
from penstock.storage.duckdb_files import load_httpfs
from penstock.storage.duckdb_sql import text_literal
from penstock.storage.s3 import add_secret, s3_access
from penstock.storage.stores import store_kind

_FEW_ROWS = 32
_CLOSING_SECONDS = 2.0
# One process holds the file, so that its threads can take turns to write; else they would collide.
_turns: dict[str, threading.RLock] = {}
INSERTED = "penstock_inserted"
_ATTACHED = "penstock_catalog"
# DuckDB has one class for all constraints, and one for all that can happen to a transaction. Of those, a key that is
# taken, and a row or table that another transaction changed.
_COLLISIONS = (
    (duckdb.ConstraintException, re.compile(r"duplicate key", re.IGNORECASE)),
    (duckdb.TransactionException, re.compile(r"duplicate key|conflict", re.IGNORECASE)),
)


class DuckdbDatabase(Database):
    """A DuckDB file as the metadata database."""

    engine = "duckdb"
    product = "DuckDB"
    dialect = DUCKDB
    uses_indexes = False  # DuckDB scans faster than it keeps an index, which refuses rows that change twice at once
    errors = (duckdb.Error,)

    def __init__(self, location: Location, options: ConnectOptions) -> None:
        super().__init__(location)
        config: dict[str, Any] = dict(options.parameters)
        if not location.is_remote and not os.path.exists(location.target):
            if not options.create:
                raise AttachError(no_such_file(location))
            config.setdefault("storage_compatibility_version", "latest")
        try:
            if location.is_remote:
                self._connection = _connect_remote(location, config)
            else:
                self._connection = _connect_file(location.target, options.read_only, config)
        except duckdb.IOException as error:
            raise AttachError(_cannot_open(location, location.without_token(str(error)))) from None
        except duckdb.Error as error:
            if _is_held_here(error):
                raise AttachError(_held_here(location)) from None
            raise AttachError(f"{location} cannot be opened by DuckDB: {location.without_token(str(error))}") from None
        self._file = None if location.is_remote else shared_file(location)
        self._execute("SET TimeZone = 'UTC'", ())
        if options.schema:
            self._use(options.schema, options.create)

    def _use(self, schema: str, create: bool) -> None:
        try:
            known = "SELECT 1 FROM duckdb_schemas() WHERE database_name = current_database() AND schema_name = ?"
            if create and not self._query(known, [schema]):
                self._execute(f"CREATE SCHEMA IF NOT EXISTS {self.identifier(schema)}", ())
                self._made_schema = schema
            within = f"{_ATTACHED}." if self.location.is_remote else ""
            self._execute(f"USE {within}{self.identifier(schema)}", ())
        except duckdb.Error:
            self._connection.close()
            raise AttachError(
                f"{self.location} has no schema {schema!r}; give metadata_schema as it was created"
            ) from None

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Errors of httpfs show the whole address."""
        with super()._explained():
            try:
                yield
            except duckdb.Error as error:
                shown = self.location.without_token(str(error))
                if shown == str(error):
                    raise
                raise type(error)(shown) from None

    def _fetched(self, sql: str, parameters: Sequence[Any]) -> list[Row]:
        return self._connection.execute(sql, list(parameters)).fetchall()

    def _run(self, sql: str, parameters: Sequence[Any]) -> None:
        self._connection.execute(sql, list(parameters))

    @contextmanager
    def _cursor(self, sql: str) -> Iterator[duckdb.DuckDBPyConnection]:
        yield self._connection.execute(sql)

    def _insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        into = f"INSERT INTO {table} ({', '.join(columns)})"
        if len(rows) <= _FEW_ROWS:
            row = f"({', '.join('?' * len(columns))})"
            values = [value for row in rows for value in row]
            self._connection.execute(f"{into} VALUES {', '.join([row] * len(rows))}", values)
            return
        arrays = [pa.array(values) for values in zip(*rows, strict=True)]
        self._insert_arrow(f"{into} FROM {INSERTED}", pa.table(arrays, names=[f"c{i}" for i in range(len(arrays))]))

    def insert_arrow(self, sql: str, rows: pa.Table) -> None:
        """Run an INSERT whose SELECT is from `INSERTED`, which are the rows."""
        with self._opened(), self._explained(), logged(self.location, sql):
            self._insert_arrow(sql, rows)

    def _insert_arrow(self, sql: str, rows: pa.Table) -> None:
        self._connection.register(INSERTED, rows)
        try:
            self._connection.execute(sql)
        finally:
            self._connection.unregister(INSERTED)

    def complete_file(self) -> None:
        # What is committed may be in a log beside the file. To close the file brings it there as well, but if that
        # fails, on a full disk say, nobody hears of it.
        self.execute("CHECKPOINT")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._turn(), super().transaction():
            yield

    @contextmanager
    def scratch(self) -> Iterator[None]:
        with self._turn(), super().scratch():
            yield

    @contextmanager
    def _turn(self) -> Iterator[None]:
        with self._opened(), _turns.setdefault(os.path.realpath(self.location.target), threading.RLock()):
            yield

    def _is_collision(self, error: BaseException) -> bool:
        return any(isinstance(error, kind) and text.search(str(error)) for kind, text in _COLLISIONS)

    def _close(self) -> None:
        self._connection.close()

    def tables(self, prefix: str) -> set[str]:
        sql = """SELECT table_name FROM duckdb_tables()
                 WHERE database_name = current_database() AND schema_name = current_schema()
                 AND starts_with(table_name, ?)"""
        return {row[0] for row in self.query(sql, [prefix])}

    def columns(self, table: str) -> list[str]:
        sql = """SELECT column_name FROM duckdb_columns() WHERE database_name = current_database()
                 AND schema_name = current_schema() AND table_name = ? ORDER BY column_index"""
        return [name for (name,) in self.query(sql, [table])]

    def inlined(
        self, table: str, columns: Sequence[InlinedColumn], where: str, parameters: Sequence[Any], select: str
    ) -> pa.Table:
        named = "".join(f", {self.identifier(column.name)} AS c{i}" for i, column in enumerate(columns))
        rows = f"SELECT row_id{named} FROM {self.identifier(table)} WHERE {where}"
        sql = f"SELECT {select} FROM ({rows})"
        with self._opened(), self._explained(), logged(self.location, sql):
            return self._connection.execute(sql, list(parameters)).to_arrow_table()

    def inlined_text(
        self, table: str, columns: Sequence[InlinedColumn], where: str, parameters: Sequence[Any]
    ) -> list[Row]:
        raise NotImplementedError("a DuckDB catalog holds inlined values in their own types")


def _connect_file(path: str, read_only: bool, config: Mapping[str, Any]) -> duckdb.DuckDBPyConnection:
    """A connection to a file; while another thread closes it, DuckDB takes it for held, which is waited for."""
    end = time.monotonic() + _CLOSING_SECONDS
    while True:
        try:
            return duckdb.connect(path, read_only=read_only, config=dict(config))
        except duckdb.BinderException as error:
            if not _is_held_here(error) or time.monotonic() > end:
                raise
            time.sleep(0.01)


def _is_held_here(error: duckdb.Error) -> bool:
    return "unique file handle conflict" in str(error).lower()


def _connect_remote(location: Location, config: Mapping[str, Any]) -> duckdb.DuckDBPyConnection:
    """A DuckDB in memory with a file of another machine, which it reads by ranges."""
    connection = duckdb.connect(config=dict(config))
    try:
        load_httpfs(connection)
        if store_kind(location.target) == "s3":
            add_secret(connection, s3_access(location.target))
        connection.execute(f"ATTACH {text_literal(location.target)} AS {_ATTACHED} (TYPE duckdb, READ_ONLY)")
        connection.execute(f"USE {_ATTACHED}")
    except BaseException:
        connection.close()
        raise
    return connection


def _held_here(location: Location) -> str:
    return (
        f"{location} is held by another DuckDB of this process, which attached the file; DETACH it there, or use a "
        "SQLite or PostgreSQL catalog"
    )


def _cannot_open(location: Location, reason: str) -> str:
    if "lock" in reason.lower():
        return (
            f"{location} is held by another process (a DuckDB file has one writer, or only readers, at a time); "
            "close it there, or attach with read_only=True on both sides, or use a SQLite or PostgreSQL catalog"
        )
    if location.is_remote and "database does not exist" in reason:  # it was there a moment ago
        return (
            f"{location} is refused to DuckDB, and not to Python: the server's certificate may be none that DuckDB "
            f"trusts, or the server answers no HEAD ({reason.splitlines()[0]}); copy the file to this machine"
        )
    return f"{location} is not a DuckLake: DuckDB cannot open the file ({reason.splitlines()[0]})"
