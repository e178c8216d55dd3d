"""Opens a DuckDB database to read it, and tells what is in it."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import duckdb
from duckdb.sqltypes import DuckDBPyType

from penstock.ducklake.model.names import DEFAULT_SCHEMA
from penstock.ducklake.moving.query_names import SourceNames
from penstock.errors import CatalogError, InvalidError, NotFoundError, PenstockError, UnsupportedError
from penstock.storage.duckdb_files import connect_duckdb
from penstock.storage.duckdb_sql import duckdb_quoted, text_literal

SOURCE = "penstock_source"  # what the database is called while it is read
_NAME = r'(?:"(?:[^"]|"")*"|\w+)'
_VIEW = re.compile(
    rf"CREATE VIEW {_NAME}(?:\.{_NAME})*(?: \((?P<aliases>{_NAME}(?:, {_NAME})*)\))? AS (?P<query>.*);", re.DOTALL
)
_ALIAS = re.compile(_NAME)
_BLOCK_BYTES = 256 * 1024
_COMPUTED = re.compile(r"generated column", re.IGNORECASE)


@dataclass(frozen=True)
class SourceColumn:
    """A column of a table of DuckDB's."""

    name: str
    kind: DuckDBPyType
    default: str | None  # SQL; of a generated column what it is computed by
    generated: bool
    nulls_allowed: bool
    comment: str | None


@dataclass(frozen=True)
class SourceTable:
    """A table of DuckDB's."""

    schema: str
    name: str
    columns: tuple[SourceColumn, ...]
    comment: str | None

    @property
    def relation(self) -> str:
        """The table in SQL."""
        return f"{SOURCE}.{duckdb_quoted(self.schema)}.{duckdb_quoted(self.name)}"


@dataclass(frozen=True)
class SourceView:
    """A view of DuckDB's: its query, and other names for the columns of that."""

    schema: str
    name: str
    query: str
    aliases: tuple[str, ...]
    comment: str | None
    has_column_comments: bool


@dataclass(frozen=True)
class Leftover:
    """Something that a lake does not have."""

    schema: str
    name: str
    kind: str
    reason: str


