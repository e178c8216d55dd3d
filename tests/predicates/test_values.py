"""Sets of values behave as sets: checked point by point against Python's own comparisons."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.predicates.values import Interval, ValueSet, interval

POINTS = [-1, 0, 0.5, 1, 1.5, 2, 3, 4, 5, None, math.nan]


@st.composite
def value_sets(draw: st.DrawFn) -> ValueSet:
    ends = st.none() | st.integers(0, 4)
    parts = draw(st.lists(st.tuples(ends, ends, st.booleans(), st.booleans()), max_size=5))
    found = [interval(low, high, open_low=left, open_high=right) for low, high, left, right in parts]
    return ValueSet.of(found, null=draw(st.booleans()), nan=draw(st.booleans()))


@settings(deadline=None)
@given(value_sets(), value_sets())
def test_algebra(one: ValueSet, other: ValueSet) -> None:
    for point in POINTS:
        assert (point in (one | other)) == (point in one or point in other)
        assert (point in (one & other)) == (point in one and point in other)
        assert (point in ~one) == (point not in one)
    assert ~~one == one
    assert one | other == other | one
    assert one & one == one


@settings(deadline=None)
@given(value_sets(), st.integers(1, 3))
def test_coarsened_sets_cover(one: ValueSet, limit: int) -> None:
    coarse = one.coarsened(limit)
    assert len(coarse.intervals) <= limit
    assert all(point in coarse for point in POINTS if point in one)


def test_intervals_that_touch_are_one() -> None:
    halves = [interval(0, 1, open_high=True), interval(1, 2)]
    assert ValueSet.of(halves).intervals == (interval(0, 2),)
    assert len(ValueSet.of([interval(0, 1, open_high=True), interval(1, 2, open_low=True)]).intervals) == 2
    assert ValueSet.of([interval(2, 1)]).empty
    assert ValueSet.of([interval(None, 3), interval(2, None)]).intervals == (Interval(),)
