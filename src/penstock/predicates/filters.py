"""Turns Spark's pushed filters, as JSON, into what they imply for each column.

A filter keeps the rows for which it is TRUE. So a leaf is asked for the values that make it TRUE or, under an odd
number of NOTs, FALSE; NULL is neither. AND and OR obey De Morgan's laws in Spark's three-valued logic too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from penstock.predicates.casts import column_under
from penstock.predicates.domains import within
from penstock.predicates.expressions import Expression, Literal, NotUnderstood, expression, is_literal, literal
from penstock.predicates.implication import Anything, Implication, Nothing, column_in, conjunction, disjunction
from penstock.predicates.values import NAN, NO_VALUES, NOT_NULL, NULL, Cut, Interval, ValueSet
from penstock.schema.columns import Column

_MIRRORED = {"=": "=", "<=>": "<=>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_PREDICATES = ("not", "and", "or", "in", *_MIRRORED, "isnull", "isnotnull")
_HARMLESS = (NotUnderstood, ValueError, TypeError, ArithmeticError)


def implied_by(filters: Sequence[str], columns: Sequence[Column]) -> Implication:
    """What is true of every row that passes all filters. What is not understood implies nothing and never fails."""
    reader = _Reader(columns)
    return conjunction(reader.implied(text) for text in filters)


class _Reader:
    """Reads the filters on columns of known types."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = columns

    def implied(self, text: str) -> Implication:
        try:
            return self.tree(json.loads(text), True)
        except (ValueError, RecursionError):
            return Anything()

    def tree(self, node: Any, wanted: bool) -> Implication:
        """What follows from `node` being TRUE (or FALSE, where that is wanted)."""
        match node:
            case ["not", inner]:
                return self.tree(inner, not wanted)
            case ["and" | "or" as joint, *children] if children:
                join = conjunction if (joint == "and") is wanted else disjunction
                return join([self.tree(child, wanted) for child in children])
            case ["literal", "boolean", value]:
                return Anything() if value is wanted else Nothing()
            case ["isnull", [str() as operator, *_] as predicate] if wanted and operator in _PREDICATES:
                return self.unknown(predicate)
        try:
            return self.leaf(node, wanted)
        except _HARMLESS:
            return Anything()

    def unknown(self, node: Any) -> Implication:
        """What follows from a predicate being neither TRUE nor FALSE: something in it is NULL."""
        match node:
            case ["<=>" | "isnull" | "isnotnull", *_]:
                return Nothing()
            case ["literal", _, value]:
                return Anything() if value is None else Nothing()
            case ["not" | "and" | "or" | "=" | "<" | "<=" | ">" | ">=" | "in", *parts]:
                return disjunction([self.unknown(part) for part in parts])
        return self.tree(["isnull", node], True)

    def leaf(self, node: Any, wanted: bool) -> Implication:
        subject, when_true, when_false = self.outcomes(node)
        reference, values = column_under(subject, when_true if wanted else when_false)
        return column_in(reference.column, reference.path, within(values, reference.column.type))

    def outcomes(self, node: Any) -> tuple[Expression, ValueSet, ValueSet]:
        """What a leaf is about, and the values that make it TRUE and FALSE."""
        match node:
            case [str(operator), left, right] if operator in _MIRRORED:
                if is_literal(left):
                    operator, left, right = _MIRRORED[operator], right, left
                subject = expression(left, self.columns)
                return subject, *_comparison(operator, literal(right, subject.type))
            case ["in", left, *options]:
                subject = expression(left, self.columns)
                return subject, *_membership([literal(option, subject.type) for option in options])
            case ["isnull", inner]:
                return expression(inner, self.columns), NULL, ~NULL
            case ["isnotnull", inner]:
                return expression(inner, self.columns), ~NULL, NULL
            case ["isnan", inner]:
                return expression(inner, self.columns), NAN, ~NAN
            case ["startswith", left, right]:
                subject = expression(left, self.columns)
                return subject, *_prefix(literal(right, subject.type))
        subject = expression(node, self.columns)
        if subject.type.name != "boolean":
            raise NotUnderstood(f"not a predicate: {node!r}")
        return subject, ValueSet.points([True]), ValueSet.points([False])


def _comparison(operator: str, right: Literal) -> tuple[ValueSet, ValueSet]:
    null = right.value is None and not right.nan
    if operator == "<=>":
        matching = NULL if null else _compared("=", right)
        return matching, ~matching
    if null:
        return NO_VALUES, NO_VALUES
    matching = _compared(operator, right)
    return matching, (~matching).without_null()


def _compared(operator: str, right: Literal) -> ValueSet:
    """The values that compare so; NaN equals itself and is greater than every number."""
    if right.nan:
        return {"<": (~NAN).without_null(), "<=": NOT_NULL, ">": NO_VALUES, ">=": NAN, "=": NAN}[operator]
    below, above = Cut(right.value), Cut(right.value, True)
    match operator:
        case "<":
            return ValueSet((Interval(None, below),))
        case "<=":
            return ValueSet((Interval(None, above),))
        case ">":
            return ValueSet((Interval(above, None),), nan=True)
        case ">=":
            return ValueSet((Interval(below, None),), nan=True)
    return ValueSet((Interval(below, above),))


def _membership(options: list[Literal]) -> tuple[ValueSet, ValueSet]:
    known = [option.value for option in options if option.value is not None]
    nan = any(option.nan for option in options)
    matching = ValueSet.points(known, nan=nan)
    if any(option.value is None and not option.nan for option in options):
        return matching, NO_VALUES
    return matching, (~matching).without_null()


def _prefix(right: Literal) -> tuple[ValueSet, ValueSet]:
    if right.value is None:
        return NO_VALUES, NO_VALUES
    if not isinstance(right.value, str):
        raise NotUnderstood("startswith of something else than text")
    after = _after_prefix(right.value)
    matching = ValueSet((Interval(Cut(right.value), None if after is None else Cut(after)),))
    return matching, (~matching).without_null()


def _after_prefix(prefix: str) -> str | None:
    """The least text above all texts with this prefix, if there is one."""
    stem = prefix.rstrip("\U0010ffff")
    if not stem:
        return None
    following = ord(stem[-1]) + 1
    return stem[:-1] + chr(0xE000 if following == 0xD800 else following)
