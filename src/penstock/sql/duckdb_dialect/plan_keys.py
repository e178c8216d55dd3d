"""What is known of the nodes of a plan: a key that is not, and says something, could change what a query means."""

from __future__ import annotations

from typing import Any

from penstock.sql.duckdb_dialect.bound_types import Node, UntranslatableError

_NOTHING: tuple[Any, ...] = (None, "", [], {}, False, 0, 2**64 - 1)
_FUNCTION = "name arguments original_arguments catalog_name schema_name has_serialize function_data"
_JOIN = "conditions duplicate_eliminated_columns join_type mark_index mark_types"
_KNOWN = {
    name: frozenset(("type", "children", "expression_class", "alias", "query_location", *keys.split()))
    for name, keys in {
        "LOGICAL_PROJECTION": "expressions table_index",
        "LOGICAL_WINDOW": "expressions window_index",
        "LOGICAL_GET": "column_indexes input_table_names input_table_types names parameters projected_input"
        f" returned_types table_index extra_info {_FUNCTION}",
        "LOGICAL_AGGREGATE_AND_GROUP_BY": "aggregate_index distinct_validity expressions group_index"
        " grouping_functions grouping_sets groupings_index groups",
        "LOGICAL_ANY_JOIN": "condition join_type mark_index",
        "LOGICAL_DELIM_JOIN": _JOIN,
        "LOGICAL_COMPARISON_JOIN": _JOIN,
        "LOGICAL_LIMIT": "limit_val offset_val",
        "LOGICAL_DELIM_GET": "chunk_types table_index",
        "LOGICAL_FILTER": "expressions projection_map",
        "LOGICAL_CROSS_PRODUCT": "",
        "LOGICAL_ORDER_BY": "orders",
        "LOGICAL_DISTINCT": "distinct_targets distinct_type order_by",
        "LOGICAL_UNION": "allow_out_of_order column_count setop_all table_index",
        "LOGICAL_EXCEPT": "allow_out_of_order column_count setop_all table_index",
        "LOGICAL_INTERSECT": "allow_out_of_order column_count setop_all table_index",
        "LOGICAL_MATERIALIZED_CTE": "column_count ctename materialize table_index",
        "LOGICAL_RECURSIVE_CTE": "column_count ctename table_index union_all",
        "LOGICAL_CTE_REF": "bound_columns chunk_types cte_index table_index",
        "LOGICAL_UNNEST": "expressions unnest_index",
        "LOGICAL_EXPRESSION_GET": "expr_types expressions table_index",
        "LOGICAL_DUMMY_SCAN": "table_index",
        "BOUND_WINDOW": "arg_orders default_expr distinct end end_expr exclude_clause filters ignore_nulls"
        f" offset_expr orders partitions return_type start start_expr {_FUNCTION}",
        "BOUND_AGGREGATE": f"aggregate_type filter order_bys return_type {_FUNCTION}",
        "BOUND_REF": "index return_type",
        "BOUND_COMPARISON": "left right",
        "BOUND_CAST": "child return_type try_cast",
        "BOUND_CONSTANT": "value",
        "BOUND_CONJUNCTION": "",
        "BOUND_BETWEEN": "input lower upper lower_inclusive upper_inclusive",
        "BOUND_OPERATOR": "return_type",
        "BOUND_CASE": "case_checks else_expr return_type",
        "BOUND_FUNCTION": f"is_operator return_type {_FUNCTION}",
        "BOUND_UNNEST": "child return_type",
    }.items()
}


def check_keys(node: Node) -> None:
    """Refuse a node that says what is not known here."""
    name = node.get("expression_class") or node["type"]
    if name not in _KNOWN:
        raise UntranslatableError(name.removeprefix("LOGICAL_").removeprefix("BOUND_").replace("_", " "))
    for key, value in node.items():
        if key not in _KNOWN[name] and value not in _NOTHING and value != {"filters": []}:
            raise UntranslatableError(f"{name.removeprefix('LOGICAL_').removeprefix('BOUND_')} with {key} {value}")
