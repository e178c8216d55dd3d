"""Computes the hash of Lance's partitions: Murmur3 (x86, 32 bits, seed 0) of the bytes that Iceberg hashes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import mmh3
import numpy as np
import pyarrow as pa

from penstock.errors import UnsupportedError
from penstock.partitioning.arrow import mapped
from penstock.partitioning.buckets import Hashing
from penstock.predicates.values import Scalar
from penstock.schema.columns import Column
from penstock.schema.types import Order, Type

_LONG, _UNSIGNED_LONG, _LENGTH = struct.Struct("<q"), struct.Struct("<Q"), struct.Struct("<i")
_NULL = _LENGTH.pack(-1)
_WIDE = Context(prec=76)
_HASHED = (Order.INTEGER, Order.DECIMAL, Order.DATE, Order.TIMESTAMP, Order.TEXT, Order.BYTES)
_Numbers = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Murmur3(Hashing):
    """Lance's buckets: the hash without its sign, modulo their number."""

    def buckets(self, values: Sequence[Scalar], type: Type, count: int) -> list[int]:
        encode = _encoder(type)
        return [abs(mmh3.hash(encode(value))) % count for value in values]

    def bucket_array(self, array: pa.Array, type: Type, count: int) -> pa.Int32Array:
        encoded = array.dictionary_encode()
        found = self.buckets(encoded.dictionary.to_pylist(), type, count)
        return pa.array(found, pa.int32()).take(encoded.indices)

    def check(self, column: Column, described: str) -> None:
        if not _is_hashed(column.type):
            raise UnsupportedError(
                f"{described}: {column.name} is a {column.type}, and Lance hashes integers, decimals, dates,"
                f" timestamps, text and blobs; partition by {column.name} itself, or cast it to one of these"
            )

    def seen(self, type: Type) -> Type | None:
        # Microseconds are hashed, and Spark shows those of nanoseconds.
        return Type("timestamp") if type.name == "timestamp_ns" else type if _is_hashed(type) else None


MURMUR3 = Murmur3()


def hash_text(row: Sequence[Scalar], types: Sequence[Type]) -> str | None:
    """The hash of a row's values in hexadecimal digits; that of nothing but NULL is None.

    A single value is hashed by its bytes alone; of several, each has the length of its bytes before it, NULL being -1.
    """
    if all(value is None for value in row):
        return None
    if len(row) == 1:
        return _hexadecimal(_encoder(types[0])(row[0]))
    pairs = zip(row, types, strict=True)
    return _hexadecimal(b"".join(_NULL if value is None else _piece(_encoder(type)(value)) for value, type in pairs))


def hash_texts(arrays: Sequence[pa.Array], types: Sequence[Type]) -> pa.StringArray:
    """The `hash_text` of each row of some stored arrays, computed once for each distinct row."""
    if len(arrays) == 1:
        encode = _encoder(types[0])
        return mapped(arrays[0], lambda value: _hexadecimal(encode(value)))
    columns = [_pieces(array, type) for array, type in zip(arrays, types, strict=True)]
    first, places = _distinct([codes for codes, _ in columns])
    rows = zip(*([pieces[code] for code in codes[first].tolist()] for codes, pieces in columns), strict=True)
    found = [None if all(piece is _NULL for piece in row) else _hexadecimal(b"".join(row)) for row in rows]
    return pa.array(found, pa.string()).take(pa.array(places))


def _pieces(array: pa.Array, type: Type) -> tuple[_Numbers, list[bytes]]:
    """What is hashed of each distinct value, NULL first, and which of those each row has."""
    encoded = array.dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy().astype(np.int64) + 1
    return codes, [_NULL, *map(_piece, map(_encoder(type), encoded.dictionary.to_pylist()))]


def _distinct(columns: Sequence[_Numbers]) -> tuple[_Numbers, _Numbers]:
    """The first of the rows of each kind, and the kind of each row."""
    first = kinds = np.zeros(len(columns[0]), np.int64)
    for codes in columns:
        # Kinds are fewer than rows, so the product stays far below 64 bits, whatever the number of columns.
        joint = kinds * (codes.max(initial=0) + 1) + codes
        _, first, kinds = np.unique(joint, return_index=True, return_inverse=True)
    return first, kinds


def _is_hashed(type: Type) -> bool:
    return type.order in _HASHED and type.name != "uuid"


def _hexadecimal(data: bytes) -> str:
    return f"{mmh3.hash(data, signed=False):08x}"


def _piece(data: bytes) -> bytes:
    return _LENGTH.pack(len(data)) + data


def _encoder(type: Type) -> Callable[[Scalar], bytes]:
    """What makes the bytes that are hashed of a value; chosen once for many."""
    match type.order:
        case Order.INTEGER if type.name == "uint64":
            return lambda value: _UNSIGNED_LONG.pack(int(value))
        case Order.TIMESTAMP if type.name == "timestamp_ns":
            return lambda value: _LONG.pack(value // 1000)
        case Order.INTEGER | Order.DATE | Order.TIMESTAMP:
            return _LONG.pack
        case Order.DECIMAL:
            return lambda value: shortest_bytes(int(_WIDE.scaleb(Decimal(value), type.scale)))
        case Order.TEXT if type.name != "uuid":
            return str.encode
        case Order.BYTES:
            return bytes
    raise UnsupportedError(f"Lance hashes no {type}; partition by the column itself")


def shortest_bytes(number: int) -> bytes:
    """The fewest bytes of two's complement that hold a number, the highest first."""
    magnitude = number if number >= 0 else ~number
    return number.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)
