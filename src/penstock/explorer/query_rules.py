"""What a query may say: one SELECT over the lake's own tables and views, and functions that only compute.

DuckDB itself is locked as well (`query_worker.py`). But some of DuckLake's functions change a lake from inside a
SELECT, and some tables of DuckDB's show how a database is reached. So a query is parsed by DuckDB, and every table and
function in it must be one that is known to be harmless, also inside of the lake's views and macros.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import duckdb

from penstock.ducklake.catalog import objects
from penstock.ducklake.transaction import Shown
from penstock.errors import InvalidError
from penstock.storage.duckdb_files import duckdb_cursor
from penstock.storage.duckdb_trees import common_tables, nodes

ALIAS = "lake"  # what queries call the lake
_MAIN = "main"
_PLACEHOLDER = "{DUCKLAKE_CATALOG}"  # how the extension writes the lake's own name into views
Node = dict[str, Any]
# Functions that stand for tables: those that read neither files nor other databases, and change nothing. Not those
# that take the name of a table as a text, as `histogram` does: it may be that of a view of DuckDB's own.
_TABLE_FUNCTIONS = frozenset((
    "range", "generate_series", "unnest", "repeat", "repeat_row", "json_each", "json_tree",
    "test_all_types", "ducklake_snapshots", "ducklake_current_snapshot", "ducklake_table_info",
    "ducklake_table_changes", "ducklake_table_insertions", "ducklake_table_deletions",
    "snapshots", "current_snapshot", "table_info", "table_changes", "table_insertions", "table_deletions",
))  # fmt: skip
# Functions of values that are about something else than values.
_OTHER_FUNCTIONS = frozenset((
    "getenv", "current_setting", "getvariable", "which_secret", "parse_duckdb_log_message", "json_serialize_plan",
    "pg_sleep",
))  # fmt: skip
# Those that DuckDB takes for doing more than computing, and that do no more.
_VOLATILE_FUNCTIONS = frozenset(("random", "uuid", "uuidv4", "uuidv7", "gen_random_uuid", "error"))
_READABLE_SCHEMAS = ("information_schema",)
_PLAIN_NAME = re.compile(r"[\w $-]+")  # no file's, which has a point or a slash
# Functions of these names are what they are, and never a lake's macros.
_OF_EXTENSIONS = ("ducklake_", "postgres_", "pg_", "mysql_", "sqlite_")


@dataclass(frozen=True)
class LakeNames:
    """What queries over a lake may name, in lower case: tables, and views and macros with what they are made of."""

    schemas: frozenset[str]
    tables: frozenset[tuple[str, str]]
    views: Mapping[tuple[str, str], str] = field(default_factory=dict)
    macros: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, shown: Shown) -> LakeNames:
        """The names that a snapshot shows."""
        given = (shown.database, shown.at, shown.data_path)
        macros: dict[str, tuple[str, ...]] = {}
        for macro in objects.macros(*given):
            made = tuple(one.sql if one.type == "table" else f"SELECT {one.sql}" for one in macro.implementations)
            macros[macro.name.lower()] = (*macros.get(macro.name.lower(), ()), *made)
        return cls(
            frozenset(schema.name.lower() for schema in objects.schemas(*given)),
            frozenset((table.schema.name.lower(), table.name.lower()) for table in objects.tables(*given)),
            {
                (view.schema.lower(), view.name.lower()): view.sql.replace(_PLACEHOLDER, ALIAS)
                for view in objects.views(*given)
            },
            macros,
        )


def checked_query(sql: str, names: LakeNames) -> str:
    """A query as it can stand in brackets; an InvalidError where it may not be run."""
    _check_statement(sql)
    _Checker(names).check(sql)
    return _without_semicolon(sql)


def _check_statement(sql: str) -> None:
    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise InvalidError(f"DuckDB does not understand this: {error}") from None
    if len(statements) != 1:
        raise InvalidError(f"write one query, not {len(statements)}" if statements else "write a query")
    if statements[0].type != duckdb.StatementType.SELECT:
        raise InvalidError(f"only a SELECT can be run here, and this is a statement of type {statements[0].type.name}")


def _without_semicolon(sql: str) -> str:
    encoded = sql.encode()
    tokens = [(start, kind) for start, kind in duckdb.tokenize(sql) if kind != duckdb.token_type.comment]
    while tokens and encoded[tokens[-1][0] :].lstrip().startswith(b";"):
        encoded = encoded[: tokens.pop()[0]]
    return encoded.decode()


class _Checker:
    """Checks a query and what it is made of, each view and macro once."""

    def __init__(self, names: LakeNames) -> None:
        self._names = names
        self._checked: set[tuple[str, str]] = set()

    def check(self, sql: str, home: str = _MAIN) -> None:
        """Check one text; in `home`, a schema, what has no schema is looked for."""
        if (sql, home) in self._checked:
            return
        self._checked.add((sql, home))
        tree = _tree(sql)
        common = common_tables(tree)
        for node in nodes(tree):
            if node.get("type") == "BASE_TABLE":
                self._check_table(node, common, home)
            elif node.get("type") == "TABLE_FUNCTION":
                self._check_function(node["function"], is_table=True)
            elif node.get("class") == "FUNCTION" and node.get("function_name", "").lower() not in _TABLE_FUNCTIONS:
                self._check_function(node, is_table=False)

    def _check_table(self, node: Node, common: Collection[str], home: str) -> None:
        catalog, schema, name = (node[key].lower() for key in ("catalog_name", "schema_name", "table_name"))
        if not catalog and schema == ALIAS and schema not in self._names.schemas:
            catalog, schema = schema, ""
        if catalog not in ("", ALIAS):
            raise _not_of_lake(node)
        if schema in _READABLE_SCHEMAS:
            return
        for place in [(schema, name)] if schema else [(_MAIN, name), (home, name)]:
            if place in self._names.views:
                return self.check(self._names.views[place], place[0])
            if place in self._names.tables:
                return None
        # Where a common table is not in scope, DuckDB goes on looking among its own, and then for a file.
        if schema or name not in common or name in _own_tables() or not _PLAIN_NAME.fullmatch(name):
            raise _not_of_lake(node)

    def _check_function(self, node: Node, is_table: bool) -> None:
        name = node.get("function_name", "").lower()
        made_of = () if name.startswith(_OF_EXTENSIONS) else self._names.macros.get(name, ())
        for sql in made_of:
            self.check(sql)
        known = _TABLE_FUNCTIONS if is_table else _value_functions()
        if name in known or (made_of and name not in _own_functions()):
            return
        if name in _own_functions() or name.startswith(_OF_EXTENSIONS):
            raise InvalidError(f"the function {name} cannot be used here, where queries only read the lake")
        raise InvalidError(f"neither the lake nor DuckDB has a function {name} that queries can use here")


def _not_of_lake(node: Node) -> InvalidError:
    shown = ".".join(node[key] for key in ("catalog_name", "schema_name", "table_name") if node[key])
    return InvalidError(f"the lake has no table or view {shown!r}, and nothing else can be read here")


@cache
def _own_tables() -> frozenset[str]:
    """The names, in lower case, of the views that DuckDB has of itself."""
    with duckdb_cursor() as connection:
        return frozenset(n.lower() for (n,) in connection.execute("SELECT view_name FROM duckdb_views()").fetchall())


@cache
def _own_functions() -> frozenset[str]:
    """The names, in lower case, of DuckDB's own functions."""
    with duckdb_cursor() as connection:
        rows = connection.execute("SELECT function_name FROM duckdb_functions()").fetchall()
    return frozenset(name.lower() for (name,) in rows)


@cache
def _value_functions() -> frozenset[str]:
    """The names, in lower case, of DuckDB's functions that only compute: with every release those that it has then."""
    with duckdb_cursor() as connection:
        rows = connection.execute(
            "SELECT function_name FROM duckdb_functions() WHERE function_type IN ('scalar', 'aggregate', 'macro') "
            "GROUP BY ALL HAVING bool_and(stability IS DISTINCT FROM 'VOLATILE')"
        ).fetchall()
    return frozenset(name.lower() for (name,) in rows) - _OTHER_FUNCTIONS | _VOLATILE_FUNCTIONS


def _tree(sql: str) -> Node:
    with duckdb_cursor() as connection:
        [[text]] = connection.execute("SELECT json_serialize_sql(CAST($1 AS VARCHAR))", [sql]).fetchall()
    try:
        tree: Node = json.loads(text)
    except RecursionError:
        raise InvalidError("the query is too deep to be understood; write it with fewer brackets") from None
    if tree["error"]:
        raise InvalidError(f"DuckDB does not read this as one query: {tree['error_message']}")
    return tree
