"""An empty DuckDB whose tables have the names and types of a lake's, for DuckDB to bind queries to."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import duckdb

from penstock.ducklake.model.names import DEFAULT_SCHEMA
from penstock.ducklake.model.objects import Macro, MacroImplementation, MacroParameter
from penstock.errors import InvalidError, UnsupportedError
from penstock.schema.columns import Column
from penstock.schema.types import parse_type
from penstock.sql.duckdb_dialect.bound_types import Node
from penstock.sql.duckdb_dialect.syntax import (
    called_functions,
    named_tables,
    selecting,
    text_of,
    tree_of,
    with_arguments,
)
from penstock.storage.duckdb_sql import duckdb_quoted, duckdb_type, text_literal
from penstock.storage.duckdb_trees import common_tables

DIALECT = "duckdb"
_PLACEHOLDER = "{DUCKLAKE_CATALOG}"  # how the extension writes the lake's own name into views
_TAKEN = ("memory", "system", "temp")
_OWN = "penstock_lake"
_UNKNOWN = "unknown"  # the type of a parameter that is told none


@dataclass(frozen=True)
class StoredView:
    """A view of DuckDB's dialect: its text, and the names of its columns."""

    sql: str
    aliases: Sequence[str]


@dataclass(frozen=True)
class Source:
    """What Spark reads in the place of a stand-in: its text in FROM, and its columns."""

    relation: str
    columns: Sequence[Column]


class Objects(Protocol):
    """What a lake has, for the names of a query."""

    def schemas(self) -> Sequence[str]:
        """The names of the schemas."""

    def view(self, schema: str, name: str) -> StoredView | None:
        """A view of DuckDB's dialect, or None."""

    def source(self, schema: str, name: str, at: tuple[str, Any] | None) -> Source | None:
        """A table, or a view of another dialect, now or at ("VERSION", 3) or ("TIMESTAMP", "2026-01-01"); or None."""

    def temporary(self, name: str) -> Source | None:
        """A temporary view of the session, or None."""

    def macros(self) -> Sequence[Macro]:
        """The macros."""


