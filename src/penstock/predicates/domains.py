"""Says which values a column of a type can hold, and limits sets of values to those."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor, inf

from penstock.predicates.calendar import DAY
from penstock.predicates.values import Cut, Interval, Scalar, ValueSet
from penstock.schema.types import Order, Type

_INTEGER_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_FINITE = ValueSet((Interval(Cut(-inf, True), Cut(inf)),))
_UNSIGNED_BITS = {"uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64}


@dataclass(frozen=True)
class Grid:
    """The values of a type whose values can be counted: whole steps of 10^-scale from `first` to `last`, if bounded."""

    first: int | None = None
    last: int | None = None
    scale: int = 0

    def value(self, step: int) -> Scalar:
        """The value at a step."""
        if not self.scale:
            return step
        return Decimal((int(step < 0), tuple(map(int, str(abs(step)))), -self.scale))

    def step(self, value: Scalar) -> int:
        """The step at a value of the grid, or the next one above any other value."""
        return self.step_above(Cut(value))

    def beside(self, start: int | None, end: int | None) -> bool:
        """Whether all steps from `start` to before `end` are outside of the grid."""
        too_high = start is not None and self.last is not None and start > self.last
        too_low = end is not None and self.first is not None and end <= self.first
        return too_high or too_low

    def low(self, start: int | None) -> Cut | None:
        """The cut below a first step; none where every step of the grid is above it."""
        if start is None or (self.first is not None and start <= self.first):
            return None
        return Cut(self.value(start))

    def high(self, end: int | None) -> Cut | None:
        """The cut below the step after a last one; none where every step of the grid is below it."""
        if end is None or (self.last is not None and end > self.last):
            return None
        return Cut(self.value(end))

    def step_above(self, cut: Cut) -> int:
        """The first step above a cut."""
        scaled: Fraction = Fraction(cut.value) * 10**self.scale
        return floor(scaled) + 1 if cut.above else ceil(scaled)


def grid(type: Type) -> Grid | None:
    """The grid of a type, or None where between two values there is (nearly) always a third: text, bytes, floats."""
    if type.name in _INTEGER_BITS:
        half = 1 << (_INTEGER_BITS[type.name] - 1)
        return Grid(-half, half - 1)
    if type.name in _UNSIGNED_BITS:
        return Grid(0, (1 << _UNSIGNED_BITS[type.name]) - 1)
    match type.order:
        case Order.BOOLEAN:
            return Grid(0, 1)
        case Order.DECIMAL:
            return Grid(1 - 10**type.precision, 10**type.precision - 1, type.scale)
        case Order.TIME:
            return Grid(0, DAY)
        case Order.DATE | Order.TIMESTAMP:
            return Grid()
    return None


def within(values: ValueSet, type: Type) -> ValueSet:
    """The part of a set that a column of this type can hold. On a grid every bound becomes a cut just below a step."""
    steps = grid(type)
    intervals = values.intervals if steps is None else _on_grid(values.intervals, steps)
    return ValueSet.of(intervals, null=values.null, nan=values.nan and type.order is Order.FLOAT)


def unlimited(values: ValueSet, type: Type) -> bool:
    """Whether a set within a type leaves nothing out."""
    return values.full and values.null and (values.nan or type.order is not Order.FLOAT)


def whole_numbers(values: ValueSet) -> ValueSet:
    """The set limited to whole numbers, each bound a cut just below one."""
    return ValueSet.of(_on_grid(values.intervals, Grid()), null=values.null)


def _on_grid(intervals: tuple[Interval, ...], steps: Grid) -> Iterator[Interval]:
    for low, high in (ValueSet(intervals) & _FINITE).intervals:
        start = None if low is None or low.value == -inf else steps.step_above(low)
        end = None if high is None or high.value == inf else steps.step_above(high)
        if not steps.beside(start, end):
            yield Interval(steps.low(start), steps.high(end))
