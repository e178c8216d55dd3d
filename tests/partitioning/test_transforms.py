"""Transforms: their text, their values, and the partitions that a set of values can be in."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import UnsupportedError
from penstock.partitioning import Bucket, Day, Hour, Identity, Month, Transform, Unknown, Year, parse_transform
from penstock.predicates.calendar import DAY, days_of
from penstock.predicates.domains import within
from penstock.predicates.values import ValueSet, interval
from penstock.schema.types import parse_type

TYPES = {name: parse_type(name) for name in ("int64", "date", "timestamp", "timestamp_ns", "timestamptz")}


@pytest.mark.parametrize(
    ("text", "expected", "described"),
    [
        ("identity", Identity(), "x"),
        ("bucket(16)", Bucket(16), "bucket(16, x)"),
        ("year", Year(), "year(x)"),
        ("month", Month(), "month(x)"),
        ("day", Day(), "day(x)"),
        ("hour", Hour(), "hour(x)"),
        ("epoch_day", Unknown("epoch_day"), "epoch_day(x)"),
        ("bucket(0)", Unknown("bucket(0)"), "bucket(0)(x)"),
        ("bucket(2147483648)", Unknown("bucket(2147483648)"), "bucket(2147483648)(x)"),
        ("truncate(3)", Unknown("truncate(3)"), "truncate(3)(x)"),
    ],
)
def test_text(text: str, expected: Transform, described: str) -> None:
    assert parse_transform(text) == expected
    assert str(expected) == text
    assert expected.describe("x") == described


def test_unknown_transforms_keep_files_and_refuse_values() -> None:
    unknown = parse_transform("epoch_day")
    assert unknown.project(ValueSet.points([1]), TYPES["int64"]) is None
    with pytest.raises(UnsupportedError, match="epoch_day"):
        unknown.apply(1, TYPES["date"])


def test_types_without_a_known_hash_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="variant"):
        Bucket(4).apply("1 day", parse_type("variant"))


def test_months_and_days_of_a_short_range() -> None:
    days = interval(days_of(2023, 12, 30), days_of(2024, 1, 2))
    values = within(ValueSet.of([days]), TYPES["date"])
    months, parts = Month().project(values, TYPES["date"]), Day().project(values, TYPES["date"])
    assert months is not None
    assert parts is not None
    assert [month for month in range(14) if month in months] == [1, 12]
    assert [day for day in range(33) if day in parts] == [1, 2, 30, 31]


@settings(deadline=None)
@given(
    st.sampled_from([Year(), Month(), Day(), Hour(), Bucket(8), Identity()]),
    st.sampled_from(sorted(TYPES)),
    st.integers(-(10**9), 10**9),
    st.integers(0, 40 * DAY),
    st.data(),
)
def test_a_value_s_partition_is_always_projected(
    transform: Transform, name: str, start: int, length: int, data: st.DataObject
) -> None:
    type = TYPES[name]
    if name in ("int64", "date"):
        length //= DAY
    elif data.draw(st.booleans()):
        length %= 300
    values = within(ValueSet.of([interval(start, start + length)]), type)
    projected = transform.project(values, type)
    if projected is None or (name == "int64" and not isinstance(transform, Bucket | Identity)):
        return
    value = data.draw(st.integers(start, start + length))
    stored = value * 1000 + data.draw(st.integers(0, 999)) if name == "timestamp_ns" else value
    partition = transform.apply(stored, type)
    assert (partition // 1000 if name == "timestamp_ns" and isinstance(transform, Identity) else partition) in projected


def test_far_ranges_project_to_every_part() -> None:
    always = within(ValueSet.of([interval(0, None)]), TYPES["timestamp"])
    assert Year().project(always, TYPES["timestamp"]) is not None
    for transform in (Month(), Day(), Hour()):
        assert transform.project(always, TYPES["timestamp"]) is None
