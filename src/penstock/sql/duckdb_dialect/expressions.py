"""Writes the expressions of a bound plan as Spark SQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from penstock.sql.duckdb_dialect.bound_types import (
    BoundType,
    Node,
    UntranslatableError,
    bound_type,
    check_equal,
    check_ordered,
)
from penstock.sql.duckdb_dialect.casts import cast_text
from penstock.sql.duckdb_dialect.constants import Calculate, folded, literal
from penstock.sql.duckdb_dialect.functions import Call, function_text
from penstock.sql.duckdb_dialect.nested_values import ANY_TYPES, NESTED
from penstock.sql.duckdb_dialect.numbers import NUMBERS
from penstock.sql.duckdb_dialect.patterns import PATTERNS
from penstock.sql.duckdb_dialect.plan_keys import check_keys
from penstock.sql.duckdb_dialect.repeated_values import fresh_name
from penstock.sql.duckdb_dialect.texts import TEXTS
from penstock.sql.duckdb_dialect.times import TIMES

_TABLES = (NUMBERS, TEXTS, TIMES, PATTERNS, NESTED)
_EQUAL = {
    "COMPARE_EQUAL": "({0} = {1})",
    "COMPARE_NOTEQUAL": "({0} <> {1})",
    "COMPARE_DISTINCT_FROM": "(NOT ({0} <=> {1}))",
    "COMPARE_NOT_DISTINCT_FROM": "({0} <=> {1})",
}
_ORDERED = {
    "COMPARE_LESSTHAN": "({0} < {1})",
    "COMPARE_GREATERTHAN": "({0} > {1})",
    "COMPARE_LESSTHANOREQUALTO": "({0} <= {1})",
    "COMPARE_GREATERTHANOREQUALTO": "({0} >= {1})",
}
_OPERATORS = {
    "OPERATOR_IS_NULL": "({0} IS NULL)",
    "OPERATOR_IS_NOT_NULL": "({0} IS NOT NULL)",
    "OPERATOR_NOT": "(NOT {0})",
}
_LAMBDAS = {
    **dict.fromkeys(("list_transform", "array_transform", "list_apply", "array_apply", "apply"), "transform"),
    **dict.fromkeys(("list_filter", "array_filter", "filter"), "filter"),
}


def type_of(node: Node) -> BoundType:
    """The type of an expression's value."""
    match node["expression_class"]:
        case "BOUND_CONSTANT":
            return bound_type(node["value"]["type"])
        case "BOUND_COMPARISON" | "BOUND_CONJUNCTION" | "BOUND_BETWEEN":
            return BoundType("BOOLEAN")
    return bound_type(node["return_type"])


def comparison(kind: str, left: str, right: str, compared: BoundType) -> str:
    """A comparison of two values of one type."""
    if kind in _EQUAL:
        check_equal(compared)
        return _EQUAL[kind].format(left, right)
    if kind not in _ORDERED:
        raise UntranslatableError(f"the comparison {kind}")
    check_ordered(compared)
    return _ORDERED[kind].format(left, right)


