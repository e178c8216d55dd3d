"""Takes the name of a DuckDB database out of queries, so that they mean the same in a lake."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import UnsupportedError
from penstock.storage.duckdb_files import duckdb_cursor
from penstock.storage.duckdb_trees import nodes

_LEVELS = (("catalog_name", "schema_name"), ("catalog", "schema"))
_COLUMN = ("catalog", "schema", "table", "column")  # of a name in EXCLUDE


@dataclass(frozen=True)
class SourceNames:
    """The names of a DuckDB database that a query of it may use, in lower case, and its own.

    `macros` are pairs of a schema and a name; a name alone is there with no schema too.
    """

    catalog: str
    schemas: Collection[str]
    tables: Collection[str] = ()  # and views
    columns: Collection[str] = ()
    macros: Collection[tuple[str, str]] = ()


def lake_query(query: str, names: SourceNames, parameters: Iterable[str] = ()) -> str:
    """A query whose names do not begin with the database that it was made in; one without such is left as it is.

    `catalog.name` and `schema.name` are written alike: the schemas of the database tell them apart. So are
    `catalog.table.column` and `table.column.field`: UnsupportedError where a query may mean either. `parameters` are
    those of the macro whose query it is.
    """
    if names.catalog.replace('"', '""') not in query.lower():
        return query
    with duckdb_cursor() as connection:
        [[text]] = connection.execute("SELECT json_serialize_sql($1)", [query]).fetchall()
        tree = json.loads(text)
        if tree["error"]:
            return query
        _Renaming(names, _Scope.of(tree, names, parameters)).rename(tree)
        if tree == json.loads(text):
            return query
        [[renamed]] = connection.execute("SELECT json_deserialize_sql(CAST($1 AS JSON))", [json.dumps(tree)]).fetchall()
    return str(renamed)


@dataclass
class _Scope:
    """What a query calls things, at any depth: tables of the database by their own names, and all that it names."""

    tables: set[str] = field(default_factory=set)
    relations: set[str] = field(default_factory=set)  # aliases, names of WITH, and what is no table of the database
    queries: set[str] = field(default_factory=set)  # the names of WITH alone
    columns: set[str] = field(default_factory=set)
    has_catalog: bool = False  # whether it reads a table by the database's name

    @staticmethod
    def of(tree: Any, names: SourceNames, parameters: Iterable[str]) -> _Scope:
        found = _Scope(columns={name.lower() for name in parameters})
        for node in nodes(tree):
            queries = {_lower(one, "key") for one in (node.get("cte_map") or {}).get("map", ())}
            found.queries |= queries
            found.relations |= queries
            (found.columns if "class" in node else found.relations).add(_lower(node, "alias"))
            found.columns.update(name.lower() for name in node.get("column_name_alias") or ())
            if node.get("type") == "LAMBDA":
                found.columns.update(one["column_names"][0].lower() for one in nodes(node["lhs"]) if _names(one))
            if node.get("type") == "BASE_TABLE":
                own = _lower(node, "table_name")
                (found.tables if own in names.tables else found.relations).add(own)
                found.has_catalog |= names.catalog in (_lower(node, "catalog_name"), _lower(node, "schema_name"))
        return found


@dataclass(frozen=True)
class _Renaming:
    """Takes the database out of the names of a query."""

    names: SourceNames
    scope: _Scope

    def rename(self, tree: Any) -> None:
        """Take the database out of all names of a tree."""
        for node in list(nodes(tree)):
            if _names(node):
                node["column_names"] = self._column(node["column_names"])
            elif all(part in node for part in _COLUMN):
                parts = self._column([node[part] for part in _COLUMN if node[part]])
                node.update(zip(_COLUMN, [""] * (len(_COLUMN) - len(parts)) + parts, strict=True))
            elif "function_name" in node:
                self._function(node)
            else:
                self._other(node)

    def _column(self, parts: list[str]) -> list[str]:
        """A name of a column, which may begin with a database, a schema, a table or the column, and end with fields."""
        if len(parts) < 3 or parts[0].lower() != self.names.catalog:
            return parts
        scope, schemas, columns = self.scope, self.names.schemas, {*self.names.columns, *self.scope.columns}
        first, second = (part.lower() for part in parts[:2])
        if second not in {*schemas, *scope.tables, *scope.relations}:
            return parts  # no table of the database
        if (
            first in {*schemas, *columns, *scope.relations} or (first in scope.tables and second in columns)
            or (second in scope.relations and second not in schemas)
        ):  # fmt: skip
            raise UnsupportedError(
                f"{'.'.join(parts)} may be a column of the database {parts[0]}, and of something else of that name; "
                "make it anew without the database's name"
            )
        return parts[1:] if scope.has_catalog else parts

    def _function(self, node: Any) -> None:
        """`name.f()` may be the function f of a database or a schema, and of the column `name` too."""
        catalog, schema, name = (_lower(node, key) for key in ("catalog", "schema", "function_name"))
        if catalog == self.names.catalog and (schema, name) in self.names.macros:
            node["catalog"] = ""
        elif not catalog and self._is_catalog(schema) and ("", name) in self.names.macros:
            node["schema"] = ""

    def _other(self, node: Any) -> None:
        for above, below in _LEVELS:
            if _lower(node, above) == self.names.catalog:
                node[above] = ""
            elif not node.get(above) and self._is_catalog(_lower(node, below)):
                node[below] = ""
            else:
                continue
            if not node.get(below) and _lower(node, "table_name") in self.scope.queries:
                raise UnsupportedError(
                    f"it reads the table {node['table_name']} and gives the name to something else; "
                    "make it anew without the database's name"
                )

    def _is_catalog(self, name: str) -> bool:
        return name == self.names.catalog and name not in self.names.schemas


def _names(node: Any) -> bool:
    """Whether a node is the name of a column."""
    return "column_names" in node


def _lower(node: Any, key: str) -> str:
    return str(node.get(key) or "").lower()