@dataclass
class StandIns:
    """A DuckDB that is made ready for queries, one after the other."""

    connection: duckdb.DuckDBPyConnection
    objects: Objects
    catalog: str
    sources: dict[tuple[str, str], Source] = field(default_factory=dict)  # by schema and name, in lower case
    _made: set[tuple[str, str]] = field(default_factory=set)
    _macros: set[tuple[str, str]] = field(default_factory=set)

    def bound(self, sql: str, args: Mapping[str, Any] | Sequence[Any] | None = None) -> str:
        """A query's text with everything that it names made: tables, views and macros."""
        return self._prepared(with_arguments(tree_of(sql), args), DEFAULT_SCHEMA, own_names=False)

    def add(self, name: str, source: Source) -> None:
        """Make a stand-in of a name that the lake does not have."""
        self._made.add((DEFAULT_SCHEMA, name.lower()))
        self._make_table(DEFAULT_SCHEMA, name, source)

    def plan(self, sql: str) -> Node:
        """DuckDB's bound plan of a query that is ready."""
        [[text]] = self.connection.execute("SELECT json_serialize_plan(CAST($1 AS VARCHAR))", [sql]).fetchall()
        answer: Node = json.loads(text)
        if answer["error"]:
            raise InvalidError(f"DuckDB cannot bind {sql!r}: {answer['error_message']}")
        plan: Node = answer["plans"][0]
        return plan

    def columns(self, sql: str) -> list[str]:
        """The names of a query's columns."""
        return list(self.connection.sql(sql).columns)

    def calculate(self, sql: str) -> Any:
        """The one row of a query of constants; None where it fails, as it may never be asked for."""
        try:
            return self.connection.execute(sql).fetchone()
        except duckdb.Error:
            return None

    def relation(self, catalog: str, schema: str, name: str) -> str:
        """Spark's text of what a stand-in stands for."""
        return self.sources[schema.lower(), name.lower()].relation

    def _prepared(self, tree: Node, home: str, own_names: bool) -> str:
        """The text of a tree, whose bare names are looked for in a schema first.

        With `own_names`, as in a macro, whatever catalog a name begins with is the lake's.
        """
        schemas = {schema.lower() for schema in self.objects.schemas()}
        common = common_tables(tree)
        for table in named_tables(tree):
            self._table(table, schemas, home if table["table_name"].lower() not in common else "", own_names)
        for function in called_functions(tree):
            if function["schema"].lower() not in schemas:
                function["schema"] = ""
            function["catalog"] = ""
            self._macro(function["function_name"], schemas)
        return text_of(tree)

    def _table(self, node: Node, schemas: set[str], home: str, own_names: bool) -> None:
        catalog, schema, name = node["catalog_name"], node["schema_name"], node["table_name"]
        if schema and not catalog and schema.lower() not in schemas:
            catalog, schema = schema, DEFAULT_SCHEMA
        if catalog and catalog.lower() != self.catalog.lower() and not own_names:
            raise InvalidError(f"{catalog}.{schema}.{name} is not of this lake; a query of DuckDB's dialect is of one")
        if not schema and home not in ("", DEFAULT_SCHEMA) and self._has(home, name):
            schema = home
        at, unqualified = node["at_clause"], not schema
        schema = schema or DEFAULT_SCHEMA
        if not self._make(schema, name, at, node, unqualified):
            return  # a common table, or nothing: DuckDB knows
        if not unqualified or at is not None:
            node["catalog_name"] = self.catalog

    def _has(self, schema: str, name: str) -> bool:
        return self.objects.view(schema, name) is not None or self.objects.source(schema, name, None) is not None

    def _make(self, schema: str, name: str, at: Node | None, node: Node, unqualified: bool) -> bool:
        if at is not None:
            return self._make_older(schema, name, at, node)
        node["schema_name"] = node["schema_name"] if unqualified else schema
        key = schema.lower(), name.lower()
        if key in self._made:
            return True
        view = self.objects.view(schema, name)
        if view is not None:
            self._made.add(key)
            self._make_view(schema, name, view)
            return True
        source = self.objects.source(schema, name, None)
        if source is None and unqualified:
            source = self.objects.temporary(name)
        if source is None:
            return False
        self._made.add(key)
        self._make_table(schema, name, source)
        return True

    def _make_older(self, schema: str, name: str, at: Node, node: Node) -> bool:
        """A stand-in of its own for a table as it was: DuckDB's memory has no past."""
        [[value]] = self.connection.execute(text_of(selecting(at["expr"]))).fetchall()
        source = self.objects.source(schema, name, (at["unit"].upper(), value))
        if source is None:
            raise InvalidError(f"table {schema}.{name} does not exist at {at['unit'].lower()} {value}")
        stand_in = f"_penstock_older_{len(self._made)}"
        self._made.add((schema.lower(), stand_in))
        self._make_table(schema, stand_in, source)
        node.update(alias=node["alias"] or name, table_name=stand_in, schema_name=schema, at_clause=None)
        return True

    def _make_table(self, schema: str, name: str, source: Source) -> None:
        self.sources[schema.lower(), name.lower()] = source
        columns = ", ".join(f"{duckdb_quoted(column.name)} {duckdb_type(column)}" for column in source.columns)
        self._run(schema, f"CREATE TABLE {self._name(schema, name)} ({columns})")

    def _make_view(self, schema: str, name: str, view: StoredView) -> None:
        text = view.sql.replace(_PLACEHOLDER, duckdb_quoted(self.catalog))
        sql = self._prepared(tree_of(text), schema, own_names=False)
        names = f" ({', '.join(map(duckdb_quoted, view.aliases))})" if view.aliases else ""
        self._run(schema, f"CREATE VIEW {self._name(schema, name)}{names} AS {sql}")

    def _macro(self, name: str, schemas: set[str]) -> None:
        for macro in self.objects.macros():
            key = macro.schema.lower(), macro.name.lower()
            if macro.name.lower() != name.lower() or key in self._macros:
                continue
            self._macros.add(key)
            for kind in ("scalar", "table"):
                ways = [way for way in macro.implementations if way.type == kind]
                if any(way.dialect.lower() != DIALECT for way in ways):
                    raise UnsupportedError(f"macro {macro.schema}.{macro.name} is not of DuckDB's dialect")
                if ways:
                    bodies = ", ".join(self._body(way) for way in ways)
                    self._run(macro.schema, f"CREATE MACRO {self._name(macro.schema, macro.name)}{bodies}")

    def _body(self, way: MacroImplementation) -> str:
        parameters = ", ".join(map(_parameter, way.parameters))
        if way.type == "table":
            return f"({parameters}) AS TABLE {self._prepared(tree_of(way.sql), DEFAULT_SCHEMA, own_names=True)}"
        tree = tree_of(f"SELECT {way.sql}")
        sql = self._prepared(tree, DEFAULT_SCHEMA, own_names=True).removeprefix("SELECT ")
        return f"({parameters}) AS {sql}"

    def _name(self, schema: str, name: str) -> str:
        return f"{duckdb_quoted(self.catalog)}.{duckdb_quoted(schema)}.{duckdb_quoted(name)}"

    def _run(self, schema: str, statement: str) -> None:
        try:
            self.connection.execute(
                f"CREATE SCHEMA IF NOT EXISTS {duckdb_quoted(self.catalog)}.{duckdb_quoted(schema)}"
            )
            self.connection.execute(statement)
        except duckdb.Error as error:
            raise InvalidError(f"DuckDB cannot bind {statement!r}: {str(error).splitlines()[0]}") from None


