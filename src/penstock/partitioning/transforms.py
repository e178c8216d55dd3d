"""Defines the transforms: from a value to that of its partition, and from a set of values to the partitions to read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg_core import transform as iceberg

from penstock.errors import InvalidError, UnsupportedError
from penstock.partitioning.arrow import plain, stored_form
from penstock.partitioning.buckets import DUCKLAKE, Hashing
from penstock.partitioning.hashes import MURMUR3, hash_text, hash_texts
from penstock.partitioning.projection import MOST_POINTS, multiples, points, prefixes
from penstock.partitioning.texts import texts
from penstock.predicates.domains import Grid, grid, whole_numbers
from penstock.predicates.values import Scalar, ValueSet
from penstock.schema.columns import Column
from penstock.schema.types import Order, Type

MOST_BUCKETS = MOST_WIDTH = 2**31 - 1
_MOST_SHARED_TEXTS = 100_000
_NO_TEXT = ("list", "struct", "map", "variant", "geometry")
_INTEGER, _TEXT = Type("int64"), Type("varchar")
_SIGNED = ("int8", "int16", "int32", "int64")
_MOST_DIGITS = 38


class Transform(ABC):
    """One way to make a partition value of a column's value; NULL always makes NULL."""

    suffix: ClassVar[str] = ""  # what follows the column in the names of Lance's partitions

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
        return self._texts(stored_form(array, type), type).cast(pa.string())

    def combined(self, arrays: Sequence[pa.Array | pa.ChunkedArray], types: Sequence[Type]) -> pa.StringArray:
        """The partition values, as `values` has them, of the columns that this transform takes together."""
        self._alone(len(arrays))
        return self.values(arrays[0], types[0])

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

    def directory(self, column: str) -> str:
        """The name of the directories of a column's partitions, if no other field has it."""
        return self.suffix

    @abstractmethod
    def project(self, values: ValueSet, type: Type) -> ValueSet | None:
        """The partition values of the files that can hold one of `values`, or None where that can be any file.

        The values are within the column's type, and the projected ones within that of `result`.
        """

    def project_together(self, sets: Sequence[ValueSet], types: Sequence[Type]) -> ValueSet | None:
        """What `project` says of rows that hold one of each set's values in the columns taken together."""
        self._alone(len(sets))
        return self.project(sets[0], types[0])

    def _alone(self, columns: int) -> None:
        if columns != 1:
            raise InvalidError(
                f"{self} takes one column, not {columns}; make a field of each, or take them together as hash(a, b)"
            )

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

    suffix = "bucket"
    count: int
    hashing: Hashing = DUCKLAKE

    def apply(self, value: Scalar, type: Type) -> Scalar:
        return self.hashing.buckets([value], type, self.count)[0]

    def _texts(self, array: pa.Array, type: Type) -> pa.Array:
        found = self.hashing.bucket_array(array, type, self.count)
        if self.count > min(_MOST_SHARED_TEXTS, len(array)):
            return found.cast(pa.string())
        return pa.array(map(str, range(self.count)), pa.string()).take(found)

    def check(self, column: Column) -> None:
        super().check(column)
        self.hashing.check(column, self.describe(column.name))

    def project(self, values: ValueSet, type: Type) -> ValueSet | None:
        alone = _hashed_points(values, type, self.hashing)
        if alone is None:
            return None
        found, seen = alone
        return whole_numbers(ValueSet.points(set(self.hashing.buckets(found, seen, self.count)), null=values.null))

    def __str__(self) -> str:
        return f"bucket({self.count})"

    def describe(self, column: str) -> str:
        return f"bucket({self.count}, {column})"


