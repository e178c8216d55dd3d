"""Moves conditions below the joins that DuckDB makes of subqueries.

A bound plan is not optimized: the conditions of a WHERE stand above its subqueries, whose left side is the product of
all tables in FROM. A DELIM join reads that side twice, and Spark would not push the conditions into both.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.sql.duckdb_dialect.bound_types import Node, UntranslatableError
from penstock.storage.duckdb_trees import nodes

_BOTH = ("INNER", "LEFT", "RIGHT", "FULL", "SINGLE")
# Joins of which every row of the result is one of the left side's, with something added.
_OF_LEFT_ROWS = ("INNER", "LEFT", "MARK", "SINGLE", "SEMI", "ANTI")


def pushed(node: Node) -> Node:
    """A FILTER with the conditions on the left side of the join below it moved to that side."""
    join = node["children"][0]
    if node.get("projection_map"):
        return node
    if join["type"] not in ("LOGICAL_DELIM_JOIN", "LOGICAL_COMPARISON_JOIN") or join["join_type"] not in _OF_LEFT_ROWS:
        return node
    width = width_of(join["children"][0])
    below = [one for one in node["expressions"] if _is_below(one, width)]
    if not below:
        return node
    left = {"type": "LOGICAL_FILTER", "children": [join["children"][0]], "expressions": below}
    moved = {**join, "children": [left, join["children"][1]]}
    rest = [one for one in node["expressions"] if one not in below]
    return {**node, "children": [moved], "expressions": rest} if rest else moved


def _is_below(expression: Node, width: int) -> bool:
    places = [one["index"] for one in nodes(expression) if one.get("expression_class") == "BOUND_REF"]
    # A lambda numbers its own columns.
    return bool(places) and max(places) < width and not any("lambda_expr" in one for one in nodes(expression))


def width_of(node: Node) -> int:
    """How many columns an operator gives."""
    name = node["type"].removeprefix("LOGICAL_")
    if name not in _WIDTHS:
        raise UntranslatableError(name.replace("_", " "))
    return _WIDTHS[name](node)


def _of_child(node: Node) -> int:
    return width_of(node["children"][0])


def _of_both(node: Node) -> int:
    return sum(map(width_of, node["children"]))


def _of_join(node: Node) -> int:
    kind = node["join_type"]
    return _of_both(node) if kind in _BOTH else _of_child(node) + (1 if kind == "MARK" else 0)


_WIDTHS: dict[str, Callable[[Node], int]] = {
    "FILTER": lambda node: len(node.get("projection_map") or ()) or _of_child(node),
    **dict.fromkeys(("ORDER_BY", "LIMIT", "DISTINCT", "SAMPLE"), _of_child),
    **dict.fromkeys(("COMPARISON_JOIN", "DELIM_JOIN", "ANY_JOIN"), _of_join),
    **dict.fromkeys(("UNION", "EXCEPT", "INTERSECT", "RECURSIVE_CTE"), lambda node: int(node["column_count"])),
    **dict.fromkeys(("DELIM_GET", "CTE_REF"), lambda node: len(node["chunk_types"])),
    **dict.fromkeys(("WINDOW", "UNNEST"), lambda node: _of_child(node) + len(node["expressions"])),
    "CROSS_PRODUCT": _of_both,
    "PROJECTION": lambda node: len(node["expressions"]),
    "GET": lambda node: len(node["column_indexes"]) + len(node["projected_input"]),
    "AGGREGATE_AND_GROUP_BY": lambda node: (
        len(node["groups"]) + len(node["expressions"]) + len(node["grouping_functions"])
    ),
    "MATERIALIZED_CTE": lambda node: width_of(node["children"][1]),
    "EXPRESSION_GET": lambda node: len(node["expr_types"]),
    "DUMMY_SCAN": lambda node: 1,
}
