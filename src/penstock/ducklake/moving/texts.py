"""Rewrites what DuckDB keeps as text, so that it means the same in a lake: defaults and queries."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import duckdb

from penstock.ducklake.model.column_defaults import NO_DEFAULT, Default, expression_default, literal_default
from penstock.ducklake.writing.duckdb_expressions import calculator, expression_nodes
from penstock.errors import InvalidError
from penstock.schema.columns import Column
from penstock.storage.duckdb_files import duckdb_cursor
from penstock.storage.duckdb_sql import duckdb_type


def lake_default(column: Column, sql: str) -> Default:
    """A default as the extension keeps it: a constant by its text, anything else as an expression.

    InvalidError where it needs something that a lake does not have, or gives no value of the column's type.
    """
    if column.type.nested:
        raise InvalidError("DuckLake has no defaults for nested types")
    nodes, kind, text = expression_nodes(sql), duckdb_type(column), f"CAST({sql} AS VARCHAR)"
    try:
        with calculator() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute(f"CREATE TABLE t (c {kind} DEFAULT {sql})")
            connection.execute("INSERT INTO t DEFAULT VALUES")
            if not nodes or nodes[0]["class"] != "CONSTANT":
                return expression_default(sql)
            [[own, value, again]] = connection.execute(
                f"SELECT {text}, CAST(c AS VARCHAR), CAST(TRY_CAST({text} AS {kind}) AS VARCHAR) FROM t"
            ).fetchall()
    except duckdb.Error as error:
        raise InvalidError(str(error).splitlines()[0]) from None
    return NO_DEFAULT if own is None else literal_default(own if again == value else value, value)


def lake_query(query: str, catalog: str, schemas: Collection[str]) -> str:
    """A query whose names do not begin with the database that it was made in; one without such is left as it is.

    `catalog.name` and `schema.name` are written alike: the schemas of the database tell them apart.
    """
    if catalog.lower() not in query.lower():
        return query
    with duckdb_cursor() as connection:
        [[text]] = connection.execute("SELECT json_serialize_sql($1)", [query]).fetchall()
        tree = json.loads(text)
        _rename(tree, catalog.lower(), {schema.lower() for schema in schemas})
        if tree == json.loads(text) or tree["error"]:
            return query
        [[renamed]] = connection.execute("SELECT json_deserialize_sql(CAST($1 AS JSON))", [json.dumps(tree)]).fetchall()
    return str(renamed)


def _rename(tree: Any, catalog: str, schemas: Collection[str]) -> None:
    """Take the database out of all names."""
    if isinstance(tree, list):
        for item in tree:
            _rename(item, catalog, schemas)
    if not isinstance(tree, dict):
        return
    names = tree.get("column_names", [])
    if len(names) > 2 and names[0].lower() == catalog:
        names[0:1] = []
    for above, schema in (("catalog_name", "schema_name"), ("catalog", "schema")):
        if str(tree.get(above, "")).lower() == catalog:
            tree[above] = ""
        elif not tree.get(above) and str(tree.get(schema, "")).lower() == catalog and catalog not in schemas:
            tree[schema] = ""
    for item in tree.values():
        _rename(item, catalog, schemas)
