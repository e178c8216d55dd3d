"""Defines what every metadata database offers to the catalog."""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, TypeVar

import duckdb
import pyarrow as pa

from penstock.ducklake.catalog.databases.open_files import OpenFile
from penstock.ducklake.catalog.databases.statement_log import logged, logged_insertion
from penstock.ducklake.catalog.dialects import Dialect
from penstock.ducklake.catalog.location import Location
from penstock.ducklake.catalog.remembered_answers import RememberedAnswers
from penstock.errors import AttachError, CatalogError
from penstock.schema.columns import Column
from penstock.storage.duckdb_files import duckdb_cursor

Row = tuple[Any, ...]
_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class ConnectOptions:
    """How to open the database, apart from where it is. With `create`, a missing file or schema is made."""

    read_only: bool = False
    schema: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict, repr=False)
    create: bool = False


@dataclass(frozen=True)
class InlinedColumn:
    """A column of an inlined data table, under the name and type of the schema version it was made for."""

    name: str
    type: str
    duckdb_type: str

    @property
    def is_blob(self) -> bool:
        """Whether the column holds bytes."""
        return self.type == "blob"

    @property
    def is_text(self) -> bool:
        """Whether the column holds text."""
        return self.type in ("varchar", "json")


class CommitInDoubtError(CatalogError):
    """Raised when the connection broke during COMMIT: only the database knows whether it happened."""


