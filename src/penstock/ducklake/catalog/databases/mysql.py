"""Keeps the metadata in a MySQL or MariaDB database."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, ClassVar

from penstock.ducklake.catalog.databases.base import InlinedColumn, Row, percent_style, refuse_unknown
from penstock.ducklake.catalog.databases.server import ServerDatabase
from penstock.ducklake.catalog.dialects import MYSQL
from penstock.ducklake.catalog.location import Location
from penstock.errors import AttachError, CatalogError, ConflictError

try:
    import pymysql
    from pymysql.constants import CR, ER
    from pymysql.cursors import SSCursor
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
# MariaDB compares each row with each where no index tells which belong together, unless it may hash them, here 64 MB of
# them at a time. MySQL hashes of its own accord, and takes this for a comment.
_HASH_JOINS = "/*M!, join_cache_level = 4, join_buffer_size = 67108864, join_buffer_space_limit = 268435456 */"


_LOCK = "concat('penstock:', md5(database()))"
_LOCK_SECONDS = 600
_TABLE_SECONDS = 120  # to wait for others who use a table that is altered; the server's own limit is a day, or a year
_INDEX_SECONDS = 10
# A key that is taken, a row that changed meanwhile, a lock that was not had in time, a deadlock.
_COLLISIONS = (ER.DUP_ENTRY, ER.CHECKREAD, ER.LOCK_WAIT_TIMEOUT, ER.LOCK_DEADLOCK)
_DENIED = (ER.TABLEACCESS_DENIED_ERROR, ER.DBACCESS_DENIED_ERROR, ER.COLUMNACCESS_DENIED_ERROR)
_KILLED, _IDLE_TOO_LONG = 1927, 4031  # of MariaDB and of MySQL, which the driver has no names for
_BROKEN = (CR.CR_SERVER_GONE_ERROR, CR.CR_SERVER_LOST, ER.SERVER_SHUTDOWN, _KILLED, _IDLE_TOO_LONG)


class MysqlDatabase(ServerDatabase):
    """A MySQL or MariaDB database as the metadata database."""

    engine = "mysql"
    product = "MySQL"
    dialect = MYSQL
    column_types: ClassVar = {"varchar": "TEXT", "timestamptz": "DATETIME", "uuid": "TEXT"}
    exact_types: ClassVar = {"timestamptz": "DATETIME(6)"}
    transactional_ddl = fractional_seconds = False
    _snapshot_sql = _scratch_sql = "START TRANSACTION WITH CONSISTENT SNAPSHOT"
    _commit_sql = "START TRANSACTION"
    _indexes_sql = "SELECT DISTINCT index_name FROM information_schema.statistics WHERE table_schema = database()"
    errors = (pymysql.MySQLError,)

    def _connect(self, *, create: bool) -> None:
        keywords = _connection_keywords(self.location, self.options.parameters)
        if "database" not in keywords and not self.options.schema:
            raise AttachError(f"{self.location} names no database; write db=NAME, there or in metadata_parameters")
        self._name = self.options.schema or keywords["database"]
        try:
            self._connection = pymysql.connect(**keywords, charset="utf8mb4", autocommit=True, connect_timeout=10)
            self._query(
                f"SET SESSION sql_mode = '{_SQL_MODE}', time_zone = '+00:00', {_lock_wait(None)} {_HASH_JOINS}", ()
            )
            self._query("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", ())
            if self.options.schema:
                self._use(self.options.schema, create)
            if self.options.read_only:
                self._query("SET SESSION TRANSACTION READ ONLY", ())
        except pymysql.MySQLError as error:
            raise self._unreachable(error) from None

    def _set_lock_wait(self, seconds: int | None) -> None:
        self._query(f"SET SESSION {_lock_wait(seconds)}", ())

    def create_index(self, name: str, table: str, columns: Sequence[str]) -> None:
        # It waits for every open transaction that has read the table, and meanwhile all new readers wait for it.
        with self._hurried(_INDEX_SECONDS):
            super().create_index(name, table, columns)

    def _use(self, schema: str, create: bool) -> None:
        """What others call a schema is a database here."""
        known = "SELECT 1 FROM information_schema.schemata WHERE schema_name = ?"
        try:
            if create and not self._query(known, [schema]):
                self._query(f"CREATE SCHEMA IF NOT EXISTS {self.identifier(schema)}", ())
                self._made_schema = schema
            self._query(f"USE {self.identifier(schema)}", ())
        except pymysql.MySQLError as error:
            self._connection.close()
            raise AttachError(f"{self.location} cannot use the schema {schema!r}: {error}") from None

    def _fetched(self, sql: str, parameters: Sequence[Any]) -> list[Row]:
        with self._answered(), self._connection.cursor() as cursor:
            cursor.execute(percent_style(sql) if parameters else sql, tuple(parameters) or None)
            return list(cursor.fetchall())

    @contextmanager
    def _cursor(self, sql: str) -> Iterator[SSCursor]:
        with self._answered(), self._connection.cursor(SSCursor) as cursor:
            cursor.execute(sql)
            yield cursor

    @contextmanager
    def _answered(self) -> Iterator[None]:
        """An interrupt between a question and its answer would leave the answer to the next question."""
        try:
            yield
        except BaseException as error:
            if not isinstance(error, Exception):
                self._abandon()
            raise

    def _run(self, sql: str, parameters: Sequence[Any]) -> None:
        self._fetched(sql, parameters)

    def _insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        places = ", ".join(["%s"] * len(columns))
        names = ", ".join(columns).replace("%", "%%")
        with self._answered(), self._connection.cursor() as cursor:
            # PyMySQL sends as many rows a statement as go into a megabyte, which every server takes.
            cursor.executemany(f"INSERT INTO {table} ({names}) VALUES ({places})", list(map(self._adapted, rows)))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self.turn():
            self.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            with super().transaction():
                yield

    @contextmanager
    def turn(self) -> Iterator[None]:
        """A lock of the connection's own, which it may take more than once."""
        with self._opened():
            try:
                if self.query(f"SELECT GET_LOCK({_LOCK}, {_LOCK_SECONDS})") != [(1,)]:
                    raise ConflictError(
                        f"another writer has been committing to {self.location} for too long; try again"
                    )
                with self._locked():
                    yield
            finally:
                with suppress(*self.errors):
                    self._query(f"SELECT RELEASE_LOCK({_LOCK})", ())

    def _is_collision(self, error: BaseException) -> bool:
        return _number(error) in _COLLISIONS

    def _is_broken(self, error: Exception) -> bool:
        return not self._connection.open or _number(error) in _BROKEN

    def _said(self, error: Exception) -> str:
        return super()._said(type(error)(*error.args[1:]) if _number(error) is not None else error)

    def _may_create(self) -> bool:
        try:
            # There it is already: nothing happens, but for the look at the user's rights, roles and all.
            self.execute("CREATE TABLE IF NOT EXISTS ducklake_metadata (penstock INT)")
        except CatalogError as error:
            if _number(error.__cause__) in _DENIED:
                return False
            raise
        return True

    def _is_denied(self, error: Exception) -> bool:
        return _number(error) in _DENIED

    def _needed_right(self, error: Exception) -> str:
        user, table = re.search(r"'[^']*'@'[^']*'", str(error)), re.search(r"ducklake_\w+", str(error))
        who, database = user[0] if user else "this user", self.identifier(self._name).replace('"', "`")
        if "INDEX command denied" in str(error):
            return f"{who} may not make indexes; GRANT INDEX ON {database}.* TO {who}"
        rights = self._rights if self.options.read_only else f"{self._rights}, CREATE"
        return (
            f"{who} has not every right on {table[0] if table else 'the database'}; GRANT {rights} ON {database}.* "
            f"TO {who}: tables are made as they are needed, so rights on single ones do not suffice"
        )

    def _close(self) -> None:
        if self._connection.open:
            self._connection.close()

    def tables(self, prefix: str) -> set[str]:
        sql = "SELECT table_name FROM information_schema.tables WHERE table_schema = database()"
        return {name for (name,) in self.query(sql) if name.startswith(prefix)}

    def existing(self, names: Collection[str]) -> set[str]:
        seen = self.tables("ducklake_").intersection(names) if names else set()
        return seen | {name for name in names if name not in seen and self._is_hidden(name)}

    def _is_hidden(self, table: str) -> bool:
        """Whether a table exists that is in no list: the lists leave out what a user has no right on.

        Asked for a table that is not there, MySQL denies the right as well if the user has it on single tables only.
        """
        try:
            self.query(f"SELECT 1 FROM {self.identifier(table)} LIMIT 0")
        except CatalogError as error:
            cause = error.__cause__
            if _number(cause) == ER.NO_SUCH_TABLE:
                return False
            if _number(cause) in _DENIED:
                raise CatalogError(f"{error}; so whether {table} exists, and what it holds, is not known") from cause
            raise
        return True

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


