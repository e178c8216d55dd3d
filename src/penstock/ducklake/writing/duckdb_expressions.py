"""Reads and prints DuckDB's expressions, with DuckDB's own parser, and translates them for Spark."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

import duckdb

from penstock.ducklake.model.snapshot_changes import quoted_name
from penstock.errors import InvalidError
from penstock.storage.duckdb_files import duckdb_cursor
from penstock.storage.duckdb_trees import nodes

Node = dict[str, Any]

_QUOTED = re.compile(r"""('(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`)""")
_TEXT_TYPE = re.compile(r"\bVARCHAR\b(?!\s*\()", re.IGNORECASE)
_SELECT = "SELECT "


def calculator() -> duckdb.DuckDBPyConnection:
    """An empty DuckDB, to compute in."""
    return duckdb.connect()


def printed_expression(sql: str) -> str:
    """An expression as DuckDB prints it; names may stand in backticks too."""
    parts = _QUOTED.split(sql)
    parts[1::2] = (quoted_name(part[1:-1].replace("``", "`")) if part[0] == "`" else part for part in parts[1::2])
    text = "".join(parts)
    try:
        expression = str(duckdb.SQLExpression(text))
    except duckdb.Error as error:
        raise InvalidError(f"{sql!r} is not an expression: {str(error).splitlines()[0]}") from None
    named = next((node["alias"] for node in expression_nodes(text)), "")
    if named:
        raise InvalidError(f"{sql!r} is not an expression: it goes on with {named!r}")
    return expression


def spark_sql(sql: str) -> str:
    """The text of a DuckDB expression as Spark reads it: names in backticks, strings without backslashes."""
    parts = _QUOTED.split(sql)
    parts[0::2] = (_TEXT_TYPE.sub("STRING", part) for part in parts[0::2])
    parts[1::2] = (_spark_quoted(part) for part in parts[1::2])
    return "".join(parts)


def _spark_quoted(part: str) -> str:
    if part[0] == "'":
        return part.replace("\\", "\\\\")
    name = part[1:-1].replace('""', '"') if part[0] == '"' else part[1:-1]
    return f"`{name.replace('`', '``')}`"


def expression_nodes(sql: str) -> list[Node]:
    """Every node of an expression's tree; none where DuckDB cannot read it."""
    return list(_walk(_select_list(_tree(sql))))


def column_paths(sql: str) -> list[tuple[str, ...]]:
    """The columns that an expression names, by their parts: ("s", "a") is the field a of s."""
    return [tuple(node["column_names"]) for node in expression_nodes(sql) if node["class"] == "COLUMN_REF"]


def with_renamed_column(sql: str, old: str, new: str) -> str:
    """The expression with another name for a column."""
    tree = _tree(sql)
    for node in _walk(_select_list(tree)):
        if node["class"] == "COLUMN_REF" and node["column_names"][0].lower() == old.lower():
            node["column_names"][0] = new
    return _text(tree)


def _text(tree: Any) -> str:
    with duckdb_cursor() as connection:
        [[text]] = connection.execute("SELECT json_deserialize_sql(CAST($1 AS JSON))", [json.dumps(tree)]).fetchall()
    return str(text).removeprefix(_SELECT)


def without_catalogs(sql: str, schemas: Collection[str]) -> str:
    """The expression with functions that are looked for in whatever database it runs in.

    `lake.f(x)` and `schema.f(x)` are written alike: the schemas of the lake, in lower case, tell them apart.
    """
    tree = _tree(sql)
    for node in _walk(_select_list(tree)):
        if node["class"] == "FUNCTION":
            node["catalog"] = ""
            node["schema"] = node["schema"] if node["schema"].lower() in schemas else ""
    return _text(tree)


def function_names(sql: str) -> set[str]:
    """The names of the functions that an expression calls, in lower case."""
    return {node["function_name"].lower() for node in expression_nodes(sql) if node["class"] == "FUNCTION"}


def _tree(sql: str) -> Any:
    with duckdb_cursor() as connection:
        [[text]] = connection.execute("SELECT json_serialize_sql($1)", [_SELECT + sql]).fetchall()
    return json.loads(text)


def _select_list(tree: Any) -> Any:
    return [] if tree["error"] else tree["statements"][0]["node"]["select_list"]


def _walk(tree: Any) -> Iterator[Node]:
    return (node for node in nodes(tree) if "class" in node)
