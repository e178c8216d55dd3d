"""Defines sets of column values: what a predicate leaves possible, independent of any file or database."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

Scalar = Any  # bool, int, float, Decimal, Fraction, str or bytes; one set holds mutually comparable ones


class Cut(NamedTuple):
    """A place between values: just below `value`, or just above it. Cuts compare as places do."""

    value: Scalar
    above: bool = False


class Interval(NamedTuple):
    """All values from cut `low` to cut `high`; None is no bound. A closed end is a cut outside of its value."""

    low: Cut | None = None
    high: Cut | None = None

    @property
    def empty(self) -> bool:
        return self.low is not None and self.high is not None and self.low >= self.high

    def __contains__(self, value: object) -> bool:
        return (self.low is None or Cut(value, True) > self.low) and (self.high is None or Cut(value) < self.high)


def interval(low: Scalar = None, high: Scalar = None, *, open_low: bool = False, open_high: bool = False) -> Interval:
    """An interval by its end values, closed unless said otherwise; None is no bound."""
    return Interval(
        None if low is None else Cut(low, open_low),
        None if high is None else Cut(high, not open_high),
    )


@dataclass(frozen=True)
class ValueSet:
    """Sorted disjoint intervals, and whether NULL and NaN belong too. Intervals never hold NULL or NaN."""

    intervals: tuple[Interval, ...] = ()
    null: bool = False
    nan: bool = False

    @classmethod
    def of(cls, intervals: Iterable[Interval], *, null: bool = False, nan: bool = False) -> ValueSet:
        """The set of any intervals: sorted, and joined where they touch."""
        return cls(_joined(intervals), null, nan)

    @classmethod
    def points(cls, values: Iterable[Scalar], *, null: bool = False, nan: bool = False) -> ValueSet:
        """The set of single values."""
        return cls.of((interval(value, value) for value in values), null=null, nan=nan)

    @property
    def empty(self) -> bool:
        """Whether nothing belongs, neither NULL nor NaN."""
        return not (self.intervals or self.null or self.nan)

    @property
    def full(self) -> bool:
        """Whether every value but NULL and NaN belongs."""
        return self.intervals == (Interval(),)

    def __contains__(self, value: object) -> bool:
        if value is None:
            return self.null
        if value != value:
            return self.nan
        return any(value in one for one in self.intervals)

    def __or__(self, other: ValueSet) -> ValueSet:
        return ValueSet.of(self.intervals + other.intervals, null=self.null or other.null, nan=self.nan or other.nan)

    def __and__(self, other: ValueSet) -> ValueSet:
        return ValueSet(
            _common(self.intervals, other.intervals), null=self.null and other.null, nan=self.nan and other.nan
        )

    def __invert__(self) -> ValueSet:
        """Every value, NULL and NaN that does not belong."""
        gaps: list[Interval] = []
        low: Cut | None = None
        for one in self.intervals:
            if one.low is not None:
                gaps.append(Interval(low, one.low))
            if one.high is None:
                break
            low = one.high
        else:
            gaps.append(Interval(low, None))
        return ValueSet(tuple(gaps), not self.null, not self.nan)

    def without_null(self) -> ValueSet:
        """The same set, to which NULL does not belong."""
        return replace(self, null=False)

    def coarsened(self, limit: int) -> ValueSet:
        """A set of at most `limit` intervals that covers this one."""
        count = len(self.intervals)
        if count <= limit:
            return self
        edges = [count * part // limit for part in range(limit + 1)]
        spans = (self.intervals[start:end] for start, end in pairwise(edges))
        return replace(self, intervals=tuple(Interval(span[0].low, span[-1].high) for span in spans))


EVERYTHING = ValueSet((Interval(),), null=True, nan=True)
NOT_NULL = ValueSet((Interval(),), null=False, nan=True)
NULL = ValueSet(null=True)
NAN = ValueSet(nan=True)
NO_VALUES = ValueSet()


def _joined(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    found = [one for one in intervals if not one.empty]
    unbounded = [one for one in found if one.low is None]
    ordered = unbounded + sorted((one for one in found if one.low is not None), key=_low)
    joined: list[Interval] = []
    for one in ordered:
        last = joined[-1] if joined else None
        if last is None or not _touch(last, one):
            joined.append(one)
        else:
            joined[-1] = Interval(last.low, _later(last.high, one.high))
    return tuple(joined)


def _low(one: Interval) -> Any:
    return one.low


def _touch(first: Interval, second: Interval) -> bool:
    return first.high is None or second.low is None or second.low <= first.high


def _later(one: Cut | None, other: Cut | None) -> Cut | None:
    return None if one is None or other is None else max(one, other)


def _common(ours: tuple[Interval, ...], theirs: tuple[Interval, ...]) -> tuple[Interval, ...]:
    common: list[Interval] = []
    left = right = 0
    while left < len(ours) and right < len(theirs):
        one, other = ours[left], theirs[right]
        both = _overlap(one, other)
        if not both.empty:
            common.append(both)
        if one.high is not None and (other.high is None or one.high <= other.high):
            left += 1
        else:
            right += 1
    return tuple(common)


def _overlap(one: Interval, other: Interval) -> Interval:
    lows = [cut for cut in (one.low, other.low) if cut is not None]
    highs = [cut for cut in (one.high, other.high) if cut is not None]
    return Interval(max(lows, default=None), min(highs, default=None))
