"""Writes unnest in FROM as Spark's LATERAL VIEW.

DuckDB numbers the rows of the left side, computes the right side for each, and joins by the number. Where the right
side works row by row, Spark does so too, with the columns of the left taken along, and needs no numbers.
"""

from __future__ import annotations

from penstock.sql.duckdb_dialect.bound_types import Node, UntranslatableError
from penstock.sql.duckdb_dialect.plan_keys import check_keys
from penstock.sql.duckdb_dialect.query_texts import Plan, Rows, columns_of, selected

_NUMBER = "delim_index"


def is_numbered(node: Node) -> bool:
    """Whether DuckDB has numbered the rows of a join's left side."""
    left = node["children"][0]
    return left["type"] == "LOGICAL_WINDOW" and any(one["alias"] == _NUMBER for one in left["expressions"])


def lateral(plan: Plan, node: Node) -> Rows:
    """A join with what is made of each row."""
    if node["join_type"] != "INNER" or len(node["conditions"]) != 1 or len(node["children"][0]["expressions"]) != 1:
        raise UntranslatableError(f"a {node['join_type']} join with unnest")
    left, name, columns = plan.child(node["children"][0])
    known = [*columns, "0L"]  # the number, which nothing but the join looks at
    start = plan.expressions.texts(node["duplicate_eliminated_columns"], known)
    base = Rows(f"{selected([*known, *start])} FROM ({left.sql}) {name}", len(known) + len(start))
    return _carried(plan, node["children"][1], base, len(known))


def _carried(plan: Plan, node: Node, base: Rows, width: int) -> Rows:
    """What an operator makes of each row, behind the columns that are taken along."""
    check_keys(node)
    if node["type"] == "LOGICAL_DELIM_GET":
        return base
    if node["type"] not in ("LOGICAL_PROJECTION", "LOGICAL_FILTER", "LOGICAL_GET") or len(node["children"]) != 1:
        raise UntranslatableError(f"{node['type'].removeprefix('LOGICAL_')} of what unnest in FROM gives")
    child = _carried(plan, node["children"][0], base, width)
    name = plan.alias()
    columns = columns_of(name, child.width)
    kept, own = columns[:width], columns[width:]
    source = f"({child.sql}) {name}"
    if node["type"] == "LOGICAL_FILTER":
        conditions = " AND ".join(plan.expressions.texts(node["expressions"], own))
        return Rows(f"SELECT {name}.* FROM {source} WHERE {conditions}", child.width)
    if node["type"] == "LOGICAL_PROJECTION":
        texts = plan.expressions.texts(_by_place(node), own)
        return Rows(f"{selected([*kept, *texts])} FROM {source}", width + len(texts))
    if node["name"] != "unnest" or len(node["column_indexes"]) != 1:
        raise UntranslatableError(f"the table function {node['name']} of columns")
    again = [own[place] for place in node["projected_input"]]
    shown = [*kept, "u.e", *again]
    return Rows(f"{selected(shown)} FROM {source} LATERAL VIEW explode({own[0]}) u AS e", len(shown))


def _by_place(node: Node) -> list[Node]:
    """Expressions over a DELIM_GET, whose columns a plan does not number where a function takes them."""
    if node["children"][0]["type"] != "LOGICAL_DELIM_GET":
        return list(node["expressions"])
    return [_numbered(one) if one["expression_class"] == "BOUND_COLUMN_REF" else one for one in node["expressions"]]


def _numbered(column: Node) -> Node:
    place = column["binding"]["column_index"]
    return {"expression_class": "BOUND_REF", "type": "BOUND_REF", "return_type": column["return_type"], "index": place}
