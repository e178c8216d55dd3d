"""DuckDB's own parser: queries as trees and back, and what they name."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from penstock.errors import InvalidError
from penstock.sql.duckdb_dialect.bound_types import Node
from penstock.storage.duckdb_files import duckdb_cursor
from penstock.storage.duckdb_sql import text_literal
from penstock.storage.duckdb_trees import nodes

# What they give depends on a session of DuckDB's, which there is none of.
_OF_SESSIONS = frozenset(("getvariable", "current_setting", "nextval", "currval", "current_query"))


def tree_of(sql: str) -> Node:
    """The tree of one query."""
    tree = _parsed(sql)
    if tree["error"]:
        raise InvalidError(f"DuckDB does not read {sql!r} as a query: {tree['error_message']}")
    if len(tree["statements"]) != 1:
        raise InvalidError(f"{sql!r} is not one query")
    return with_exact_doubles(tree)


def _parsed(sql: str) -> Node:
    with duckdb_cursor() as connection:
        [[text]] = connection.execute("SELECT json_serialize_sql($1)", [sql]).fetchall()
    parsed: Node = json.loads(text)
    return parsed


def text_of(tree: Node) -> str:
    """The text of a tree, as DuckDB prints it."""
    with duckdb_cursor() as connection:
        [[text]] = connection.execute("SELECT json_deserialize_sql(CAST($1 AS JSON))", [json.dumps(tree)]).fetchall()
    return str(text)


def with_exact_doubles(tree: Node) -> Node:
    """The tree with constants that are read as they are printed: DuckDB prints 1e10 as a DECIMAL would be."""
    for select in [node for node in nodes(tree) if "select_list" in node]:
        for item in select["select_list"]:
            changed = any(_is_double(node) or node.get("class") == "PARAMETER" for node in nodes(item))
            if not item["alias"] and item["class"] != "SUBQUERY" and changed:
                item["alias"] = text_of(selecting(item)).removeprefix("SELECT ")
    for node in list(nodes(tree)):
        if _is_double(node):
            text = {
                "type": {"id": "VARCHAR", "type_info": None},
                "is_null": False,
                "value": repr(node["value"]["value"]),
            }
            constant = {**node, "alias": "", "value": text}
            kept = {
                "alias": node["alias"],
                "query_location": node["query_location"],
                "cast_type": node["value"]["type"],
            }
            node.clear()
            node.update({"class": "CAST", "type": "OPERATOR_CAST", **kept, "child": constant, "try_cast": False})
    return tree


def _is_double(node: Node) -> bool:
    return node.get("class") == "CONSTANT" and node["value"]["type"]["id"] == "DOUBLE"


def selecting(item: Node) -> Node:
    """The tree of a query of one expression."""
    tree = _parsed("SELECT 1")
    tree["statements"][0]["node"]["select_list"] = [item]
    return tree


def named_tables(tree: Node) -> list[Node]:
    """The tables, views and common tables that a query names."""
    return [node for node in nodes(tree) if node.get("type") == "BASE_TABLE"]


def called_functions(tree: Node) -> list[Node]:
    """The functions that a query calls."""
    found = [node for node in nodes(tree) if node.get("class") == "FUNCTION"]
    for node in found:
        if node["function_name"].lower() in _OF_SESSIONS:
            raise InvalidError(f"{node['function_name']} is about a session of DuckDB, which Spark does not have")
    return found


def with_arguments(tree: Node, args: Mapping[str, Any] | Sequence[Any] | None) -> Node:
    """The tree with the values of its parameters: `$name`, `$1` or `?`."""
    given = dict(args) if isinstance(args, Mapping) else {str(i): value for i, value in enumerate(args or (), 1)}
    used = set()
    for node in nodes(tree):
        if node.get("class") == "PARAMETER":
            name = node["identifier"]
            if name not in given:
                raise InvalidError(f"the query has a parameter {name}, which args gives no value")
            used.add(name)
            value = _parsed(f"SELECT {duckdb_literal(given[name])}")["statements"][0]["node"]["select_list"][0]
            alias = node["alias"]
            node.clear()
            node.update(value, alias=alias)
    unused = sorted(set(given) - used)
    if unused:
        raise InvalidError(f"args gives values to {', '.join(unused)}, which the query has no parameter for")
    for statement in tree["statements"]:
        statement["named_param_map"] = []
    return tree


def duckdb_literal(value: Any) -> str:
    """A value of Python's as a literal of DuckDB's."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int():
            return str(value)
        case float():
            return f"CAST('{value}' AS DOUBLE)"
        case str() if "\0" not in value:
            return text_literal(value)
        case Decimal() if value.is_finite():
            exponent = value.as_tuple().exponent
            scale = max(0, -exponent) if isinstance(exponent, int) else 0
            width = max(len(value.as_tuple().digits) + max(0, 0 if scale else int(exponent)), scale + 1)
            return f"CAST('{value:f}' AS DECIMAL({width},{scale}))"
        case datetime() if value.tzinfo is not None:
            return f"CAST('{value.isoformat()}' AS TIMESTAMPTZ)"
        case datetime():
            return f"CAST('{value.isoformat()}' AS TIMESTAMP)"
        case date():
            return f"CAST('{value.isoformat()}' AS DATE)"
        case bytes():
            return "CAST('" + "".join(f"\\x{byte:02X}" for byte in value) + "' AS BLOB)"
    raise InvalidError(f"{value!r} cannot be an argument of a query in DuckDB's dialect")
