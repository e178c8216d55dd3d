"""Defines the transforms that take the calendar parts of dates, times, timestamps and intervals."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import InvalidError
from penstock.partitioning.arrow import mapped, moments
from penstock.partitioning.projection import cyclic, in_micros, monotone, month_number, quotient
from penstock.partitioning.texts import is_infinite
from penstock.partitioning.transforms import Transform
from penstock.predicates.calendar import DAY, HOUR, date_of
from penstock.predicates.values import Scalar, ValueSet
from penstock.schema.columns import Column
from penstock.schema.types import Order, Type

_MONTHS, _DAYS, _MICROSECONDS = range(3)
_CLOCKS = ("time", "timetz")


class Calendar(Transform):
    """A calendar part, in UTC for timestamptz (others may have written theirs in any zone, so those never prune)."""

    digits: ClassVar[int] = 2  # to which Lance pads a part with zeros
    takes: ClassVar[str] = "dates, timestamps and intervals"
    interval_field: ClassVar[int]  # which of months, days and microseconds the part of an interval is in

    def apply(self, value: Scalar, type: Type) -> Scalar:
        if type.name == "interval":
            return self.interval_part(value[self.interval_field])
        if is_infinite(value, type):
            return None
        return self.part(_micros(value, type))

    def _texts(self, array: pa.Array, type: Type) -> pa.Array:
        if type.name == "interval":
            return mapped(array.flatten()[self.interval_field], lambda number: str(self.interval_part(number)))
        usual = moments(array, type)
        if usual is None:
            return mapped(array, lambda value: _text_or_null(self.apply(value, type)))
        return self.part_array(usual).cast(pa.string())

    def part_array(self, moments: pa.Array) -> pa.Array:
        """The parts of Arrow's dates or timestamps of the years 1 to 9999."""
        return pc.call_function(str(self), [moments])

    def takes_type(self, type: Type) -> bool:
        return type.order in (Order.DATE, Order.TIMESTAMP) or type.name == "interval"

    def check(self, column: Column) -> None:
        super().check(column)
        if not self.takes_type(column.type):
            raise InvalidError(
                f"{self.describe(column.name)}: {column.name} is a {column.type}, and {self} takes {self.takes};"
                f" partition by {column.name} itself or by bucket(16, {column.name})"
            )

    def project(self, values: ValueSet, type: Type) -> ValueSet | None:
        if type.order not in (Order.DATE, Order.TIMESTAMP) or type.name == "timestamptz":
            return None
        # The parts of infinity are NULL: a NULL partition can hold more than NULLs.
        return self.parts(ValueSet.of((in_micros(one, type) for one in values.intervals), null=True))

    @abstractmethod
    def part(self, micros: int) -> int: ...

    @abstractmethod
    def interval_part(self, number: int) -> int:
        """The part of an interval, by its months, days or microseconds; it has their sign."""

    @abstractmethod
    def parts(self, micros: ValueSet) -> ValueSet | None:
        """The parts that a set of microseconds since 1970 covers, or None for all."""

    def __str__(self) -> str:
        return self.suffix


@dataclass(frozen=True)
class Year(Calendar):
    """The year; 0 is 1 BC, but of a timestamptz DuckDB takes the year of its era: 1."""

    suffix = "year"
    digits = 4
    interval_field = _MONTHS

    def apply(self, value: Scalar, type: Type) -> Scalar:
        year = super().apply(value, type)
        return 1 - year if type.name == "timestamptz" and year is not None and year <= 0 else year

    def interval_part(self, number: int) -> int:
        return quotient(number, 12)

    def part(self, micros: int) -> int:
        return date_of(micros // DAY)[0]

    def parts(self, micros: ValueSet) -> ValueSet | None:
        return ValueSet.of((monotone(one, self.part) for one in micros.intervals), null=micros.null)


@dataclass(frozen=True)
class Month(Calendar):
    """The month of the year, 1 to 12."""

    suffix = "month"
    interval_field = _MONTHS

    def interval_part(self, number: int) -> int:
        return number - 12 * quotient(number, 12)

    def part(self, micros: int) -> int:
        return date_of(micros // DAY)[1]

    def parts(self, micros: ValueSet) -> ValueSet | None:
        return cyclic(micros, month_number, 12, lambda number: number % 12 + 1)


@dataclass(frozen=True)
class Day(Calendar):
    """The day of the month, 1 to 31."""

    suffix = "day"
    interval_field = _DAYS

    def interval_part(self, number: int) -> int:
        return number

    def part(self, micros: int) -> int:
        return date_of(micros // DAY)[2]

    def parts(self, micros: ValueSet) -> ValueSet | None:
        return cyclic(micros, lambda value: value // DAY, 31, lambda days: date_of(days)[2])


@dataclass(frozen=True)
class Hour(Calendar):
    """The hour of the day, 0 to 23; of a time also 24."""

    suffix = "hour"
    takes = "dates, times, timestamps and intervals"
    interval_field = _MICROSECONDS

    def takes_type(self, type: Type) -> bool:
        return type.name in _CLOCKS or super().takes_type(type)

    def apply(self, value: Scalar, type: Type) -> Scalar:
        return value // HOUR if type.name in _CLOCKS else super().apply(value, type)

    def interval_part(self, number: int) -> int:
        return quotient(number, HOUR)

    def _texts(self, array: pa.Array, type: Type) -> pa.Array:
        return pc.divide(array, HOUR).cast(pa.string()) if type.name in _CLOCKS else super()._texts(array, type)

    def part_array(self, moments: pa.Array) -> pa.Array:
        return pc.hour(moments.cast(pa.timestamp("s")) if pa.types.is_date(moments.type) else moments)

    def part(self, micros: int) -> int:
        return micros // HOUR % 24

    def parts(self, micros: ValueSet) -> ValueSet | None:
        return cyclic(micros, lambda value: value // HOUR, 24, lambda hours: hours % 24)


def _micros(value: Scalar, type: Type) -> int:
    if type.order is Order.DATE:
        return int(value) * DAY
    # DuckDB cuts nanoseconds towards 1970: before it that is the next microsecond, where Spark shows the last one.
    return quotient(int(value), 1000) if type.name == "timestamp_ns" else int(value)


def _text_or_null(part: int | None) -> str | None:
    return None if part is None else str(part)
