"""A MySQL or MariaDB database as the metadata database."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, ClassVar

from penstock.catalog.databases.base import ConnectOptions, Database, InlinedColumn, Row, percent_style
from penstock.catalog.dialects import MYSQL
from penstock.catalog.location import Location, redact, secrets_in
from penstock.errors import AttachError, ConflictError

try:
    import pymysql
    from pymysql.constants import ER
except ImportError as error:  # pragma: no cover - depends on the installation
    raise AttachError("MySQL catalogs need the PyMySQL package; pip install 'penstock[mysql]'") from error

# The spellings that DuckDB's mysql extension takes, and PyMySQL's word for each.
_KEYWORDS = {
    "host": "host",
    "user": "user",
    "password": "password",
    "passwd": "password",
    "pw": "password",
    "db": "database",
    "database": "database",
    "port": "port",
    "socket": "unix_socket",
    "unix_socket": "unix_socket",
}
# Strict, so that a text too long for its column is an error and not cut.
_SQL_MODE = "STRICT_ALL_TABLES,ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT"


_LOCK = "concat('penstock:', md5(database()))"
_LOCK_SECONDS = 600
# A key that is taken, a row that changed meanwhile, a lock that was not had in time, a deadlock.
_COLLISIONS = (ER.DUP_ENTRY, ER.CHECKREAD, ER.LOCK_WAIT_TIMEOUT, ER.LOCK_DEADLOCK)


class MysqlDatabase(Database):
    engine = "mysql"
    dialect = MYSQL
    column_types: ClassVar = {"varchar": "TEXT", "timestamptz": "DATETIME", "uuid": "TEXT"}
    transactional_ddl = fractional_seconds = False
    _snapshot_sql = _scratch_sql = "START TRANSACTION WITH CONSISTENT SNAPSHOT"
    _commit_sql = "START TRANSACTION"
    errors = (pymysql.MySQLError,)

    def __init__(self, location: Location, options: ConnectOptions) -> None:
        super().__init__(location)
        keywords = _connection_keywords(location, options.parameters)
        try:
            self._connection = pymysql.connect(**keywords, charset="utf8mb4", autocommit=True, connect_timeout=10)
        except pymysql.MySQLError as error:
            raise AttachError(_refused(location, options, str(error))) from None
        self._query(f"SET SESSION sql_mode = '{_SQL_MODE}', time_zone = '+00:00'", ())
        self._query("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", ())
        if options.schema:
            self._use(options.schema, options.create)
        if options.read_only:
            self._query("SET SESSION TRANSACTION READ ONLY", ())

    def _use(self, schema: str, create: bool) -> None:
        """What others call a schema is a database here."""
        known = "SELECT 1 FROM information_schema.schemata WHERE schema_name = ?"
        try:
            if create and not self._query(known, [schema]):
                self._query(f"CREATE SCHEMA IF NOT EXISTS {self.identifier(schema)}", ())
            self._query(f"USE {self.identifier(schema)}", ())
        except pymysql.MySQLError as error:
            self._connection.close()
            raise AttachError(f"{self.location} cannot use the schema {schema!r}: {error}") from None

    def _query(self, sql: str, parameters: Sequence[Any]) -> list[Row]:
        with self._connection.cursor() as cursor:
            cursor.execute(percent_style(sql) if parameters else sql, tuple(parameters) or None)
            return list(cursor.fetchall())

    def _execute(self, sql: str, parameters: Sequence[Any]) -> None:
        self._query(sql, parameters)

    def _insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        places = ", ".join(["%s"] * len(columns))
        names = ", ".join(columns).replace("%", "%%")
        with self._connection.cursor() as cursor:
            # PyMySQL sends as many rows a statement as go into a megabyte, which every server takes.
            cursor.executemany(f"INSERT INTO {table} ({names}) VALUES ({places})", list(map(self._adapted, rows)))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self.turn():
            self._execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED", ())
            with super().transaction():
                yield

    @contextmanager
    def turn(self) -> Iterator[None]:
        """A lock of the connection's own, which it may take more than once."""
        with self._opened():
            if self._query(f"SELECT GET_LOCK({_LOCK}, {_LOCK_SECONDS})", ()) != [(1,)]:
                raise ConflictError(f"another writer has been committing to {self.location} for too long; try again")
            try:
                yield
            finally:
                with suppress(*self.errors):
                    self._query(f"SELECT RELEASE_LOCK({_LOCK})", ())

    def is_collision(self, error: BaseException) -> bool:
        return isinstance(error, pymysql.MySQLError) and bool(error.args) and error.args[0] in _COLLISIONS

    def _close(self) -> None:
        self._connection.close()

    def tables(self, prefix: str) -> set[str]:
        sql = "SELECT table_name FROM information_schema.tables WHERE table_schema = database()"
        return {name for (name,) in self.query(sql) if name.startswith(prefix)}

    def columns(self, table: str) -> list[str]:
        sql = """SELECT column_name FROM information_schema.columns
                 WHERE table_schema = database() AND table_name = ? ORDER BY ordinal_position"""
        return [name for (name,) in self.query(sql, [table])]

    def inlined_text(
        self, table: str, columns: Sequence[InlinedColumn], where: str, parameters: Sequence[Any]
    ) -> list[Row]:
        values = "".join(f", {self._value(column)}" for column in columns)
        return self.query(f"SELECT row_id{values} FROM {self.identifier(table)} WHERE {where}", parameters)

    def _value(self, column: InlinedColumn) -> str:
        name = self.identifier(column.name)
        if column.is_blob:
            return name
        if column.type != "float32":
            return f"CAST({name} AS CHAR)"
        # The text of a FLOAT has six digits, that of a DOUBLE all of them. Penstock's own tables hold text (it has
        # the collation of a column), which may be of no number.
        return f"IF(COERCIBILITY({name}) = 2, CAST({name} AS CHAR), CAST(CAST({name} AS DOUBLE) AS CHAR))"

    def time_parameter(self, value: datetime) -> datetime:
        return value.astimezone(UTC).replace(tzinfo=None)


def _connection_keywords(location: Location, parameters: Mapping[str, str]) -> dict[str, Any]:
    keywords: dict[str, Any] = {}
    try:
        pairs = [part.partition("=") for part in shlex.split(location.target)]
    except ValueError:
        pairs = [("", "", "")]
    for key, separator, value in [*pairs, *((key, "=", value) for key, value in parameters.items())]:
        name = _KEYWORDS.get(key.lower())
        if name is None or not separator:
            known = ", ".join(sorted(_KEYWORDS))
            raise AttachError(
                f"{location} is not a MySQL location: write KEY=VALUE pairs separated by spaces, with {known}"
            )
        keywords[name] = int(value) if name == "port" else value
    return keywords


def _refused(location: Location, options: ConnectOptions, reason: str) -> str:
    for secret in (*secrets_in(location.target), *options.parameters.values()):
        reason = reason.replace(secret, "***")
    return f"{location} cannot be reached: MySQL says {redact(reason)!r}; check host, port, user and database"
