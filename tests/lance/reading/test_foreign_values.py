"""Leaves of writers that read the draft otherwise: whatever they mean by a name, no row of theirs is left out."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.lance.reading.foreign_values import may_hold, may_hold_times, spells_null
from penstock.partitioning import Bucket, Calendar, Day, Hash, Hour, Identity, Month, Truncate, Year
from penstock.predicates.calendar import DAY, HOUR, date_of, days_of
from penstock.predicates.domains import within
from penstock.predicates.values import EVERYTHING, NULL, ValueSet, interval
from penstock.schema.types import Type

INT, TEXT, DECIMAL, TIMESTAMP, DATE = (
    Type("int64"),
    Type("varchar"),
    Type("decimal", 10, 2),
    Type("timestamp"),
    Type("date"),
)
PARTS: tuple[Calendar, ...] = (Year(), Month(), Day(), Hour())
Name = Callable[[Any], str]


def around(value: Any, values: st.SearchStrategy[Any]) -> st.SearchStrategy[ValueSet]:
    """Sets that hold a value: alone, or from it to another."""
    alone = st.just(ValueSet.points([value]))
    return alone | values.map(lambda other: ValueSet.of([interval(min(value, other), max(value, other))]))


# Times: each part counted from 1970 or taken from the calendar, in any mixture


def calendar_part(part: Calendar, micros: int) -> str:
    return f"{part.part(micros):02}"


def since_1970(part: Calendar, micros: int) -> str:
    year, month, _ = date_of(micros // DAY)
    counts = [year - 1970, (year - 1970) * 12 + month - 1, micros // DAY, micros // HOUR]
    return str(counts[PARTS.index(part)])


MOMENTS = st.integers(-days_of(2200) * DAY, days_of(2200) * DAY)


@given(st.lists(st.tuples(st.sampled_from(PARTS), st.booleans()), min_size=1, max_size=4), MOMENTS, st.data())
def test_times_of_any_reading(parts: list[tuple[Calendar, bool]], micros: int, data: st.DataObject) -> None:
    names = [(part, (since_1970 if since else calendar_part)(part, micros)) for part, since in parts]
    assert may_hold_times(names, TIMESTAMP, within(data.draw(around(micros, MOMENTS)), TIMESTAMP))
    day = micros // DAY
    dates = data.draw(around(day, MOMENTS.map(lambda other: other // DAY)))
    assert may_hold_times(names, DATE, within(dates, DATE))


def year_of(year: int) -> ValueSet:
    return within(ValueSet.of([interval(days_of(year) * DAY, days_of(year + 1) * DAY - 1)]), TIMESTAMP)


def test_times_are_left_out_where_all_readings_agree() -> None:
    assert [year for year in (55, 1970, 2025, 3995) if may_hold_times([(Year(), "55")], TIMESTAMP, year_of(year))] == [
        55,
        2025,
    ]
    assert [
        year for year in (55, 2025, 2026, 3995) if may_hold_times([(Year(), "2025")], TIMESTAMP, year_of(year))
    ] == [
        2025,
        3995,
    ]
    december = [(Year(), "55"), (Month(), "671")]  # both from 1970
    assert may_hold_times(december, TIMESTAMP, within(ValueSet.points([days_of(2025, 12, 31) * DAY]), TIMESTAMP))
    assert not may_hold_times(december, TIMESTAMP, within(ValueSet.points([days_of(2025, 11, 30) * DAY]), TIMESTAMP))
    assert may_hold_times(december, TIMESTAMP, NULL)  # the leaf may lack the column
    for unreadable in ("", "null", "2025-12", "x"):
        assert may_hold_times([(Year(), unreadable), (Month(), "3")], TIMESTAMP, year_of(1))
    assert may_hold_times([(Year(), "2025"), (Month(), "02"), (Day(), "30")], TIMESTAMP, year_of(1))  # no such date
    assert not may_hold_times([(Year(), "NULL")], TIMESTAMP, year_of(2025))


# Truncated numbers and texts


def down(value: int, width: int) -> int:
    return value // width * width


def to_zero(value: int, width: int) -> int:
    return down(value, width) if value >= 0 else -down(-value, width)


NUMBERS = st.integers(-3000, 3000)
WIDTHS = st.sampled_from([1, 3, 10, 100])


@given(NUMBERS, WIDTHS, st.sampled_from([down, to_zero]), st.data())
def test_truncated_integers_of_any_reading(value: int, width: int, cut: Any, data: st.DataObject) -> None:
    wanted = data.draw(around(value, NUMBERS))
    assert may_hold(Truncate(width), str(cut(value, width)), INT, wanted)


@given(NUMBERS, WIDTHS, st.sampled_from([down, to_zero]), st.sampled_from([1, 10, 100]), st.data())
def test_truncated_decimals_of_any_reading(value: int, width: int, cut: Any, unit: int, data: st.DataObject) -> None:
    """The unit is that of the width in hundredths: the last digit, the one before, or whole numbers."""

    def decimal(hundredths: int) -> Decimal:
        return Decimal(hundredths).scaleb(-2)

    wanted = data.draw(around(decimal(value), NUMBERS.map(decimal)))
    assert may_hold(Truncate(width), str(decimal(cut(value, width * unit))), DECIMAL, wanted)


def utf16_prefix(text: str, width: int, half: str) -> str:
    return text.encode("utf-16-le")[: 2 * width].decode("utf-16-le", errors=half)


TEXTS = st.text("a?é€😀\ufffd%2F +\U0010ffff\ud7ff", max_size=6)


@given(
    TEXTS,
    st.integers(1, 4),
    st.sampled_from([None, "replace", "ignore"]),
    st.sampled_from([str, quote, quote_plus]),
    st.data(),
)
@example("😀😀", 3, "replace", str, None)
@example(" 😀😀😀", 4, "ignore", str, None)
@example("\U0010ffff\U0010ffff", 3, "ignore", str, None)
def test_truncated_texts_of_any_reading(text: str, width: int, half: str | None, spelled: Any, data: Any) -> None:
    name = spelled(text[:width] if half is None else utf16_prefix(text, width, half))
    wanted = ValueSet.points([text]) if data is None else data.draw(around(text, TEXTS))
    assert may_hold(Truncate(width), name, TEXT, wanted)


@pytest.mark.parametrize(
    ("width", "name", "held", "left_out"),
    [
        (3, "abc", ["abc", "abcz", "abc\U0010ffff"], ["ab", "abd", "abb\U0010ffff"]),
        (3, "ab", ["ab", "ab😀x", "ab\U0010ffff"], ["abc", "ab\uffff", "a", "ac", "b"]),
        (4, "ab", ["ab"], ["ab😀"]),
        (2, "a%2F", ["a/", "a/b"], ["a%2F", "a0"]),
        (4, "a%2F", ["a/", "a%2F", "a%2Fx"], ["a/b", "a%2E"]),
        (2, "😀", ["😀", "😀x"], ["😁"]),
    ],
)
def test_truncated_texts_are_left_out(width: int, name: str, held: list[str], left_out: list[str]) -> None:
    wanted = [ValueSet.points([text]) for text in held + left_out]
    assert [may_hold(Truncate(width), name, TEXT, one) for one in wanted] == [True] * len(held) + [False] * len(
        left_out
    )


@pytest.mark.parametrize(
    ("width", "type", "name", "held", "left_out"),
    [
        (10, INT, "0", [-9, 0, 9], [-10, 10]),
        (10, INT, "-10", [-19, -10, -1], [-20, 0]),
        (10, INT, "10", [10, 19], [9, 20]),
        (10, INT, "7", [0, 7, 1000], []),  # no multiple: nothing is known
        (10, DECIMAL, "10", [Decimal("10"), Decimal("19.99")], [Decimal("9.99"), Decimal("20")]),
        (10, DECIMAL, "1.30", [Decimal("1.30"), Decimal("1.39")], [Decimal("1.29"), Decimal("1.40")]),
        (10, DECIMAL, "1.35", [Decimal("1.35"), Decimal("900")], []),
    ],
)
def test_truncated_numbers_are_left_out(
    width: int, type: Type, name: str, held: list[Any], left_out: list[Any]
) -> None:
    wanted = [ValueSet.points([number]) for number in held + left_out]
    found = [may_hold(Truncate(width), name, type, one) for one in wanted]
    assert found == [True] * len(held) + [False] * len(left_out)


# Values as they are, NULL, and hashes


@pytest.mark.parametrize(
    "name", ["__HIVE_DEFAULT_PARTITION__", "", "null", "NULL", "None", "<nil>", r"\N", "%4eull", "__NULL__"]
)
def test_every_spelling_of_null(name: str) -> None:
    assert spells_null(name)
    assert may_hold(Identity(), name, TEXT, NULL)
    assert may_hold(Identity(), name, TEXT, ValueSet.points([name]))  # it may be just that text
    assert not may_hold(Identity(), name, TEXT, ValueSet.points(["US"]))
    assert may_hold(Identity(), name, INT, NULL)


def test_values_as_they_are() -> None:
    for text in ("a/b", "a%2Fb"):
        assert may_hold(Identity(), "a%2Fb", TEXT, ValueSet.points([text]))
    assert may_hold(Identity(), "New+York", TEXT, ValueSet.points(["New York"]))
    assert not may_hold(Identity(), "a%2Fb", TEXT, ValueSet.points(["a"]))
    assert may_hold(Identity(), "US", TEXT, NULL)  # the leaf may lack the column
    assert may_hold(Identity(), "%2D5", INT, ValueSet.points([-5]))
    assert not may_hold(Identity(), "%2D5", INT, ValueSet.points([5]))
    assert may_hold(Identity(), "five", INT, ValueSet.points([5]))
    assert may_hold(Identity(), "nan", Type("float64"), ValueSet(nan=True))


def test_hashes_of_others_tell_nothing() -> None:
    for transform in (Bucket(4), Hash()):
        assert may_hold(transform, "3", INT, ValueSet.points([1]))
        assert may_hold(transform, "3", INT, NULL)
    assert may_hold(Hash(), "0a1b2c3d", TEXT, EVERYTHING)
