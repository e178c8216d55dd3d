"""The spans of time that years, months, days and hours make together."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.partitioning import Day, Hour, Month, Transform, Year
from penstock.predicates.calendar import DAY, HOUR, date_of, days_of
from penstock.predicates.values import ValueSet, interval
from penstock.schema.types import Order, Type

CALENDAR_PARTS: tuple[type[Transform], ...] = (Year, Month, Day, Hour)  # the coarsest first
CALENDAR_RANGES: dict[type[Transform], tuple[int, int]] = {Month: (1, 12), Day: (1, 31), Hour: (0, 23)}


def calendar_span(parts: Sequence[int]) -> tuple[int, int]:
    """The microseconds from and to which a year lasts, or a month of it, a day or an hour.

    Raises ValueError where there is no such date or hour.
    """
    match parts:
        case [year]:
            return days_of(year) * DAY, days_of(year + 1) * DAY
        case [year, month]:
            after = days_of(year + month // 12, month % 12 + 1)
            return _days_of_date(year, month, 1) * DAY, after * DAY
        case [year, month, day]:
            start = _days_of_date(year, month, day)
            return start * DAY, (start + 1) * DAY
    first, last = CALENDAR_RANGES[Hour]
    if not first <= parts[3] <= last:
        raise ValueError(f"no hour {parts[3]}")
    start = _days_of_date(parts[0], parts[1], parts[2]) * DAY + parts[3] * HOUR
    return start, start + HOUR


def times_within(wanted: ValueSet, micros: tuple[int, int], type: Type) -> ValueSet:
    """The wanted times of a column that are between two moments, in microseconds."""
    unit = DAY if type.order is Order.DATE else 1
    start, end = micros
    return wanted & ValueSet.of([interval(start // unit, -(-end // unit), open_high=True)])


def holds_infinite_time(values: ValueSet, type: Type) -> bool:
    """Whether a set holds an infinite time, which is no date: its calendar parts are NULL."""
    far = 2**31 - 1 if type.order is Order.DATE else 2**63 - 1
    return far in values or -far in values


def _days_of_date(year: int, month: int, day: int) -> int:
    """The days from 1970 to a date. Raises ValueError where there is no such date."""
    days = days_of(year, month, day) if 1 <= month <= 12 else 0
    if date_of(days) != (year, month, day):
        raise ValueError(f"no date {year}-{month}-{day}")
    return days
