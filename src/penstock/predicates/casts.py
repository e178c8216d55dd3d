"""Finds the values of a column that a cast can turn into a value of a given set."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import isinf

from penstock.predicates.calendar import DAY, days_of
from penstock.predicates.domains import whole_numbers
from penstock.predicates.expressions import Cast, Expression, NotUnderstood, Reference, SparkType, Year
from penstock.predicates.values import Cut, Interval, Scalar, ValueSet
from penstock.predicates.zones import Zone

_EXACT_UP_TO = {"float": 2**24, "double": 2**53}
_ROUNDING = {"float": Fraction(1, 2**21), "double": Fraction(1, 2**50)}  # a few times the real rounding
Span = Callable[[Scalar], tuple[Scalar, Scalar]]  # the least and the greatest source of a value


def column_under(expression: Expression, values: ValueSet) -> tuple[Reference, ValueSet]:
    """Find the column under an expression, and all of its values for which the expression can be in `values`.

    Only casts that keep order and NULL are seen through; where one rounds, the set is widened.
    """
    match expression:
        case Reference():
            return expression, values
        case Cast(type, inner, zone):
            return column_under(inner, _before_cast(inner.type, type, values, zone))
        case Year(inner):
            return column_under(inner, _scaled(whole_numbers(values), days_of))


def _before_cast(source: SparkType, target: SparkType, values: ValueSet, zone: Zone) -> ValueSet:
    if source == target or _widens(source, target):
        return values
    if source.exact and target.name in _ROUNDING:
        exact = _EXACT_UP_TO[target.name] if source.integer else 0
        return _spread(values, lambda value: _unrounded(value, exact, _ROUNDING[target.name]))
    match source.name, target.name:
        case "date", "timestamp_ntz":
            return _scaled(values, lambda micros: Fraction(micros, DAY))
        case "timestamp_ntz", "date":
            return _scaled(whole_numbers(values), lambda days: days * DAY)
        case "timestamp_ntz", "timestamp":
            return _spread(values, zone.local)
        case "timestamp", "timestamp_ntz":
            return _spread(values, zone.utc)
        case "date", "timestamp":
            return _scaled(_spread(values, zone.local), lambda micros: Fraction(micros, DAY))
        case "timestamp", "date":
            return _spread(_scaled(whole_numbers(values), lambda days: days * DAY), zone.utc)
    raise NotUnderstood(f"a cast from {source.name} to {target.name}")


def _widens(source: SparkType, target: SparkType) -> bool:
    if source.integer and target.integer:
        return source.digits <= target.digits
    if source.exact and target.name == "decimal":
        return source.scale <= target.scale and source.digits - source.scale <= target.digits - target.scale
    return source.name == "float" and target.name == "double"


def _unrounded(value: Scalar, exact_up_to: int, rounding: Fraction) -> tuple[Scalar, Scalar]:
    if isinf(value) or abs(value) < exact_up_to:
        return value, value
    slack = abs(Fraction(value)) * rounding
    return Fraction(value) - slack, Fraction(value) + slack


def _scaled(values: ValueSet, convert: Callable[[Scalar], Scalar]) -> ValueSet:
    """The set under an exact and increasing conversion of its bounds."""
    return _spread(values, lambda value: (convert(value),) * 2)


def _spread(values: ValueSet, span: Span) -> ValueSet:
    """The set with its bounds moved apart; a bound that moved is closed."""
    return ValueSet.of(
        (Interval(_lowered(low, span), _raised(high, span)) for low, high in values.intervals), null=values.null
    )


def _lowered(cut: Cut | None, span: Span) -> Cut | None:
    if cut is None:
        return None
    least, greatest = span(cut.value)
    return Cut(least, cut.above and least == greatest)


def _raised(cut: Cut | None, span: Span) -> Cut | None:
    if cut is None:
        return None
    least, greatest = span(cut.value)
    return Cut(greatest, cut.above or least != greatest)