def _parameter(parameter: MacroParameter) -> str:
    """A parameter as CREATE MACRO writes it, with its type and its default, where it has them."""
    parts = [duckdb_quoted(parameter.name)]
    if parameter.type != _UNKNOWN:
        parts.append(_type(parameter.type))
    if parameter.default_value not in (None, "NULL"):
        kind = parameter.default_value_type or _UNKNOWN
        value = text_literal(parameter.default_value or "")
        parts.append(f":= CAST({value} AS {'VARCHAR' if kind == _UNKNOWN else _type(kind)})")
    return " ".join(parts)


def _type(name: str) -> str:
    return duckdb_type(Column(0, "", parse_type(name), 0))


def _set_zone(connection: duckdb.DuckDBPyConnection, zone: str) -> None:
    """Compute in a zone; DuckDB has no names such as +02:00, and calls that Etc/GMT-2."""
    offset = re.fullmatch(r"(?:GMT|UTC)?([+-])(\d{1,2})(?::?00)?", zone)
    if offset is not None:
        zone = f"Etc/GMT{'-' if offset[1] == '+' else '+'}{int(offset[2])}"
    try:
        connection.execute(f"SET TimeZone = {text_literal(zone)}")
    except duckdb.Error:
        raise InvalidError(
            f"DuckDB does not know the session's time zone {zone}; set another one, such as UTC"
        ) from None


@contextmanager
def stand_ins(objects: Objects, catalog: str, zone: str) -> Iterator[StandIns]:
    """A DuckDB for one translation. It reads no files, and computes in the session's time zone."""
    own = catalog if catalog.lower() not in _TAKEN else _OWN
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute(f"ATTACH ':memory:' AS {duckdb_quoted(own)}")
        connection.execute(f"USE {duckdb_quoted(own)}")
        _set_zone(connection, zone)
        connection.execute("SET python_enable_replacements = false")
        connection.execute("SET enable_external_access = false")
        yield StandIns(connection, objects, own)
