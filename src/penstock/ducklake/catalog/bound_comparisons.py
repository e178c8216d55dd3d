"""Compares a column's bounds, in SQL, with the texts that the catalog keeps as its statistics and partition values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from math import copysign
from typing import Any

from penstock.ducklake.catalog.dialects import GREATEST_REAL, Dialect, form
from penstock.predicates.calendar import DAY, date_text, days_of, time_text, timestamp_text
from penstock.predicates.values import Cut, Interval, Scalar
from penstock.schema.types import Order, Type

# Statistics of a float32 column, which may be float64 by now, are the shortest text that reads as the same float32.
_FLOAT_SLACK = 1e-6
_FLOAT_STEP = 2.0**-149  # between the smallest float32s, whose texts have no more than one right digit
_REAL_SLACK = 1e-12
_BELOW_ALL, _ABOVE_ALL = "/", ":"  # around every text that begins with a digit, but not around the infinite ones


@dataclass(frozen=True)
class Bound:
    """A comparison with one parameter."""

    operator: str
    parameter: Any


@dataclass(frozen=True)
class Comparison:
    """How the values of a type compare in one database.

    Where there is more than one reading of a text, only what holds for all of them is known.
    """

    readings: tuple[Callable[[str], str], ...]
    below: Callable[[Cut], Bound | None]  # holds for values below a cut
    beyond: Callable[[Cut], Bound | None]  # holds for values above a cut
    placeholder: str = "?"
    point: Callable[[Interval], Any] = lambda one: None  # the one value of an interval that `=` finds exactly, or None


def comparison(type: Type, dialect: Dialect) -> Comparison | None:
    """How the texts of a column of this type compare, or None where they do not.

    An old file keeps the statistics of the type that its column had then. They are read soundly as any type that DuckDB
    promotes to, but for JSON: numbers in the order of numbers are not texts in the order of texts.
    """
    if type.name == "json":
        return None
    match type.order:
        case Order.BOOLEAN:
            return _steps(dialect.boolean)
        case Order.INTEGER if type.name == "uint64":
            return _steps(dialect.unsigned, dialect.unsigned_bound)
        case Order.INTEGER:
            return _steps(dialect.integer)
        case Order.DECIMAL:
            return _decimals(type, dialect)
        case Order.FLOAT:
            return _approximate(dialect.real, _FLOAT_SLACK, dialect.real_bound)
        case Order.TEXT:
            return Comparison((dialect.text,), _text_below, _text_beyond, dialect.text_bound, _text_point)
        case Order.BYTES:
            # Files that were added, not written, have the bytes themselves as text.
            readings = (dialect.hexadecimal, dialect.encoded)
            return Comparison(readings, _bytes_below, _bytes_beyond, dialect.text_bound)
        case Order.DATE | Order.TIMESTAMP | Order.TIME:
            return _times(type, dialect)
    return None


def _steps(reading: Callable[[str], str], bound: Callable[[Any], Any] = int, placeholder: str = "?") -> Comparison:
    def point(one: Interval) -> Any:
        alone = one.low is not None and one.high is not None and one.high.value - one.low.value == 1
        return bound(one.low.value) if alone and one.low is not None else None

    return Comparison(
        (reading,),
        lambda cut: Bound("<", bound(cut.value)),
        lambda cut: Bound(">=", bound(cut.value)),
        placeholder,
        point,
    )


def _decimals(type: Type, dialect: Dialect) -> Comparison | None:
    if not dialect.exact_decimals:
        # Half a step lower a bound still parts the same decimals, and also those that a promotion will round.
        return _approximate(dialect.number, _REAL_SLACK, shift=-0.5 * 10.0**-type.scale)
    if dialect.decimal("", type) is None:
        return None
    return Comparison(
        (lambda text: dialect.decimal(text, type) or "NULL",),
        lambda cut: Bound("<", format(Decimal(cut.value), "f")),
        lambda cut: Bound(">=", format(Decimal(cut.value), "f")),
        dialect.decimal_bound(type),
    )


def _approximate(reading: Callable[[str], str], slack: float, placeholder: str = "?", shift: float = 0.0) -> Comparison:
    """Numbers that are known but for a relative error: a bound is moved by as much."""

    def moved(value: Scalar, factor: float) -> float:
        real = _clamped(float(value) + shift)
        return _clamped(real + abs(real) * factor + copysign(_FLOAT_STEP, factor))

    return Comparison(
        (reading,),
        lambda cut: Bound("<", moved(cut.value, -slack)),
        lambda cut: Bound(">", moved(cut.value, slack)),
        placeholder,
    )


def _clamped(value: float) -> float:
    return max(-GREATEST_REAL, min(GREATEST_REAL, value))


def _text_below(low: Cut) -> Bound:
    known = _before_nul(low.value)
    return Bound("<=" if low.above and known == low.value else "<", known)


def _text_beyond(high: Cut) -> Bound:
    known = _before_nul(high.value)
    if known != high.value:
        return Bound(">", known + "\x01")
    return Bound(">" if high.above else ">=", known)


def _text_point(one: Interval) -> Any:
    alone = one.low is not None and one.high == Cut(one.low.value, True) and not one.low.above
    return one.low.value if alone and one.low is not None and "\0" not in one.low.value else None


def _before_nul(text: str) -> str:
    """PostgreSQL takes no NUL in a parameter."""
    return text.split("\0", 1)[0]


def _bytes_below(low: Cut) -> Bound:
    return Bound("<=" if low.above else "<", low.value.hex().upper())


def _bytes_beyond(high: Cut) -> Bound:
    return Bound(">" if high.above else ">=", high.value.hex().upper())


def _times(type: Type, dialect: Dialect) -> Comparison:
    written = form(type)
    text, first, end = _TEXTS[type.order]

    def below(low: Cut) -> Bound | None:
        if low.value <= first:
            return None
        return Bound("<", _ABOVE_ALL if low.value >= end else text(low.value) + written.suffix)

    def beyond(high: Cut) -> Bound | None:
        if high.value >= end:
            return None
        return Bound(">=", _BELOW_ALL if high.value <= first else text(high.value) + written.suffix)

    return Comparison((partial(dialect.timed, form=written),), below, beyond, dialect.text_bound)


# The text of each kind of time, and the values whose text is in the form that takes part.
_TEXTS: dict[Order, tuple[Callable[[int], str], int, int]] = {
    Order.DATE: (date_text, days_of(1), days_of(10_000)),
    Order.TIME: (time_text, 0, DAY + 1),
    Order.TIMESTAMP: (timestamp_text, days_of(1) * DAY, days_of(10_000) * DAY),
}