@dataclass(frozen=True)
class Truncate(Transform):
    """The first characters of a text, or the next multiple of the width at or below a number.

    The width of decimals is a whole number too, so that their multiples have no digits after the point.
    """

    suffix = "trunc"
    width: int

    def apply(self, value: Scalar, type: Type) -> Scalar:
        if type.order is Order.TEXT:
            return value[: self.width]
        multiple = self._steps(type).step(value) // self._unit(type) * self.width
        limits = grid(self.result(type))
        if limits is not None and limits.first is not None and multiple < limits.first:
            raise InvalidError(
                f"truncate({self.width}) of {value}: {multiple} is no {self.result(type)};"
                " choose a smaller width, or remove the value"
            )
        return multiple

    def _texts(self, array: pa.Array, type: Type) -> pa.Array:
        if type.order is not Order.TEXT:
            least = pc.min(array).as_py()
            if least is not None:
                self.apply(least, type)  # Iceberg's own would overflow in silence
        if type.order is Order.DECIMAL:
            array = pc.floor(array.cast(pa.decimal256(2 * _MOST_DIGITS, type.scale)))
            array = array.cast(pa.decimal128(_MOST_DIGITS, 0))  # of which Iceberg truncates the last digit
        return texts(iceberg.truncate(array, self.width), self.result(type))

    def check(self, column: Column) -> None:
        super().check(column)
        name, order = column.type.name, column.type.order
        if order not in (Order.INTEGER, Order.DECIMAL) and name != "varchar":
            raise InvalidError(
                f"{self.describe(column.name)}: {column.name} is a {column.type}, and truncate takes integers, decimals"
                f" and text; partition by {column.name} itself or by bucket(16, {column.name})"
            )

    def project(self, values: ValueSet, type: Type) -> ValueSet | None:
        if type.name == "varchar":
            return ValueSet.of((prefixes(one, self.width) for one in values.intervals), null=values.null)
        if type.order not in (Order.INTEGER, Order.DECIMAL):
            return None
        steps, unit = self._steps(type), self._unit(type)
        return ValueSet.of((multiples(one, steps, unit) for one in values.intervals), null=values.null)

    def result(self, type: Type) -> Type:
        """The type itself, or the widest of its kind: the multiple below a number can have more digits."""
        if type.name in _SIGNED:
            return _INTEGER
        return Type("decimal", _MOST_DIGITS) if type.order is Order.DECIMAL else type

    def _unit(self, type: Type) -> int:
        """The width in steps of the type."""
        return self.width * int(10**type.scale)

    def _steps(self, type: Type) -> Grid:
        steps = grid(type)
        if steps is None:
            raise InvalidError(
                f"{self} takes integers, decimals and text, but no {type}; partition by the value itself"
            )
        return steps

    def __str__(self) -> str:
        return f"truncate({self.width})"

    def describe(self, column: str) -> str:
        return f"truncate({self.width}, {column})"


@dataclass(frozen=True)
class Hash(Transform):
    """The hash of the values of one or several columns, in hexadecimal digits."""

    suffix = "hash"

    def apply(self, value: Scalar, type: Type) -> Scalar:
        return hash_text([value], [type])

    def _texts(self, array: pa.Array, type: Type) -> pa.Array:
        return hash_texts([array], [type])

    def combined(self, arrays: Sequence[pa.Array | pa.ChunkedArray], types: Sequence[Type]) -> pa.StringArray:
        if len(arrays) < 2:
            return super().combined(arrays, types)
        for type in types:
            self.check(Column(0, "x", type, 0))
        return hash_texts([stored_form(plain(array), type) for array, type in zip(arrays, types, strict=True)], types)

    def check(self, column: Column) -> None:
        super().check(column)
        MURMUR3.check(column, self.describe(column.name))

    def project(self, values: ValueSet, type: Type) -> ValueSet | None:
        return self.project_together([values], [type])

    def project_together(self, sets: Sequence[ValueSet], types: Sequence[Type]) -> ValueSet | None:
        choices: list[list[Scalar]] = []
        seen: list[Type] = []
        for values, type in zip(sets, types, strict=True):
            alone = _hashed_points(values, type, MURMUR3)
            if alone is None:
                return None
            choices.append([*alone[0], None] if values.null else alone[0])
            seen.append(alone[1])
        if prod(map(len, choices)) > MOST_POINTS:
            return None
        found = {hash_text(row, seen) for row in product(*choices)}
        return ValueSet.points(found - {None}, null=None in found)

    def result(self, type: Type) -> Type:
        return _TEXT

    def __str__(self) -> str:
        return "hash"


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


def _hashed_points(values: ValueSet, type: Type, hashing: Hashing) -> tuple[list[Scalar], Type] | None:
    """The values of a set one by one with the type to hash them as, or None where their hashes cannot be told."""
    seen = hashing.seen(type)
    # NaN has many bit patterns.
    alone = None if seen is None or values.nan else points(values, seen)
    return None if seen is None or alone is None else (alone, seen)