@dataclass(frozen=True)
class Expressions:
    """Writes expressions whose columns have the texts given; DuckDB computes the constants among them."""

    calculate: Calculate
    fixed_zone: bool = True  # whether the clocks of the session's time zone never change

    def text(self, node: Node, columns: Sequence[str]) -> str:
        """An expression, as Spark's text."""
        check_keys(node)
        write: Callable[[Node, Sequence[str]], str] | None = getattr(self, f"_{node['expression_class'].lower()}", None)
        if write is None:
            raise UntranslatableError(f"an expression of the kind {node['expression_class']}")
        return write(node, columns)

    def texts(self, nodes: Sequence[Node], columns: Sequence[str]) -> list[str]:
        """Expressions, as Spark's texts."""
        return [self.text(node, columns) for node in nodes]

    def ordering(self, orders: Sequence[Node], columns: Sequence[str]) -> str:
        """A list of what to order by."""
        return ", ".join(self._order(order, columns) for order in orders)

    def _order(self, order: Node, columns: Sequence[str]) -> str:
        check_ordered(type_of(order["expression"]))
        way = "DESC" if order["type"] == "DESCENDING" else "ASC"
        nulls = order["null_order"]
        if nulls not in ("NULLS LAST", "NULLS FIRST"):
            raise UntranslatableError(f"the order {nulls}")
        return f"{self.text(order['expression'], columns)} {way} {nulls}"

    def _bound_ref(self, node: Node, columns: Sequence[str]) -> str:
        return columns[node["index"]]

    def _bound_constant(self, node: Node, columns: Sequence[str]) -> str:
        return literal(node)

    def _bound_cast(self, node: Node, columns: Sequence[str]) -> str:
        known = folded(node, self.calculate)
        if known is not None:
            return known
        child = node["child"]
        if not self.fixed_zone and type_of(node).family == "timestamptz" and type_of(child).family != "timestamptz":
            raise UntranslatableError("a cast to TIMESTAMPTZ in a time zone whose clocks change")
        return cast_text(self.text(child, columns), type_of(child), type_of(node), node["try_cast"])

    def _bound_comparison(self, node: Node, columns: Sequence[str]) -> str:
        left, right = self.texts([node["left"], node["right"]], columns)
        return comparison(node["type"], left, right, type_of(node["left"]))

    def _bound_conjunction(self, node: Node, columns: Sequence[str]) -> str:
        word = " AND " if node["type"] == "CONJUNCTION_AND" else " OR "
        return f"({word.join(self.texts(node['children'], columns))})"

    def _bound_between(self, node: Node, columns: Sequence[str]) -> str:
        check_ordered(type_of(node["input"]))
        value, lower, upper = self.texts([node["input"], node["lower"], node["upper"]], columns)
        first = ">=" if node["lower_inclusive"] else ">"
        last = "<=" if node["upper_inclusive"] else "<"
        return f"({value} {first} {lower} AND {value} {last} {upper})"

    def _bound_case(self, node: Node, columns: Sequence[str]) -> str:
        branches = []
        for check in node["case_checks"]:
            when, then = self.texts([check["when_expr"], check["then_expr"]], columns)
            branches.append(f"WHEN {when} THEN {then}")
        otherwise = self.text(node["else_expr"], columns)
        return f"CAST(CASE {' '.join(branches)} ELSE {otherwise} END AS {type_of(node).spark})"

    def _bound_operator(self, node: Node, columns: Sequence[str]) -> str:
        values = self.texts(node["children"], columns)
        kind = node["type"]
        if kind in _OPERATORS:
            return _OPERATORS[kind].format(*values)
        if kind in ("COMPARE_IN", "COMPARE_NOT_IN"):
            check_equal(type_of(node["children"][0]))
            return f"({values[0]} {'NOT ' if kind == 'COMPARE_NOT_IN' else ''}IN ({', '.join(values[1:])}))"
        if kind == "OPERATOR_COALESCE":
            return f"CAST(coalesce({', '.join(values)}) AS {type_of(node).spark})"
        raise UntranslatableError(f"the operator {kind}")

    def _bound_function(self, node: Node, columns: Sequence[str]) -> str:
        if node["name"] in _LAMBDAS:
            return self._lambda(node, columns)
        known = folded(node, self.calculate)
        if known is not None:
            return known
        children = node["children"]
        types = [type_of(child) for child in children]
        data = node.get("function_data") or {}
        call = Call(node["name"], self.texts(children, columns), children, types, type_of(node), data, self.fixed_zone)
        if node["name"] in ANY_TYPES:
            return ANY_TYPES[node["name"]](call)
        return function_text(call, _TABLES)

    def _lambda(self, node: Node, columns: Sequence[str]) -> str:
        """A function of each element. Its columns are its parameters, last first, and then what it takes along."""
        about = node["function_data"]
        if not about or about.get("lambda_expr") is None:
            raise UntranslatableError(f"{node['name']} without a lambda")
        values, *captured = self.texts(node["children"], columns)
        element, place = fresh_name(), fresh_name()
        names = [element, place] if about["has_index"] else [element]
        known = [element, f"CAST({place} + 1 AS BIGINT)"][: len(names)]
        body = self.text(about["lambda_expr"], [*reversed(known), *captured])
        head = names[0] if len(names) == 1 else f"({', '.join(names)})"
        return f"{_LAMBDAS[node['name']]}({values}, {head} -> {body})"
