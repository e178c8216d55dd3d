"""Computes DuckLake's buckets, and defines what every way of hashing values into buckets offers."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import isnan, nan

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg_core import transform

from penstock.errors import UnsupportedError
from penstock.partitioning.arrow import COARSE, in_units, unscaled
from penstock.partitioning.texts import is_infinite, text, texts
from penstock.predicates.values import Scalar
from penstock.schema.columns import Column
from penstock.schema.types import Order, Type

_BY_NUMBER = {"int8", "int16", "int32", "int64", "boolean", "date", "time", "timestamp", "timestamptz", "timestamp_ns"}
_BY_TEXT = {"uint8", "uint16", "uint32", "uint64", "uint128", "int128", "interval"}
_DIGITS_OF_A_LONG = 18
_TIMETZ_SHIFT, _TIMETZ_UTC = (
    2**24,
    57_599,
)  # DuckDB keeps the offset below the microseconds, counted down from +15:59:59
_SAME_HASH = (
    ("boolean", "int8", "int16", "int32", "int64"),
    ("uint8", "uint16", "uint32", "uint64", "uint128"),
    ("float32", "float64"),
)


class Hashing(ABC):
    """Assigns values to buckets. Timestamps are microseconds, but for timestamp_ns nanoseconds."""

    @abstractmethod
    def buckets(self, values: Sequence[Scalar], type: Type, count: int) -> list[int]:
        """The bucket of each value; none is NULL."""

    @abstractmethod
    def bucket_array(self, array: pa.Array, type: Type, count: int) -> pa.Int32Array:
        """The bucket of each value of a stored array; NULL stays NULL."""

    @abstractmethod
    def seen(self, type: Type) -> Type | None:
        """The type to hash values as that Spark shows, to get the stored ones' buckets; None where there is none."""

    def check(self, column: Column, described: str) -> None:
        """Refuse a column, in a transform so described, of a type that is not hashed."""
        return


@dataclass(frozen=True)
class DuckLake(Hashing):
    """The buckets that DuckDB's extension computes."""

    def buckets(self, values: Sequence[Scalar], type: Type, count: int) -> list[int]:
        hashed = [_hashed(value, type) for value in values]
        array = pa.array(hashed, pa.int64() if all(isinstance(one, int) for one in hashed) else pa.binary())
        found: list[int] = transform.bucket(array, count).to_pylist()
        return found

    def bucket_array(self, array: pa.Array, type: Type, count: int) -> pa.Int32Array:
        return transform.bucket(_hashed_array(array, type), count)

    def seen(self, type: Type) -> Type | None:
        # A timestamp_ns is hashed with its nanoseconds, which Spark does not see.
        return None if type.name == "timestamp_ns" or type.order is Order.NONE else type


DUCKLAKE = DuckLake()


def same_buckets(type: Type) -> tuple[str, ...]:
    """The types whose equal values are in the same buckets, this one among them."""
    return next((names for names in _SAME_HASH if type.name in names), (str(type),))


def _hashed(value: Scalar, type: Type) -> int | bytes:
    """What is hashed: a 64-bit number or bytes."""
    if type.name in _BY_NUMBER:
        return int(value)
    if type.name in COARSE:
        return int(value if is_infinite(value, type) else value // COARSE[type.name])
    if type.name in _BY_TEXT:
        return text(value, type).encode()
    if type.name == "timetz":
        return int(value * _TIMETZ_SHIFT + _TIMETZ_UTC)
    match type.order:
        case Order.FLOAT:
            return int(struct.unpack("<q", struct.pack("<d", nan if isnan(value) else value + 0.0))[0])
        case Order.DECIMAL:
            return _hashed_decimal(value, type)
        case Order.TEXT:
            return bytes(value, "utf-8")
        case Order.BYTES:
            return bytes(value)
    raise UnsupportedError(f"bucket({type}): Penstock does not know which bytes of a {type} DuckLake hashes")


def _hashed_decimal(value: Decimal, type: Type) -> int | bytes:
    written = text(value, type)
    return int(written.replace(".", "")) if type.precision <= _DIGITS_OF_A_LONG else written.encode()


def _hashed_array(array: pa.Array, type: Type) -> pa.Array:
    if type.name in _BY_NUMBER:
        return array.cast(pa.int64())
    if type.name in COARSE:
        return in_units(array, type)
    if type.name == "timetz":
        return pc.add(pc.multiply(array, _TIMETZ_SHIFT), _TIMETZ_UTC)
    match type.order:
        case Order.FLOAT:
            # One zero and one NaN: equal values share a bucket.
            doubles = pc.add(array.cast(pa.float64()), 0.0)
            return pc.if_else(pc.is_nan(doubles), nan, doubles).view(pa.int64())
        case Order.DECIMAL if type.precision <= _DIGITS_OF_A_LONG:
            return unscaled(array).cast(pa.int64())
        case Order.BYTES:
            return array
    return texts(array, type)
