"""Tells planners of files what a predicate on a Spark Connect session says, in the JSON that they read filters in.

A classic session is asked for the filters that Spark makes of a query. Here the predicate is read before Spark has seen
it, with the casts that Spark would put in. What is not sure to mean the same to Spark says nothing: all files stay.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812

from penstock.predicates.calendar import DAY
from penstock.predicates.zones import zone
from penstock.spark.connect.column_trees import tree_of
from penstock.spark.connect.sql_predicates import UNKNOWN, Constant, Tree, days_of, time_of
from penstock.spark.versions import session_time_zone

_TARGET = "target"  # by which statements know the rows of their table
_ANY_ZONE = ""  # of which nothing is known
_JOINTS = ("and", "or", "not")
_COMPARISONS = ("=", "<=>", "<", "<=", ">", ">=")
_LONG_DIGITS, _MOST_DIGITS = 20, 38
_LEAST_LONG, _MOST_LONG = -(2**63), 2**63 - 1
_EXACT_IN_FLOAT, _EXACT_IN_DOUBLE = 2**24, 2**53
Node = Any  # of the JSON
Pair = tuple[Node, Node]  # what is compared, with the casts that Spark puts in


def filter_text(frame: DataFrame, predicate: SparkColumn) -> str:
    """What a predicate of a statement says of the rows of a frame, as filters; `target` may name them."""
    known = _Columns(frame.schema, lambda: session_time_zone(frame.sparkSession), by_name=True)
    return json.dumps([known.filter(tree_of(frame.sparkSession, predicate))])


def later_filter_text(spark: SparkSession, schema: T.StructType, predicate: SparkColumn) -> str:
    """The same of a predicate over rows without a name that is run later, in whichever time zone there is then."""
    return json.dumps([_Columns(schema, lambda: _ANY_ZONE).filter(tree_of(spark, predicate))])


@dataclass(frozen=True)
class _Columns:
    """Finds columns by the names that predicates have for them."""

    schema: T.StructType
    time_zone: Callable[[], str]
    by_name: bool = False  # whether a path may begin with what statements call the rows

    def filter(self, tree: Tree) -> Node:
        match tree:
            case [("and" | "or" | "not") as joint, *children]:
                return [joint, *map(self.filter, children)]
            case ["isnull", [*_] as child] if child[0] in ("name", *_JOINTS, *_COMPARISONS, "in", "isnull"):
                return ["isnull", self.filter(child)]
            case ["name", *path]:
                found = self.find(path)
                return found[0] if found else UNKNOWN
            case Constant("boolean", value):
                return ["literal", "boolean", value]
            case ["in", subject, *options]:
                return self._membership(subject, options)
            case ["startswith", subject, Constant("text", value)]:
                found = self.subject(subject)
                text = found is not None and isinstance(found[1], T.StringType)
                return ["startswith", found[0], ["literal", "string", value]] if found and text else UNKNOWN
            case [str(operator), left, right] if operator in _COMPARISONS:
                return self._comparison(operator, left, right)
        return UNKNOWN

    def _comparison(self, operator: str, left: Tree, right: Tree) -> Node:
        if isinstance(left, Constant):
            found, swapped = self.subject(right), True
            constant = left
        elif isinstance(right, Constant):
            found, swapped = self.subject(left), False
            constant = right
        else:
            return UNKNOWN
        pair = None if found is None else self.pair(*found, constant)
        if pair is None:
            return UNKNOWN
        return [operator, *reversed(pair)] if swapped else [operator, *pair]

    def _membership(self, subject: Tree, options: Sequence[Tree]) -> Node:
        """Options of one type: what they and the column are cast to together, compares them as they are compared."""
        found = self.subject(subject)
        given = [option for option in options if option.kind != "null"]
        if found is None or len({option.kind for option in given}) != 1:
            return UNKNOWN
        if given[0].kind == "decimal" or (given[0].kind == "text" and not isinstance(found[1], T.StringType)):
            return UNKNOWN
        pairs = [self.pair(*found, option) for option in given]
        nulls = [["literal", "void", None]] * (len(given) < len(options))
        if None in pairs:
            return UNKNOWN
        return ["in", pairs[0][0], *(pair[1] for pair in pairs), *nulls]  # type: ignore[index]

    def subject(self, tree: Tree) -> tuple[Node, T.DataType] | None:
        match tree:
            case ["name", *path]:
                return self.find(path)
            case ["year", ["name", *path]]:
                found = self.find(path)
                if found is not None and isinstance(found[1], T.DateType):
                    return ["year", found[0]], T.IntegerType()
                if found is not None and isinstance(found[1], T.TimestampType | T.TimestampNTZType):
                    return ["year", ["cast", "date", found[0], self.time_zone()]], T.IntegerType()
        return None

    def find(self, path: Sequence[str]) -> tuple[Node, T.DataType] | None:
        """A column or field, under its own names, and its type; None where a name could mean two things, or nothing."""
        if self.by_name and path[0].lower() == _TARGET:
            found = self._at(path[1:])  # as Spark does it: a field of a column of that name comes second
            if found is not None:
                return found
        return self._at(path)

    def _at(self, path: Sequence[str]) -> tuple[Node, T.DataType] | None:
        kind: T.DataType = self.schema
        names: list[str] = []
        for name in path:
            fields = kind.fields if isinstance(kind, T.StructType) else []
            found = [field for field in fields if field.name.lower() == name.lower()]
            if len(found) != 1:
                return None
            names.append(found[0].name)
            kind = found[0].dataType
        return (["column", *names], kind) if names else None

    def pair(self, node: Node, kind: T.DataType, constant: Constant) -> Pair | None:
        """A column of a type and a constant as Spark compares them; None where that is not known."""
        if constant.kind == "null":
            return node, ["literal", "void", None]
        match kind:
            case T.IntegralType():
                return _with_whole(node, constant)
            case T.DecimalType():
                return _with_decimal(node, kind, constant)
            case T.FloatType() | T.DoubleType():
                return _with_floating(node, kind, constant)
            case T.StringType() if kind.isUTF8BinaryCollation() and constant.kind == "text":
                return node, ["literal", "string", constant.value]
            case T.BooleanType() if constant.kind == "boolean":
                return node, ["literal", "boolean", constant.value]
            case T.DateType():
                return self._with_date(node, constant)
            case T.TimestampNTZType():
                return self._with_local(node, constant)
            case T.TimestampType():
                return self._with_instant(node, constant)
        return None

    def _with_date(self, node: Node, constant: Constant) -> Pair | None:
        days = days_of(constant.value) if constant.kind == "text" else None
        if days is not None or constant.kind == "date":
            return node, ["literal", "date", constant.value if days is None else days]
        if constant.kind == "timestamp_ntz":
            return ["cast", "timestamp_ntz", node], ["literal", "timestamp_ntz", constant.value]
        if constant.kind == "timestamp":
            return ["cast", "timestamp", node, self.time_zone()], ["literal", "timestamp", constant.value]
        return None

    def _with_local(self, node: Node, constant: Constant) -> Pair | None:
        if constant.kind == "text":
            constant = time_of(constant.value) or constant
            if constant.kind != "local":
                return None
        elif constant.kind == "local" and zone(self.time_zone()).offset is None:
            return None  # an instant to Spark, or a local time: near a change of clocks, that is not the same
        if constant.kind in ("local", "timestamp_ntz"):
            return node, ["literal", "timestamp_ntz", constant.value]
        if constant.kind == "date":
            return node, ["literal", "timestamp_ntz", constant.value * DAY]
        if constant.kind == "timestamp":
            return ["cast", "timestamp", node, self.time_zone()], ["literal", "timestamp", constant.value]
        return None

    def _with_instant(self, node: Node, constant: Constant) -> Pair | None:
        if constant.kind == "text":
            constant = time_of(constant.value) or constant
        if constant.kind == "timestamp":
            return node, ["literal", "timestamp", constant.value]
        if constant.kind in ("local", "timestamp_ntz", "date"):
            # Local times are compared: the planner allows for hours that there are twice, or not.
            local = constant.value * (DAY if constant.kind == "date" else 1)
            return ["cast", "timestamp_ntz", node, self.time_zone()], ["literal", "timestamp_ntz", local]
        return None


def _with_whole(node: Node, constant: Constant) -> Pair | None:
    match constant.kind:
        case "tinyint" | "smallint" | "int" | "bigint":
            return ["cast", "bigint", node], ["literal", "bigint", constant.value]
        case "decimal" if _LEAST_LONG <= constant.value <= _MOST_LONG:  # others Spark takes to be true of NULL too
            return _in_decimals(node, _LONG_DIGITS, 0, constant.value)
        case "double":
            return ["cast", "double", node], ["literal", "double", repr(constant.value)]
    return None


def _with_decimal(node: Node, kind: T.DecimalType, constant: Constant) -> Pair | None:
    match constant.kind:
        case "tinyint" | "smallint" | "int" | "bigint":
            value = Decimal(constant.value)
            fits = max(kind.precision - kind.scale, _LONG_DIGITS) + kind.scale <= _MOST_DIGITS
            return _in_decimals(node, kind.precision, kind.scale, value) if fits else None
        case "decimal":
            return _in_decimals(node, kind.precision, kind.scale, constant.value)
        case "double":
            return ["cast", "double", node], ["literal", "double", repr(constant.value)]
    return None


def _in_decimals(node: Node, precision: int, scale: int, value: Decimal) -> Pair | None:
    """A comparison in a type that holds both sides whole; None where there is none, and Spark would round."""
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)  # of a literal, which is a number
    behind = max(0, -exponent)
    before = max(len(digits) + exponent, 0)
    if max(precision - scale, before) + max(scale, behind) > _MOST_DIGITS:
        return None
    wide = f"decimal({_MOST_DIGITS},{max(scale, behind)})"
    return ["cast", wide, node], ["literal", wide, format(value, "f")]


def _with_floating(node: Node, kind: T.DataType, constant: Constant) -> Pair | None:
    own = isinstance(kind, T.DoubleType)
    wide = node if own else ["cast", "double", node]
    match constant.kind:
        case "tinyint" | "smallint" | "int" | "bigint" if abs(constant.value) <= (
            _EXACT_IN_DOUBLE if own else _EXACT_IN_FLOAT
        ):
            return wide, ["literal", "double", repr(float(constant.value))]
        case "decimal" | "double" | "float":
            return wide, ["literal", "double", repr(float(constant.value))]
    return None