def _lock_wait(seconds: int | None) -> str:
    wait = f"LEAST(@@GLOBAL.lock_wait_timeout, {_TABLE_SECONDS})" if seconds is None else seconds
    return f"lock_wait_timeout = {wait}"


def _number(error: BaseException | None) -> int | None:
    """The number of MySQL's error."""
    return error.args[0] if isinstance(error, pymysql.MySQLError) and error.args else None


def _connection_keywords(location: Location, parameters: Mapping[str, str]) -> dict[str, Any]:
    known = ", ".join(sorted(_KEYWORDS))
    try:
        pairs = [part.partition("=") for part in shlex.split(location.target)]
    except ValueError:
        pairs = [("", "", "")]
    if any(key.lower() not in _KEYWORDS or not separator for key, separator, _ in pairs):
        raise AttachError(
            f"{location} is not a MySQL location: write KEY=VALUE pairs separated by spaces, with {known}"
        )
    refuse_unknown(location, [name for name in parameters if name not in _KEYWORDS], known)
    given = {key.lower(): value for key, _, value in pairs} | dict(parameters)
    keywords: dict[str, Any] = {_KEYWORDS[key]: value for key, value in given.items()}
    if "port" in keywords:
        if not keywords["port"].isdigit():
            raise AttachError(f"{location} cannot be reached at port {keywords['port']!r}; it is a number")
        keywords["port"] = int(keywords["port"])
    return keywords