@dataclass(frozen=True)
class DuckDBSource:
    """A DuckDB database that is open to be read: nobody can write to it meanwhile."""

    connection: duckdb.DuckDBPyConnection
    path: str

    def names(self) -> SourceNames:
        """The names that the texts of views and macros may use."""
        schemas = {DEFAULT_SCHEMA, *map(str.lower, self.schemas())}
        tables = self.listed("lower(table_name)", "duckdb_tables") + self.listed("lower(view_name)", "duckdb_views")
        columns = self.listed("lower(column_name)", "duckdb_columns")
        macros = self.listed("lower(schema_name), lower(function_name)", "duckdb_functions")
        return SourceNames(
            _own_name(self.path).lower(), schemas, {name for (name,) in tables}, {name for (name,) in columns},
            {(schema, name) for own, name in macros for schema in (own, "")},
        )  # fmt: skip

    def schemas(self) -> list[str]:
        """The names of the schemas, but for `main`, which every database has."""
        return [name for (name,) in self.listed("schema_name", "duckdb_schemas")]

    def tables(self) -> list[SourceTable]:
        """The tables with their columns."""
        described = "schema_name, table_name, column_name, column_default, is_nullable, comment"
        facts = {tuple(row[:3]): row[3:] for row in self.listed(described, "duckdb_columns")}
        found = []
        for schema, name, comment in self.listed("schema_name, table_name, comment", "duckdb_tables"):
            table = SourceTable(schema, name, (), comment)
            shown = self.connection.sql(f"SELECT * FROM {table.relation} LIMIT 0")
            columns = []
            for column, kind in zip(shown.columns, shown.types, strict=True):
                default, is_nullable, remark = facts[schema, name, column]
                generated = default is not None and self._is_generated(table, column)
                columns.append(SourceColumn(column, kind, default, generated, bool(is_nullable), remark))
            found.append(SourceTable(schema, name, tuple(columns), comment))
        return found

    def views(self) -> list[SourceView]:
        """The views."""
        found = []
        remarked = set(self.listed("schema_name, table_name", "duckdb_columns", "comment IS NOT NULL"))
        for schema, name, sql, comment in self.listed("schema_name, view_name, sql, comment", "duckdb_views"):
            match = _VIEW.fullmatch(sql.strip())
            if match is None:
                raise InvalidError(f"Penstock cannot read the text of view {schema}.{name}: {sql}")
            aliases = tuple(_unquoted(alias) for alias in _ALIAS.findall(match["aliases"] or ""))
            found.append(SourceView(schema, name, match["query"], aliases, comment, (schema, name) in remarked))
        return found

    def leftovers(self) -> Iterator[Leftover]:
        """What no lake has: indexes, sequences, types of the user's, and all constraints but NOT NULL."""
        others = "constraint_type <> 'NOT NULL'"
        for schema, table, text in self.listed(
            "schema_name, table_name, constraint_text", "duckdb_constraints", others
        ):
            yield Leftover(schema, table, "constraint", f"{text}: DuckLake enforces NOT NULL alone")
        for schema, name, sql in self.listed("schema_name, index_name, sql", "duckdb_indexes", "true"):
            yield Leftover(schema, name, "index", f"{sql} DuckLake has no indexes; sort or partition the table instead")
        for schema, name in self.listed("schema_name, sequence_name", "duckdb_sequences", "true"):
            yield Leftover(schema, name, "sequence", "DuckLake has no sequences")
        for schema, name, kind in self.listed("schema_name, type_name, logical_type", "duckdb_types"):
            yield Leftover(schema, name, "type", f"DuckLake has no types of users' own; columns of it are {kind}")

    def is_lake(self) -> bool:
        """Whether the database is the catalog of a lake."""
        return bool(self.listed("1", "duckdb_tables", "table_name = 'ducklake_metadata'"))

    def row_count(self, table: SourceTable) -> int:
        """How many rows a table has."""
        return int(self._value(f"SELECT count(*) FROM {table.relation}"))

    def last_row(self, table: SourceTable) -> int | None:
        """The greatest number of a row, from 0; None where the rows cannot be told apart by their numbers."""
        if any(column.name.lower() == "rowid" for column in table.columns):
            return None
        found = self._value(f"SELECT max(rowid) FROM {table.relation}")
        return -1 if found is None else int(found)

    def size(self, table: SourceTable) -> int:
        """How many bytes a table takes in the database, about; 0 where DuckDB does not tell."""
        name = text_literal(table.relation)
        blocks = f"SELECT count(DISTINCT block_id) FROM pragma_storage_info({name}) WHERE block_id >= 0"
        with suppress(duckdb.CatalogException):  # it does not find names with quotes in them
            return int(self._value(blocks)) * _BLOCK_BYTES
        return 0

    def holds(self, table: SourceTable, condition: str) -> bool:
        """Whether a condition is true for all rows."""
        try:
            return self._value(f"SELECT bool_and({condition}) FROM {table.relation}") is not False
        except duckdb.Error:  # such as for a key of a map that would be NULL
            return False

    def listed(self, columns: str, function: str, condition: str = "NOT internal") -> list[tuple[Any, ...]]:
        """The entries of this database in one of DuckDB's lists of what there is."""
        own = f"database_name = {text_literal(SOURCE)}"
        return self.connection.execute(f"SELECT {columns} FROM {function}() WHERE {own} AND {condition}").fetchall()

    def _value(self, sql: str) -> Any:
        [[value]] = self.connection.execute(sql).fetchall()
        return value

    def _is_generated(self, table: SourceTable, column: str) -> bool:
        """Whether a column is computed: DuckDB lists what by as if it were a default, and takes no value for it."""
        try:
            self.connection.execute(f"EXPLAIN INSERT INTO {table.relation} ({duckdb_quoted(column)}) SELECT NULL")
        except duckdb.Error as error:
            return bool(_COMPUTED.search(str(error)))
        return False


def open_source(path: str) -> duckdb.DuckDBPyConnection:
    """A connection to a DuckDB database, which reads it under the name `SOURCE`."""
    connection = connect_duckdb()
    try:
        connection.execute(f"ATTACH {text_literal(path)} AS {SOURCE} (READ_ONLY)")
    except duckdb.Error as error:
        connection.close()
        raise _explained(path, str(error).splitlines()[0]) from None
    return connection


@contextmanager
def duckdb_source(path: str) -> Iterator[DuckDBSource]:
    """Keep a DuckDB database open."""
    with open_source(path) as connection:
        source = DuckDBSource(connection, path)
        try:
            yield source
        except duckdb.Error as error:
            raise CatalogError(f"{path} cannot be read: {str(error).splitlines()[0]}") from error


def _explained(path: str, reason: str) -> PenstockError:
    said = reason.lower()
    if "does not exist" in said:
        return NotFoundError(f"there is no DuckDB database {path}")
    if "encrypted" in said:
        return UnsupportedError(
            f"{path} is encrypted, and tasks are handed no keys of databases; make a plain copy of it first: in"
            " DuckDB, ATTACH it with its ENCRYPTION_KEY, ATTACH a new file, and COPY FROM DATABASE the one TO the other"
        )
    if "lock" in said or "already attached" in said or "unique file handle" in said:
        return InvalidError(
            f"{path} is open to be written: close the connections to it, in this program too, and try again ({reason})"
        )
    return InvalidError(f"{path} cannot be opened as a DuckDB database: {reason}")


def _own_name(path: str) -> str:
    """What DuckDB calls a database where nobody says otherwise, by the name of its file."""
    with tempfile.TemporaryDirectory(prefix="penstock-") as directory:
        connection = duckdb.connect(Path(directory) / PurePath(path).name)
        [[name]] = connection.execute("SELECT current_database()").fetchall()
        connection.close()
    return str(name)


def _unquoted(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name
