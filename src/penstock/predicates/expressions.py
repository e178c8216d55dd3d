"""Reads what Spark compares: a column seen through casts and `year`, and the literals it is compared with."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import isnan
from typing import Any

from penstock.predicates.values import Scalar
from penstock.predicates.zones import Zone, zone
from penstock.schema.columns import Column, find_path
from penstock.schema.types import Type

_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_INTEGERS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_TIME = re.compile(r"time(\(\d\))?")
_COLUMN_TYPES = {
    "boolean": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "uint8": "smallint",
    "uint16": "int",
    "uint32": "bigint",
    "uint64": "decimal(20,0)",
    "float32": "float",
    "float64": "double",
    "varchar": "string",
    "json": "string",
    "uuid": "string",
    "blob": "binary",
    "date": "date",
    "timestamp": "timestamp_ntz",
    "timestamp_s": "timestamp_ntz",
    "timestamp_ms": "timestamp_ntz",
    "timestamp_ns": "timestamp_ntz",
    "timestamptz": "timestamp",
    "time": "time",
}


class NotUnderstood(Exception):  # noqa: N818 - not an error: the filter is left to Spark
    """Raised for a filter, or a part of one, that nothing can be concluded from."""


@dataclass(frozen=True)
class SparkType:
    """A type by Spark's name; integers are also decimals of as many digits."""

    name: str
    digits: int = 0
    scale: int = 0

    @property
    def integer(self) -> bool:
        """Whether its values are whole numbers of a fixed width."""
        return self.name in _INTEGERS

    @property
    def exact(self) -> bool:
        """Whether its values are whole numbers or decimals, which compare by value whatever their type."""
        return self.integer or self.name == "decimal"


def spark_type(text: str) -> SparkType:
    """The type of Spark's `simpleString`; any name is a type, known or not."""
    decimal = _DECIMAL.fullmatch(text)
    if decimal:
        return SparkType("decimal", int(decimal[1]), int(decimal[2]))
    return SparkType("time" if _TIME.fullmatch(text) else text, _INTEGERS.get(text, 0))


def shown_type(type: Type) -> SparkType:
    """The type that Spark sees a DuckLake column as."""
    if type.name == "decimal":
        return SparkType("decimal", type.precision, type.scale)
    if type.name not in _COLUMN_TYPES:
        raise NotUnderstood(f"nothing is known about the order of {type}")
    return spark_type(_COLUMN_TYPES[type.name])


@dataclass(frozen=True)
class Reference:
    """A column, or a field at a path through structs."""

    column: Column
    path: str
    type: SparkType


@dataclass(frozen=True)
class Cast:
    """An expression cast to another type, in a time zone where that matters and is known."""

    type: SparkType
    inner: Expression
    zone: Zone


@dataclass(frozen=True)
class Year:
    """Spark's `year` of a date, which a timestamp is cast to before."""

    inner: Expression
    type: SparkType = SparkType("int", _INTEGERS["int"])


Expression = Reference | Cast | Year


def expression(node: Any, columns: Sequence[Column]) -> Expression:
    """The expression that a filter's JSON describes; anything else raises NotUnderstood."""
    match node:
        case ["column", *path] if path and all(isinstance(name, str) for name in path):
            column = find_path(columns, path)
            if column is None:
                raise NotUnderstood(f"no column {path}")
            return Reference(column, ".".join(path), shown_type(column.type))
        case ["cast", str(type), inner, *zones]:
            return Cast(spark_type(type), expression(inner, columns), _zone(zones))
        case ["year", inner]:
            date = expression(inner, columns)
            if date.type.name == "date":
                return Year(date)
    raise NotUnderstood(f"not an expression: {node!r}")


def _zone(names: Sequence[Any]) -> Zone:
    match names:
        case [str(name)]:
            return zone(name)
    return Zone()


@dataclass(frozen=True)
class Literal:
    """A literal's value: None is NULL; NaN is flagged, since no order of Python's holds it."""

    value: Scalar
    nan: bool = False


def is_literal(node: Any) -> bool:
    """Whether a node of a filter's JSON is a literal."""
    return isinstance(node, list) and len(node) == 3 and node[0] == "literal"


def literal(node: Any, wanted: SparkType) -> Literal:
    """The value of a literal's JSON, which must be of the type that it is compared with."""
    match node:
        case ["literal", str(), None]:
            return Literal(None)
        case ["literal", str(type), value]:
            given = spark_type(type)
            if given.name != wanted.name and not (given.exact and wanted.exact):
                raise NotUnderstood(f"{type} is compared with {wanted.name}")
            found = _value(given, value)
            return Literal(None, nan=True) if isinstance(found, float) and isnan(found) else Literal(found)
    raise NotUnderstood(f"not a literal: {node!r}")


def _value(type: SparkType, value: Any) -> Scalar:
    match type.name, value:
        case "boolean", bool():
            return value
        case (("tinyint" | "smallint" | "int" | "bigint" | "date" | "timestamp" | "timestamp_ntz"), int()):
            return value
        case "time", int():
            return Fraction(value, 1000)
        case "decimal", str():
            return _finite(Decimal(value))
        case "double", str():
            return float(value)
        case "float", str():
            return struct.unpack("f", struct.pack("f", float(value)))[0]
        case "string", str():
            return _exact_text(value)
        case "binary", str():
            return bytes.fromhex(value)
    raise NotUnderstood(f"a literal of {type.name}: {value!r}")


def _finite(value: Decimal) -> Decimal:
    if not value.is_finite():
        raise NotUnderstood(f"a decimal literal {value}")
    return value


def _exact_text(value: str) -> str:
    # Java shows bytes that are not UTF-8 as U+FFFD: the text is no longer the one that Spark compares with.
    if "\ufffd" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise NotUnderstood("text that is not UTF-8")
    return value
