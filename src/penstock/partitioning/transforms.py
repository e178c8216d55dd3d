"""Partition transforms: from a value to that of its partition, and from a set of values to the partitions to read."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import InvalidError, UnsupportedError
from penstock.model.columns import Column
from penstock.model.types import Order, Type
from penstock.partitioning.arrow import mapped, moments, stored
from penstock.partitioning.buckets import bucket_array, buckets
from penstock.partitioning.projection import cyclic, in_micros, monotone, month_number, points
from penstock.partitioning.texts import is_infinite, texts
from penstock.predicates.calendar import DAY, HOUR, date_of
from penstock.predicates.domains import whole
from penstock.predicates.values import Scalar, ValueSet

_BUCKET = re.compile(r"bucket\(\s*(\d{1,18})\s*\)")
MOST_BUCKETS = 2**31 - 1
_MOST_SHARED_TEXTS = 100_000
_MONTHS, _DAYS, _MICROSECONDS = range(3)
_CLOCKS = ("time", "timetz")
_NO_TEXT = ("list", "struct", "map", "variant", "geometry")
_INTEGER = Type("int64")


class Transform(ABC):
    """One way to make a partition value of a column's value; NULL always makes NULL."""

    @abstractmethod
    def apply(self, value: Scalar, type: Type) -> Scalar:
        """The partition value of a value that is not NULL. Timestamps are microseconds; timestamp_ns is nanoseconds."""

    def values(self, array: pa.Array | pa.ChunkedArray, type: Type) -> pa.StringArray:
        """The partition values of a column, in Spark's Arrow form, as the catalog's text; NULL stays NULL."""
        self.check(Column(0, "x", type, 0))
        if isinstance(array, pa.ChunkedArray):
            chunks = [self.values(chunk, type) for chunk in array.chunks]
            return pa.concat_arrays(chunks) if chunks else pa.array([], pa.string())
        if pa.types.is_dictionary(array.type):
            return self.values(array.dictionary, type).take(array.indices)
        return self._texts(stored(array, type), type).cast(pa.string())

    @abstractmethod
    def _texts(self, array: pa.Array, type: Type) -> pa.Array:
        """The texts of the partition values of a stored array."""

    def check(self, column: Column) -> None:
        """Refuse a column of a type that this transform does not take."""
        if column.type.name in _NO_TEXT:
            raise UnsupportedError(
                f"{self.describe(column.name)}: {column.name} is a {column.type}, and Penstock writes no table that is"
                " partitioned by one; choose a column of a plain type"
            )

    @abstractmethod
    def directory(self, column: str) -> str:
        """The name of the directories of a column's partitions, if no other field has it."""

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

    def _texts(self, array: pa.Array, type: Type) -> pa.Array:
        return texts(array, type)

    def directory(self, column: str) -> str:
        return column

    def project(self, values: ValueSet, type: Type) -> ValueSet | None:
        # The text of a timestamptz depends on its writer's session, and that of a blob is full of escapes.
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

    def _texts(self, array: pa.Array, type: Type) -> pa.Array:
        found = bucket_array(array, type, self.count)
        if self.count > min(_MOST_SHARED_TEXTS, len(array)):
            return found.cast(pa.string())
        return pa.array(map(str, range(self.count)), pa.string()).take(found)

    def directory(self, column: str) -> str:
        return "bucket"

    def project(self, values: ValueSet, type: Type) -> ValueSet | None:
        # A timestamp_ns is hashed with its nanoseconds, which Spark does not see; NaN has many bit patterns.
        if type.name == "timestamp_ns" or type.order is Order.NONE or values.nan:
            return None
        alone = points(values, type)
        if alone is None:
            return None
        return whole(ValueSet.points(set(buckets(alone, type, self.count)), null=values.null))

    def __str__(self) -> str:
        return f"bucket({self.count})"

    def describe(self, column: str) -> str:
        return f"bucket({self.count}, {column})"


