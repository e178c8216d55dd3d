"""Finds the views that work in a lake, in an order in which each comes after those that it reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

import duckdb

from penstock.ducklake.model.objects import MacroImplementation
from penstock.ducklake.moving.duckdb_source import SourceView
from penstock.ducklake.moving.table_plans import TablePlan
from penstock.ducklake.writing.duckdb_macros import parameter_list
from penstock.storage.duckdb_sql import duckdb_quoted, duckdb_type

_WRONG = (duckdb.CatalogException, duckdb.BinderException, duckdb.ParserException)
Macros = Iterable[tuple[str, str, Sequence[MacroImplementation]]]


class ViewCheck:
    """An empty DuckDB with the tables and macros that the lake will have, in which views are tried."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self.unchecked: dict[tuple[str, str], str] = {}  # why DuckDB could not tell
        self.broken: dict[tuple[str, str], str] = {}  # why a view does not work

    def working(self, views: Sequence[SourceView]) -> Iterator[SourceView]:
        """The views that work, those that others read first. The others are `broken` then."""
        waiting = list(views)
        while waiting:
            left = [view for view in waiting if not self._works(view)]
            yield from (view for view in waiting if view not in left)
            if len(left) == len(waiting):
                return
            waiting = left

    def _works(self, view: SourceView) -> bool:
        key, name = (view.schema, view.name), _name(view.schema, view.name)
        aliases = f" ({', '.join(map(duckdb_quoted, view.aliases))})" if view.aliases else ""
        self.broken.pop(key, None)
        try:
            self._connection.execute(f"CREATE VIEW {name}{aliases} AS {view.query}")
            self._connection.execute(f"SELECT * FROM {name} LIMIT 0")
        except duckdb.Error as error:
            reason = str(error).splitlines()[0]
            if isinstance(error, _WRONG) and "extension" not in reason:
                self.broken[key] = reason
                return False
            self.unchecked[key] = reason
        return True


@contextmanager
def view_check(schemas: Iterable[str], tables: Iterable[TablePlan], macros: Macros) -> Iterator[ViewCheck]:
    """Make ready to try views. What they would read outside of the lake is left alone."""
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SET enable_external_access = false")
        for schema in schemas:
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {duckdb_quoted(schema)}")
        for table in tables:
            columns = (f"{duckdb_quoted(item.name)} {duckdb_type(item)}" for item in table.definition.columns)
            name = _name(table.source.schema, table.source.name)
            connection.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
        for schema, name, implementations in macros:
            kind = " TABLE" if implementations[0].type == "table" else ""
            ways = ", ".join(f"({parameter_list(way)}) AS{kind} {way.sql}" for way in implementations)
            with suppress(duckdb.Error):  # one that needs what is not there: views that call it tell
                connection.execute(f"CREATE MACRO {_name(schema, name)}{ways}")
        yield ViewCheck(connection)


def changed_names(tables: Mapping[str, Sequence[str]], texts: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The columns of another type that tables, views and macros read, by their names in lower case.

    `tables` have the columns that changed, `texts` the names and texts of views and macros. A text reads what it
    names: in doubt it is told once too often.
    """
    touched = {name.lower(): f"{', '.join(columns)} of {name}" for name, columns in tables.items()}
    lowered, found = [(name, text.lower()) for name, text in texts], True
    while found:
        found = False
        for name, text in lowered:
            reads = next((columns for other, columns in touched.items() if _names(text, other)), None)
            if reads is not None and name.lower() not in touched:
                touched[name.lower()], found = reads, True
    return touched


def _names(text: str, name: str) -> bool:
    written = name.replace('"', '""')
    return written in text and re.search(rf"(?<!\w){re.escape(written)}(?!\w)", text) is not None


def _name(schema: str, name: str) -> str:
    return f"{duckdb_quoted(schema)}.{duckdb_quoted(name)}"
