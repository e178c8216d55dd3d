"""Writes the window functions of a bound plan as Spark SQL."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.sql.duckdb_dialect.aggregates import aggregate_text
from penstock.sql.duckdb_dialect.bound_types import Node, UntranslatableError, bound_type, check_equal
from penstock.sql.duckdb_dialect.constants import constant_number
from penstock.sql.duckdb_dialect.expressions import Expressions, type_of
from penstock.sql.duckdb_dialect.plan_keys import check_keys

# Functions of a row's place, which Spark gives no frame.
_PLACES = {
    "WINDOW_ROW_NUMBER": "row_number()",
    "WINDOW_RANK": "rank()",
    "WINDOW_RANK_DENSE": "dense_rank()",
    "WINDOW_PERCENT_RANK": "percent_rank()",
    "WINDOW_CUME_DIST": "cume_dist()",
    "WINDOW_NTILE": "ntile",
}
_NEIGHBOURS = {"WINDOW_LAG": "lag", "WINDOW_LEAD": "lead"}
_VALUES = {
    "WINDOW_FIRST_VALUE": "first_value",
    "WINDOW_LAST_VALUE": "last_value",
    "WINDOW_NTH_VALUE": "nth_value",
}
_BOUNDS = {
    "UNBOUNDED_PRECEDING": "UNBOUNDED PRECEDING",
    "UNBOUNDED_FOLLOWING": "UNBOUNDED FOLLOWING",
    "CURRENT_ROW_RANGE": "CURRENT ROW",
    "CURRENT_ROW_ROWS": "CURRENT ROW",
}
_COUNTED = {"EXPR_PRECEDING_ROWS": "PRECEDING", "EXPR_FOLLOWING_ROWS": "FOLLOWING"}


def window_text(node: Node, expressions: Expressions, columns: Sequence[str]) -> str:
    """A window function, as Spark's text."""
    check_keys(node)
    kind = node["type"]
    if kind != "WINDOW_AGGREGATE" and (node["filters"] is not None or node["distinct"] or node["arg_orders"]):
        raise UntranslatableError(f"the window function {kind} of some of the rows, or in an order of its own")
    if kind == "WINDOW_AGGREGATE" and node["ignore_nulls"]:
        raise UntranslatableError("an aggregate in a window that ignores NULLs")
    if node["exclude_clause"] != "NO_OTHER":
        raise UntranslatableError("EXCLUDE in a window")
    for part in node["partitions"]:
        check_equal(type_of(part))
    if kind in _PLACES:
        over = _window(node, expressions, columns, frame=False, ordered=True)
        function = _PLACES[kind] if node["children"] == [] else f"{_PLACES[kind]}({_constant(node['children'][0])})"
        return f"CAST({function} OVER ({over}) AS {bound_type(node['return_type']).spark})"
    if kind in _NEIGHBOURS:
        return _neighbour(node, expressions, columns)
    if kind in _VALUES:
        values = expressions.texts(node["children"][:1], columns)
        values += [str(_constant(child)) for child in node["children"][1:]]
        if any(_constant(child) < 1 for child in node["children"][1:]):
            raise UntranslatableError("nth_value of a place below 1")
        over = _window(node, expressions, columns, frame=True, ordered=True)
        return f"{_VALUES[kind]}({', '.join(values)}){_nulls(node)} OVER ({over})"
    if kind == "WINDOW_AGGREGATE":
        over = _window(node, expressions, columns, frame=True, ordered=False)
        return aggregate_text(node, expressions, columns, over)
    raise UntranslatableError(f"the window function {kind}")


def _neighbour(node: Node, expressions: Expressions, columns: Sequence[str]) -> str:
    values = expressions.texts(node["children"][:1], columns)
    offset = 1 if node.get("offset_expr") is None else _constant(node["offset_expr"])
    values.append(str(offset))
    if node.get("default_expr") is not None:
        values.append(expressions.text(node["default_expr"], columns))
    over = _window(node, expressions, columns, frame=False, ordered=True)
    return f"{_NEIGHBOURS[node['type']]}({', '.join(values)}){_nulls(node)} OVER ({over})"


def _nulls(node: Node) -> str:
    return " IGNORE NULLS" if node.get("ignore_nulls") else ""


def _constant(node: Node) -> int:
    value = constant_number(node)
    if not isinstance(value, int):
        raise UntranslatableError("a number of rows in a window that is no constant")
    return value


def _window(node: Node, expressions: Expressions, columns: Sequence[str], *, frame: bool, ordered: bool) -> str:
    parts = []
    if node["partitions"]:
        parts.append(f"PARTITION BY {', '.join(expressions.texts(node['partitions'], columns))}")
    if node["orders"]:
        parts.append(f"ORDER BY {expressions.ordering(node['orders'], columns)}")
    elif ordered:
        parts.append("ORDER BY NULL")  # any order will do, but Spark wants one
    shown = _frame(node, bool(node["orders"]) or ordered) if frame else None
    return " ".join([*parts, *([shown] if shown else [])])


def _frame(node: Node, ordered: bool) -> str | None:
    start, end = node["start"], node["end"]
    if not ordered and (start, end) == ("UNBOUNDED_PRECEDING", "CURRENT_ROW_RANGE"):
        return None  # all rows are equals
    by_rows = start.endswith("_ROWS") or end.endswith("_ROWS")
    if by_rows and "CURRENT_ROW_RANGE" in (start, end):
        raise UntranslatableError(f"the frame of a window from {start} to {end}")
    first, last = _bound(node, "start"), _bound(node, "end")
    if not node["orders"] and not by_rows:
        first, last = "UNBOUNDED PRECEDING", "UNBOUNDED FOLLOWING"
        return f"ROWS BETWEEN {first} AND {last}"
    return f"{'ROWS' if by_rows else 'RANGE'} BETWEEN {first} AND {last}"


def _bound(node: Node, side: str) -> str:
    kind = node[side]
    if kind in _BOUNDS:
        return _BOUNDS[kind]
    if kind not in _COUNTED:
        raise UntranslatableError(f"the frame of a window that begins or ends with {kind}")
    return f"{_constant(node[f'{side}_expr'])} {_COUNTED[kind]}"
