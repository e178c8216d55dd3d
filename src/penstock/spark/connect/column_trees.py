"""Reads the columns of a Spark Connect session, in the messages that it sends of them, as trees of predicates."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import SparkSession

from penstock.spark.connect.sessions import client_of
from penstock.spark.connect.sql_predicates import UNKNOWN, Constant, Tree, compared, read_predicate

_COMPARISONS = ("=", "==", "<=>", "<", "<=", ">", ">=", "!=", "<>")
_CONSTANTS = {
    "boolean": "boolean", "byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "float": "float",
    "double": "double", "string": "text", "date": "date", "timestamp": "timestamp", "timestamp_ntz": "timestamp_ntz",
}  # fmt: skip
_DEEPEST = 50
_PART = re.compile(r"`(?:[^`]|``)+`|[^`.]+")
_PATH = re.compile(rf"(?:{_PART.pattern})(?:\.(?:{_PART.pattern}))*")


def tree_of(spark: SparkSession, column: SparkColumn) -> Tree:
    """The tree of a column that is a predicate."""
    given: Any = column
    return _tree(given.to_plan(client_of(spark)), 0)


def _tree(message: Any, depth: int) -> Tree:
    if depth > _DEEPEST:
        return UNKNOWN
    match message.WhichOneof("expr_type"):
        case "expression_string":
            return read_predicate(message.expression_string.expression)
        case "unresolved_attribute":
            return _name(message.unresolved_attribute.unparsed_identifier)
        case "literal":
            return _constant(message.literal)
        case "alias":
            return _tree(message.alias.expr, depth + 1)
        case "unresolved_function" if not message.unresolved_function.is_distinct:
            call = message.unresolved_function
            return _call(call.function_name.lower(), [_tree(each, depth + 1) for each in call.arguments])
    return UNKNOWN


def _name(text: str) -> Tree:
    """A column by its name, as Spark splits it: at dots outside of backticks, where all else is part of the name."""
    if not _PATH.fullmatch(text):
        return UNKNOWN
    parts = [match[0] for match in _PART.finditer(text)]
    return ["name", *(part[1:-1].replace("``", "`") if part[0] == "`" else part for part in parts)]


def _constant(literal: Any) -> Tree:
    kind = literal.WhichOneof("literal_type")
    if kind == "null":
        return Constant("null", None)
    if kind == "decimal":
        value = Decimal(literal.decimal.value)
        return Constant("decimal", value) if value.is_finite() else UNKNOWN
    return Constant(_CONSTANTS[kind], getattr(literal, kind)) if kind in _CONSTANTS else UNKNOWN


def _call(name: str, given: list[Tree]) -> Tree:
    match name, given:
        case "and" | "or", [_, _]:
            return [name, *given]
        case "not" | "!", [_]:
            return ["not", *given]
        case "isnull", [_]:
            return ["isnull", *given]
        case "isnotnull", [_]:
            return ["not", ["isnull", *given]]
        case "in", [_, *options] if options and all(isinstance(option, Constant) for option in options):
            return ["in", *given]
        case "startswith", [_, Constant("text", _)]:
            return ["startswith", *given]
        case "year", [["name", *_]]:
            return ["year", *given]
        case _, [left, right] if name in _COMPARISONS:
            return compared(name, left, right)
    return UNKNOWN
