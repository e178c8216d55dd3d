"""Maps sets of values to sets of partition values: the arithmetic that the transforms' projections share."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from penstock.predicates.calendar import DAY, date_of
from penstock.predicates.domains import Grid, grid, whole_numbers
from penstock.predicates.values import Cut, Interval, Scalar, ValueSet
from penstock.schema.types import Order, Type

MOST_POINTS = 1000


def in_micros(one: Interval, type: Type) -> Interval:
    """The interval as microseconds of which a row's calendar parts are taken."""
    unit = DAY if type.order is Order.DATE else 1
    later = 1 if type.name == "timestamp_ns" else 0
    low = None if one.low is None else Cut(one.low.value * unit)
    high = None if one.high is None else Cut(one.high.value * unit + later)
    return Interval(low, high)


def points(values: ValueSet, type: Type) -> list[Scalar] | None:
    """The values of a set one by one, or None where they are too many or cannot be counted."""
    steps = grid(type)
    found: list[Scalar] = []
    for one in values.intervals:
        if one.low is None or one.high is None:
            return None
        if steps is not None:
            first, end = steps.step(one.low.value), steps.step(one.high.value)
            found.extend(_step_values(steps, first, min(end, first + MOST_POINTS + 1)))
        elif one == Interval(Cut(one.low.value), Cut(one.low.value, True)):
            found.append(one.low.value)
        else:
            return None
        if len(found) > MOST_POINTS:
            return None
    return found


def _step_values(steps: Grid, first: int, end: int) -> Iterator[Scalar]:
    return map(steps.value, range(first, end))


def monotone(one: Interval, part: Callable[[int], int]) -> Interval:
    """The parts of half-open microseconds, for a part that never falls as time goes on."""
    low = None if one.low is None else Cut(part(one.low.value))
    high = None if one.high is None else Cut(part(one.high.value - 1) + 1)
    return Interval(low, high)


def prefixes(one: Interval, width: int) -> Interval:
    """The first characters of the texts in an interval. A bound that is not longer than these bounds them as well."""
    low, high = one
    if low is not None and len(low.value) >= width:
        low = Cut(low.value[:width])
    if high is not None and len(high.value) > width:
        high = Cut(high.value[:width], True)
    return Interval(low, high)


def multiples(one: Interval, steps: Grid, width: int) -> Interval:
    """The multiples of `width` steps that the numbers in an interval are truncated to.

    Negative ones may have gone down or, by another writer, towards zero.
    """
    low = None if one.low is None else steps.step_above(one.low) // width * width
    high = None if one.high is None else quotient(steps.step_above(one.high) - 1, width) * width + 1
    return Interval(
        None if low is None else Cut(steps.value(low)),
        None if high is None else Cut(steps.value(high)),
    )


def cyclic(micros: ValueSet, number: Callable[[int], int], length: int, part: Callable[[int], int]) -> ValueSet | None:
    """The parts of a set whose every interval is shorter than the `length` after which the parts repeat."""
    found: set[int] = set()
    for one in micros.intervals:
        low, high = monotone(one, number)
        if low is None or high is None or high.value - low.value >= length:
            return None
        found.update(part(unit) for unit in range(low.value, high.value))
    return whole_numbers(ValueSet.points(found, null=micros.null))


def month_number(micros: int) -> int:
    """The month of a time in microseconds since 1970, counted from the year 0."""
    year, month, _ = date_of(micros // DAY)
    return year * 12 + month - 1


def quotient(number: int, unit: int) -> int:
    """Whole units, cut towards zero."""
    return number // unit if number >= 0 else -(-number // unit)
