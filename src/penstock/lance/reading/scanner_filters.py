"""Writes what a filter implies as SQL for Lance's scanner: all rows that pass the filter pass the SQL too."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from math import inf, isinf, nextafter

import pyarrow as pa

from penstock.predicates import And, Anything, ColumnIn, Implication, Interval, Nothing, Or
from penstock.predicates.values import Cut, Scalar

_MOST_INTERVALS = 500
_UNITS = {"us": ("Microsecond", 1), "ns": ("Nanosecond", 1000)}


def quoted_path(*path: str) -> str:
    """The name of a column, or of a field of a struct, in the SQL of Lance's scanner."""
    return ".".join("`" + name.replace("`", "``") + "`" for name in path)


def scanner_filter(implication: Implication, columns: Mapping[int, tuple[str, pa.DataType]]) -> str | None:
    """The SQL of an implication, or None for all rows.

    `columns` are those that Lance can filter by, by id: their name in SQL and their type.
    """
    match implication:
        case Anything():
            return None
        case Nothing():
            return "false"
        case And(children):
            tests = [scanner_filter(child, columns) for child in children]
            known = [f"({test})" for test in tests if test is not None]
            return " AND ".join(known) or None
        case Or(children):
            tests = [scanner_filter(child, columns) for child in children]
            return None if None in tests else " OR ".join(f"({test})" for test in tests)
        case ColumnIn(column):
            return _membership(implication, *columns[column.id]) if column.id in columns else None


def _membership(wanted: ColumnIn, name: str, kind: pa.DataType) -> str | None:
    values = wanted.values.coarsened(_MOST_INTERVALS)
    tests = []
    for one in values.intervals:
        test = _within(one, name, kind)
        if test is None:
            return None
        tests.append(test)
    if values.null:
        tests.append(f"{name} IS NULL")
    if values.nan:
        tests.append(f"isnan({name})")
    return " OR ".join(f"({test})" for test in tests)


def _within(one: Interval, name: str, kind: pa.DataType) -> str | None:
    if one.low is None and one.high is None:
        return f"{name} IS NOT NULL"
    bounds = []
    if one.low is not None:
        low = _literal(one.low.value, kind, -inf)
        bounds.append(None if low is None else f"{name} {_low_operator(one.low, kind)} {low}")
    if one.high is not None:
        high = _literal(one.high.value, kind, inf)
        bounds.append(None if high is None else f"{name} {_high_operator(one.high, kind)} {high}")
    return None if None in bounds else " AND ".join(str(bound) for bound in bounds)


def _low_operator(cut: Cut, kind: pa.DataType) -> str:
    return ">" if cut.above and not pa.types.is_floating(kind) else ">="


def _high_operator(cut: Cut, kind: pa.DataType) -> str:
    return "<=" if cut.above or pa.types.is_floating(kind) else "<"


def _literal(value: Scalar, kind: pa.DataType, outward: float) -> str | None:
    """The literal of a bound, or None for types that are left to Spark. Floats are moved outward where they round."""
    types = pa.types
    if types.is_integer(kind):
        return str(int(value)) if Fraction(value).denominator == 1 else None
    if types.is_float32(kind) or types.is_float64(kind):
        return _float(value, outward, "float" if types.is_float32(kind) else "double")
    if types.is_decimal128(kind) and isinstance(value, Decimal | int):
        return f"cast('{Decimal(value):f}' as decimal({kind.precision},{kind.scale}))"
    if types.is_string(kind) and isinstance(value, str) and "\x00" not in value:
        return "'" + value.replace("'", "''") + "'"
    if types.is_binary(kind) and isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if types.is_date32(kind):
        return f"arrow_cast({int(value)}, 'Date32')"
    if types.is_timestamp(kind) and kind.unit in _UNITS:
        return _timestamp(int(value), kind)
    return None


def _float(value: Scalar, outward: float, name: str) -> str:
    near = float(value)
    if isinf(near):
        return f"cast('{near}' as {name})"
    if near == 0:
        near = -0.0 if outward < 0 else 0.0
    elif name == "float":
        near += abs(near) * (2.0**-20 if outward > 0 else -(2.0**-20))
    elif Fraction(near) != Fraction(value):
        near = nextafter(near, outward)
    return f"cast('{near!r}' as {name})"


def _timestamp(micros: int, kind: pa.DataType) -> str | None:
    unit, factor = _UNITS[kind.unit]
    number = micros * factor
    if not -(2**63) <= number < 2**63:
        return None
    zone = "None" if kind.tz is None else f'Some("{kind.tz}")'
    return f"arrow_cast({number}, 'Timestamp({unit}, {zone})')"