class Calendar(Transform):
    """A calendar part, in UTC for timestamptz (others may have written theirs in any zone, so those never prune)."""

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

    def directory(self, column: str) -> str:
        return str(self)

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
        return type(self).__name__.lower()


@dataclass(frozen=True)
class Year(Calendar):
    """The year; 0 is 1 BC, but of a timestamptz DuckDB takes the year of its era: 1."""

    interval_field = _MONTHS

    def apply(self, value: Scalar, type: Type) -> Scalar:
        year = super().apply(value, type)
        return 1 - year if type.name == "timestamptz" and year is not None and year <= 0 else year

    def interval_part(self, number: int) -> int:
        return _quotient(number, 12)

    def part(self, micros: int) -> int:
        return date_of(micros // DAY)[0]

    def parts(self, micros: ValueSet) -> ValueSet | None:
        return ValueSet.of((monotone(one, self.part) for one in micros.intervals), null=micros.null)


@dataclass(frozen=True)
class Month(Calendar):
    """The month of the year, 1 to 12."""

    interval_field = _MONTHS

    def interval_part(self, number: int) -> int:
        return number - 12 * _quotient(number, 12)

    def part(self, micros: int) -> int:
        return date_of(micros // DAY)[1]

    def parts(self, micros: ValueSet) -> ValueSet | None:
        return cyclic(micros, month_number, 12, lambda number: number % 12 + 1)


@dataclass(frozen=True)
class Day(Calendar):
    """The day of the month, 1 to 31."""

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

    takes = "dates, times, timestamps and intervals"
    interval_field = _MICROSECONDS

    def takes_type(self, type: Type) -> bool:
        return type.name in _CLOCKS or super().takes_type(type)

    def apply(self, value: Scalar, type: Type) -> Scalar:
        return value // HOUR if type.name in _CLOCKS else super().apply(value, type)

    def interval_part(self, number: int) -> int:
        return _quotient(number, HOUR)

    def _texts(self, array: pa.Array, type: Type) -> pa.Array:
        return pc.divide(array, HOUR).cast(pa.string()) if type.name in _CLOCKS else super()._texts(array, type)

    def part_array(self, moments: pa.Array) -> pa.Array:
        return pc.hour(moments.cast(pa.timestamp("s")) if pa.types.is_date(moments.type) else moments)

    def part(self, micros: int) -> int:
        return micros // HOUR % 24

    def parts(self, micros: ValueSet) -> ValueSet | None:
        return cyclic(micros, lambda value: value // HOUR, 24, lambda hours: hours % 24)


@dataclass(frozen=True)
class Unknown(Transform):
    """A transform that this version does not know: files are read whatever their value, and none can be written."""

    text: str

    def apply(self, value: Scalar, type: Type) -> Scalar:
        raise self._refusal()

    def _texts(self, array: pa.Array, type: Type) -> pa.Array:
        raise self._refusal()

    def check(self, column: Column) -> None:
        raise self._refusal()

    def directory(self, column: str) -> str:
        raise self._refusal()

    def _refusal(self) -> UnsupportedError:
        return UnsupportedError(
            f"partition transform {self.text!r} is not known to this version of Penstock, which can read the table but"
            " not write to it; set another partitioning, or use a newer version"
        )

    def project(self, values: ValueSet, type: Type) -> ValueSet | None:
        return None

    def __str__(self) -> str:
        return self.text


def parse_transform(text: str) -> Transform:
    """The transform of a `ducklake_partition_column.transform`."""
    name = text.strip().lower()
    bucket = _BUCKET.fullmatch(name)
    if bucket and 0 < int(bucket[1]) <= MOST_BUCKETS:
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
    # DuckDB cuts nanoseconds towards 1970: before it that is the next microsecond, where Spark shows the last one.
    return _quotient(int(value), 1000) if type.name == "timestamp_ns" else int(value)


def _text_or_null(part: int | None) -> str | None:
    return None if part is None else str(part)


def _quotient(number: int, unit: int) -> int:
    """Whole units, cut towards zero."""
    return number // unit if number >= 0 else -(-number // unit)
