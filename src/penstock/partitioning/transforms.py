"""Partition transforms: from a value to that of its partition, and from a set of values to the partitions to read."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from penstock.errors import UnsupportedError
from penstock.model.types import Order, Type
from penstock.partitioning.buckets import buckets
from penstock.predicates.calendar import DAY, HOUR, date_of
from penstock.predicates.domains import Grid, grid, whole
from penstock.predicates.values import Cut, Interval, Scalar, ValueSet

_BUCKET = re.compile(r"bucket\(\s*(\d+)\s*\)")
_MOST_POINTS = 1000
_INTEGER = Type("int64")


class Transform(ABC):
    """One way to make a partition value of a column's value; NULL always makes NULL."""

    @abstractmethod
    def apply(self, value: Scalar, type: Type) -> Scalar:
        """The partition value of a value that is not NULL. Timestamps are microseconds; timestamp_ns is nanoseconds."""

    @abstractmethod
    def project(self, values: ValueSet, type: Type) -> ValueSet | None:
        """The partition values of the files that can hold one of `values`, or None where that can be any file.

        The values are within the column's type, and the projected ones within that of `result`.
        """

    def result(self, type: Type) -> Type:
        """The type of the partition values of a column of this type."""
        return _INTEGER

    @abstractmethod
    def __str__(self) -> str:
        """The text in `ducklake_partition_column.transform`."""

    def describe(self, column: str) -> str:
        """The transform of a column, as people write it."""
        return f"{self}({column})"


@dataclass(frozen=True)
class Identity(Transform):
    """The value itself."""

    def apply(self, value: Scalar, type: Type) -> Scalar:
        return value

    def project(self, values: ValueSet, type: Type) -> ValueSet | None:
        # The text of a timestamptz depends on its writer's session, and that of a blob is the raw bytes.
        kept = type.name in ("timestamptz", "blob") or type.order is Order.NONE
        return None if kept else values

    def result(self, type: Type) -> Type:
        return type

    def __str__(self) -> str:
        return "identity"

    def describe(self, column: str) -> str:
        return column


@dataclass(frozen=True)
class Bucket(Transform):
    """A hash of the value, modulo the number of buckets."""

    count: int

    def apply(self, value: Scalar, type: Type) -> Scalar:
        return buckets([value], type, self.count)[0]

    def project(self, values: ValueSet, type: Type) -> ValueSet | None:
        # A timestamp_ns is hashed with its nanoseconds, which Spark does not see; NaN has many bit patterns.
        if type.name == "timestamp_ns" or type.order is Order.NONE or values.nan:
            return None
        points = _points(values, type)
        if points is None:
            return None
        return whole(ValueSet.points(set(buckets(points, type, self.count)), null=values.null))

    def __str__(self) -> str:
        return f"bucket({self.count})"

    def describe(self, column: str) -> str:
        return f"bucket({self.count}, {column})"


class Calendar(Transform):
    """A calendar part, in UTC for timestamptz (others may have written theirs in any zone, so those never prune)."""

    def apply(self, value: Scalar, type: Type) -> Scalar:
        return self.part(_micros(value, type))

    def project(self, values: ValueSet, type: Type) -> ValueSet | None:
        if type.order not in (Order.DATE, Order.TIMESTAMP) or type.name == "timestamptz":
            return None
        # The parts of infinity are NULL: a NULL partition can hold more than NULLs.
        return self.parts(ValueSet.of((_in_micros(one, type) for one in values.intervals), null=True))

    @abstractmethod
    def part(self, micros: int) -> int: ...

    @abstractmethod
    def parts(self, micros: ValueSet) -> ValueSet | None:
        """The parts that a set of microseconds since 1970 covers, or None for all."""

    def __str__(self) -> str:
        return type(self).__name__.lower()


