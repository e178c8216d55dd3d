"""What every metadata database offers to the catalog."""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import duckdb
import pyarrow as pa

from penstock.catalog.dialects import Dialect
from penstock.catalog.location import Location
from penstock.errors import AttachError

Row = tuple[Any, ...]


@dataclass(frozen=True)
class ConnectOptions:
    """How to open the database, apart from where it is."""

    read_only: bool = False
    schema: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class InlinedColumn:
    """A column of an inlined data table, under the name and type of the schema version it was made for."""

    name: str
    type: str
    duckdb_type: str

    @property
    def is_blob(self) -> bool:
        return self.type == "blob"

    @property
    def is_text(self) -> bool:
        return self.type in ("varchar", "json")


class Database(ABC):
    """One open metadata database. SQL uses `?` for parameters and bare names for DuckLake's tables.

    Spark asks for files on a thread of its own while it plans, so every call takes the lock.
    """

    engine: str
    dialect: Dialect
    begin_sql = "BEGIN"

    def __init__(self, location: Location) -> None:
        self.location = location
        self._lock = threading.RLock()
        self._closed = False

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """All rows of a query."""
        with self._lock:
            if self._closed:
                raise AttachError(f"{self.location} is closed; attach it again")
            return self._query(sql, parameters)

    def value(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
        """The first column of the first row, or None."""
        rows = self.query(sql, parameters)
        return rows[0][0] if rows else None

    @contextmanager
    def consistent(self) -> Iterator[None]:
        """All queries inside see one state of the database."""
        with self._lock:
            self.run(self.begin_sql)
            try:
                yield
            finally:
                self.run("COMMIT")

    def run(self, sql: str) -> None:
        """Run a statement that returns no rows."""
        with self._lock:
            self._run(sql)

    def close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                self._close()

    @abstractmethod
    def _query(self, sql: str, parameters: Sequence[Any]) -> list[Row]: ...

    @abstractmethod
    def _run(self, sql: str) -> None: ...

    @abstractmethod
    def _close(self) -> None: ...

    @abstractmethod
    def tables(self, prefix: str) -> set[str]:
        """The names of the database's tables that begin with a prefix."""

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
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.register("fetched", pa.table(fetched))
            typed = f"SELECT row_id, {casts or 'NULL'} FROM fetched"
            return connection.execute(f"SELECT {select} FROM ({typed})").to_arrow_table()

    def identifier(self, name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    def time(self, value: Any) -> datetime:
        """A catalog timestamp as an aware datetime."""
        moment: datetime = datetime.fromisoformat(value) if isinstance(value, str) else value
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)

    def time_parameter(self, value: datetime) -> Any:
        """An aware datetime in the form that compares with a catalog timestamp."""
        return value


_PLACEHOLDERS = re.compile(r"'(?:[^']|'')*'|\?|%")


def percent_style(sql: str) -> str:
    """`?` parameters written as `%s`, leaving the text of literals as it is (but for the doubling of `%`)."""

    def rewritten(match: re.Match[str]) -> str:
        return "%s" if match[0] == "?" else match[0].replace("%", "%%")

    return _PLACEHOLDERS.sub(rewritten, sql)