class Database(ABC):
    """One open metadata database. SQL uses `?` for parameters and bare names for DuckLake's tables.

    Spark asks for files on a thread of its own while it plans, so every call takes the lock. What the driver raises
    becomes a `CatalogError`.
    """

    engine: str
    product: str  # what people call it
    dialect: Dialect
    transactional_ddl = True
    fractional_seconds = True  # in the times of snapshots
    uses_indexes = True  # that Penstock adds to the catalog's tables
    # What the driver raises.
    errors: tuple[type[Exception], ...]
    # The types of the catalog's tables that have another name here; and of those, where others than the extension's
    # keep more of a value.
    column_types: ClassVar[Mapping[str, str]] = {}
    exact_types: ClassVar[Mapping[str, str]] = {}

    _indexes_sql = ""
    # How the transactions of `consistent`, `transaction` and `scratch` begin.
    _snapshot_sql = "BEGIN"
    _commit_sql = "BEGIN"
    _scratch_sql = "BEGIN"

    def __init__(self, location: Location) -> None:
        self.location = location
        self._lock = threading.RLock()
        self._closed = False
        self._in_transaction = False
        self._unfinished = False  # whether a transaction may be open whose end nobody has heard of
        self._made_schema: str | None = None  # by opening the database
        self._file: OpenFile | None = None  # where the database is one of this machine
        self.answers = RememberedAnswers()

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """All rows of a query."""
        with self._opened():
            return self._asked(lambda: self._query(sql, self._adapted(parameters)))

    def batches(self, sql: str, size: int) -> Iterator[list[Row]]:
        """The rows of a query, some at a time; until the last of them, nothing else may be asked."""
        with self._opened(), self._explained(), logged(self.location, sql), self._cursor(sql) as cursor:
            while rows := cursor.fetchmany(size):
                yield list(rows)

    def value(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
        """The first column of the first row, or None."""
        rows = self.query(sql, parameters)
        return rows[0][0] if rows else None

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        """Run a statement that returns no rows."""
        with self._opened(), self._explained():
            self._execute(sql, self._adapted(parameters))

    def drop_table(self, table: str) -> None:
        """Drop a table that nobody needs; an error, and soon, where somebody is still reading it."""
        self.execute(f"DROP TABLE {self.identifier(table)}")

    def create_index(self, name: str, table: str, columns: Sequence[str]) -> None:
        """Make an index on columns of a table."""
        self.execute(f"CREATE INDEX {name} ON {table} ({', '.join(map(self.identifier, columns))})")

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Insert rows in bulk; they are stored as the extension stores them.

        Values are int, float, str, bool, bytes, None or an aware datetime, uuids are str.
        """
        if rows:
            into, names = self.identifier(table), [self.identifier(name) for name in columns]
            with self._opened(), self._explained(), logged_insertion(self.location, into, names):
                self._insert(into, names, rows)

    @contextmanager
    def consistent(self) -> Iterator[None]:
        """Make all queries inside see one state of the database. Inside another transaction, that one's."""
        with self._lock:
            if self._in_transaction:
                yield
                return
            with self._transaction(self._snapshot_sql, self._let_go):
                yield

    @contextmanager
    def joining(self) -> Iterator[None]:
        """For queries that join tables with a row or more a file: none is read again for each row of another."""
        yield

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit what is done inside, all or nothing.

        One of our writers comes after the other, each seeing what the one before it did.
        """
        with self._transaction(self._commit_sql, self._commit):
            self.check_file()
            yield

    def check_file(self) -> None:
        """Raise a CatalogError where the database is a file, and another has taken its place since it was opened."""
        if self._file is not None:
            self._file.check()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Keep our other writers out, also over several transactions: needed where DDL is not transactional."""
        with self._opened():
            yield

    @contextmanager
    def scratch(self) -> Iterator[None]:
        """Like `consistent`, but what is written inside can be read inside, and is gone at the end.

        Where DDL is not transactional it would end the transaction: make temporary tables there.
        """
        with self._transaction(self._scratch_sql, self._roll_back):
            yield

    @contextmanager
    def _transaction(self, begin: str, end: Callable[[], None]) -> Iterator[None]:
        with self._opened():
            if self._in_transaction:
                raise RuntimeError("a transaction of this database is open already")
            try:
                self._unfinished = True
                self._asked(lambda: self._execute(begin, ()))
                self._in_transaction = True
                yield
                end()
                self._unfinished = False
            except BaseException:
                self._roll_back()
                raise
            finally:
                self._in_transaction = False

    def _commit(self) -> None:
        try:
            self._execute("COMMIT", ())
        except self.errors as error:
            raise (self.doubt() if self._is_broken(error) else self._failure(error)) from error

    def doubt(self) -> CommitInDoubtError:
        """The error of a commit that was broken off, and may have happened."""
        return CommitInDoubtError(
            f"the connection to {self.location} broke while a transaction was committed, so whether it was is "
            "not known; attach again and look at lake.snapshots(). The files it wrote were left in place"
        )

    def _roll_back(self) -> None:
        try:
            self._execute("ROLLBACK", ())
        except self.errors:  # a failed COMMIT, or a lost connection, has ended the transaction already
            self._abandon()
        self._unfinished = False

    def _abandon(self) -> None:  # noqa: B027 - where the driver holds the file itself, there is nothing to do
        """Let go of a connection on which a transaction may be open that cannot be ended."""

    def _let_go(self) -> None:
        """End a transaction that has read all it wanted."""
        try:
            self._execute("COMMIT", ())
        except self.errors:
            self._roll_back()

    def _asked(self, ask: Callable[[], _Answer]) -> _Answer:
        """Run what may be run twice: a query, or the beginning of a transaction."""
        with self._explained():
            return ask()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Raise what the driver raises as an error that says what to do."""
        try:
            yield
        except self.errors as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> CatalogError:
        return CatalogError(
            f"{self.location}: {self.product} refused a statement, of which nothing was done: {self._said(error)}"
        )

    def _said(self, error: Exception) -> str:
        """The driver's message in one line."""
        return " ".join(str(error).split())

    def _is_broken(self, error: Exception) -> bool:
        """Whether the connection is gone, and with it the transaction that it was in."""
        return False

    @contextmanager
    def _opened(self) -> Iterator[None]:
        with self._lock:
            if self._closed:
                raise AttachError(f"{self.location} is closed; attach it again")
            if self._unfinished and not self._in_transaction:
                self._end_unfinished()
            yield

    def _end_unfinished(self) -> None:
        """Roll back what an interrupt has left open: the next BEGIN would fail, or commit it."""
        with suppress(*self.errors):
            self._execute("ROLLBACK", ())
        self._unfinished = False

    def expect_many_rows(self) -> None:  # noqa: B027 - most databases need nothing for it
        """Make ready for a transaction whose rows do not go into memory."""

    def complete_file(self) -> None:  # noqa: B027 - most databases have committed to the file itself
        """Bring all that was committed into the database's one file, or raise an error."""

    def drop_made_schema(self) -> None:
        """Drop the schema that was made when the database was opened, if one was and it is empty."""
        if self._made_schema is None:
            return
        with self.turn():  # MySQL would drop the tables that another of us makes there
            if not self.tables(""):
                self.execute(f"DROP SCHEMA {self.identifier(self._made_schema)}")

    def close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed, self._file = True, None
                self._close()

    def _adapted(self, values: Sequence[Any]) -> Sequence[Any]:
        """Values in the form that the driver stores as the extension does."""
        return [self.time_parameter(v) if isinstance(v, datetime) and v.tzinfo else v for v in values]

    def is_collision(self, error: BaseException) -> bool:
        """Whether another writer got in the way, so that trying again may succeed."""
        cause = error.__cause__ if isinstance(error, CatalogError) else error
        return cause is not None and self._is_collision(cause)

    @abstractmethod
    def _is_collision(self, error: BaseException) -> bool: ...

    def _query(self, sql: str, parameters: Sequence[Any]) -> list[Row]:
        with logged(self.location, sql):
            return self._fetched(sql, parameters)

    def _execute(self, sql: str, parameters: Sequence[Any]) -> None:
        with logged(self.location, sql):
            self._run(sql, parameters)

    @abstractmethod
    def _fetched(self, sql: str, parameters: Sequence[Any]) -> list[Row]:
        """All rows of a query."""

    @abstractmethod
    def _run(self, sql: str, parameters: Sequence[Any]) -> None:
        """Run a statement that returns no rows."""

    @abstractmethod
    def _cursor(self, sql: str) -> AbstractContextManager[Any]:
        """A query's cursor, which fetches rows as they are asked for."""

    @abstractmethod
    def _insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Insert rows into a table whose name, and whose columns' names, are quoted."""

    @abstractmethod
    def _close(self) -> None: ...

    @abstractmethod
    def tables(self, prefix: str) -> set[str]:
        """The names of the database's tables that begin with a prefix."""

    def existing(self, names: Collection[str]) -> set[str]:
        """Those of some tables that exist, also where this user may not read them: to ask them is an error then."""
        return self.tables("ducklake_").intersection(names) if names else set()

    def indexes(self) -> set[str]:
        """The names of the indexes that the catalog's tables have."""
        return {name for (name,) in self.query(self._indexes_sql)}

    def refresh_planner(self) -> None:  # noqa: B027 - most databases plan without it
        """Tell the database's planner how many rows there are by now."""

    @property
    def can_create_tables(self) -> bool:
        """Whether this user may make tables in the database. Ask it outside of transactions."""
        return True

    @abstractmethod
    def columns(self, table: str) -> list[str]:
        """The names of a table's columns, in order."""

    @abstractmethod
    def inlined_text(
        self, table: str, columns: Sequence[InlinedColumn], where: str, parameters: Sequence[Any]
    ) -> list[Row]:
        """Rows of an inlined data table: the row id, then each column as the text (bytes for blobs) of its value."""

    def inlined(
        self, table: str, columns: Sequence[InlinedColumn], where: str, parameters: Sequence[Any], select: str
    ) -> pa.Table:
        """A DuckDB `select` list over the typed columns `c0, c1, ...` and `row_id` of an inlined data table."""
        rows = self.inlined_text(table, columns, where, parameters)
        fetched = {"row_id": pa.array([row[0] for row in rows], pa.int64())}
        for position, column in enumerate(columns):
            values = [row[position + 1] for row in rows]
            fetched[f"c{position}"] = pa.array(values, pa.binary() if column.is_blob else pa.string())
        casts = ", ".join(f"CAST(c{i} AS {column.duckdb_type}) AS c{i}" for i, column in enumerate(columns))
        with duckdb_cursor() as connection:
            connection.register("fetched", pa.table(fetched))
            typed = f"SELECT row_id, {casts or 'NULL'} FROM fetched"
            try:
                return connection.execute(f"SELECT {select} FROM ({typed})").to_arrow_table()
            except duckdb.Error as error:
                said = str(error).splitlines()[0]
                raise CatalogError(f"{self.location}: rows of {table} cannot be read: {said}") from error

    def staged_inlined(self, table_id: int) -> Sequence[tuple[tuple[Column, ...], pa.Table, pa.Int64Array]]:
        """Inlined rows that a transaction has staged: their columns, the rows as Spark shows them, the row ids."""
        return ()

    def identifier(self, name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    def time(self, value: Any) -> datetime:
        """A catalog timestamp as an aware datetime."""
        moment: datetime = datetime.fromisoformat(value) if isinstance(value, str) else value
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)

    def time_parameter(self, value: datetime) -> Any:
        """An aware datetime in the form that compares with a catalog timestamp."""
        return value


def no_such_file(location: Location) -> str:
    """The message of a missing metadata file."""
    return (
        f"no DuckLake at {location}: the file does not exist; check the path, "
        "or attach with create_if_not_exists=True and without read_only to create it"
    )


def refuse_unknown(location: Location, names: Sequence[str], known: str) -> None:
    """Refuse connection parameters that a database does not know."""
    if names:
        raise AttachError(
            f"{location} does not know the metadata_parameters {', '.join(sorted(names))}; it takes {known}"
        )


_PLACEHOLDERS = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\?|%""")


def percent_style(sql: str) -> str:
    """Write `?` parameters as `%s`, leaving literals and quoted names as they are (but for the doubling of `%`)."""

    def rewritten(match: re.Match[str]) -> str:
        return "%s" if match[0] == "?" else match[0].replace("%", "%%")

    return _PLACEHOLDERS.sub(rewritten, sql)