@dataclass(frozen=True)
class Year(Calendar):
    """The year; 0 is 1 BC."""

    def part(self, micros: int) -> int:
        return date_of(micros // DAY)[0]

    def parts(self, micros: ValueSet) -> ValueSet | None:
        return ValueSet.of((_mapped(one, self.part) for one in micros.intervals), null=micros.null)


@dataclass(frozen=True)
class Month(Calendar):
    """The month of the year, 1 to 12."""

    def part(self, micros: int) -> int:
        return date_of(micros // DAY)[1]

    def parts(self, micros: ValueSet) -> ValueSet | None:
        return _cyclic(micros, _month_number, 12, lambda number: number % 12 + 1)


@dataclass(frozen=True)
class Day(Calendar):
    """The day of the month, 1 to 31."""

    def part(self, micros: int) -> int:
        return date_of(micros // DAY)[2]

    def parts(self, micros: ValueSet) -> ValueSet | None:
        return _cyclic(micros, lambda value: value // DAY, 31, lambda days: date_of(days)[2])


@dataclass(frozen=True)
class Hour(Calendar):
    """The hour of the day, 0 to 23."""

    def part(self, micros: int) -> int:
        return micros // HOUR % 24

    def parts(self, micros: ValueSet) -> ValueSet | None:
        return _cyclic(micros, lambda value: value // HOUR, 24, lambda hours: hours % 24)


@dataclass(frozen=True)
class Unknown(Transform):
    """A transform that this version does not know: files are read whatever their value, and none can be written."""

    text: str

    def apply(self, value: Scalar, type: Type) -> Scalar:
        raise UnsupportedError(f"partition transform {self.text!r} is not known to this version of Penstock")

    def project(self, values: ValueSet, type: Type) -> ValueSet | None:
        return None

    def __str__(self) -> str:
        return self.text


def parse_transform(text: str) -> Transform:
    """The transform of a `ducklake_partition_column.transform`."""
    name = text.strip().lower()
    bucket = _BUCKET.fullmatch(name)
    if bucket and int(bucket[1]) > 0:
        return Bucket(int(bucket[1]))
    plain: dict[str, Transform] = {
        "identity": Identity(),
        "year": Year(),
        "month": Month(),
        "day": Day(),
        "hour": Hour(),
    }
    return plain.get(name, Unknown(text))


def _micros(value: Scalar, type: Type) -> int:
    if type.order is Order.DATE:
        return int(value) * DAY
    return _toward_zero(int(value)) if type.name == "timestamp_ns" else int(value)


def _toward_zero(nanos: int) -> int:
    """The microsecond whose parts DuckDB takes: before 1970 that is the next one, where Spark shows the last one."""
    return nanos // 1000 if nanos >= 0 else -(-nanos // 1000)


def _in_micros(one: Interval, type: Type) -> Interval:
    """The microseconds that a row in an interval of its column can have its parts of."""
    unit = DAY if type.order is Order.DATE else 1
    later = 1 if type.name == "timestamp_ns" else 0
    low = None if one.low is None else Cut(one.low.value * unit)
    high = None if one.high is None else Cut(one.high.value * unit + later)
    return Interval(low, high)


def _points(values: ValueSet, type: Type) -> list[Scalar] | None:
    """The values of a set one by one, or None where they are too many or cannot be counted."""
    steps = grid(type)
    found: list[Scalar] = []
    for one in values.intervals:
        if one.low is None or one.high is None:
            return None
        if steps is not None:
            first, end = steps.step(one.low.value), steps.step(one.high.value)
            found.extend(_step_values(steps, first, min(end, first + _MOST_POINTS + 1)))
        elif one == Interval(Cut(one.low.value), Cut(one.low.value, True)):
            found.append(one.low.value)
        else:
            return None
        if len(found) > _MOST_POINTS:
            return None
    return found


def _step_values(steps: Grid, first: int, end: int) -> Iterator[Scalar]:
    return map(steps.value, range(first, end))


def _mapped(one: Interval, part: Callable[[int], int]) -> Interval:
    """The parts of half-open microseconds, under a part that never falls."""
    low = None if one.low is None else Cut(part(one.low.value))
    high = None if one.high is None else Cut(part(one.high.value - 1) + 1)
    return Interval(low, high)


def _cyclic(micros: ValueSet, number: Callable[[int], int], length: int, part: Callable[[int], int]) -> ValueSet | None:
    """The parts of a set whose every interval is shorter than the `length` after which the parts repeat."""
    found: set[int] = set()
    for one in micros.intervals:
        low, high = _mapped(one, number)
        if low is None or high is None or high.value - low.value >= length:
            return None
        found.update(part(unit) for unit in range(low.value, high.value))
    return whole(ValueSet.points(found, null=micros.null))


def _month_number(micros: int) -> int:
    year, month, _ = date_of(micros // DAY)
    return year * 12 + month - 1
