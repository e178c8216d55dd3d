"""Turns lists, structs and maps into the bytes that are hashed: of all they hold, each with its length before it."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from math import isnan, nan

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from penstock.errors import UnsupportedError
from penstock.partitioning.arrow import plain, unscaled
from penstock.partitioning.hashes import shortest_bytes

_LENGTH, _NULL = struct.Struct("<i"), struct.pack("<i", -1)
_LONG, _DOUBLE = struct.Struct("<q"), struct.Struct("<d")
_NUMBERS = (kinds.is_boolean, kinds.is_integer)
_TIMES = (kinds.is_date, kinds.is_timestamp, kinds.is_time)
_TEXTS = (kinds.is_string, kinds.is_large_string)
_BYTES = (kinds.is_binary, kinds.is_large_binary, kinds.is_fixed_size_binary)
_LISTS = (kinds.is_list, kinds.is_large_list, kinds.is_fixed_size_list)
_Belongs = Callable[[pa.DataType], bool]


def nested_bytes(array: pa.Array | pa.ChunkedArray) -> pa.BinaryArray:
    """The bytes to hash of each value; NULL stays NULL.

    Numbers and times are 8 bytes, as they are alone; all zeros are one, and all NaNs. A map's entries are in the order
    of the bytes of their keys.
    """
    return pa.array(_bytes(plain(array)), pa.binary())


def _bytes(array: pa.Array) -> list[bytes | None]:
    kind = array.type
    if kinds.is_struct(kind):
        fields = [_bytes(field) for field in array.flatten()]
        rows: Iterator[Sequence[bytes | None]] = zip(*fields, strict=True) if fields else iter([()] * len(array))
        return _valid(array, [_joined(row) for row in rows])
    if kinds.is_map(kind):
        return [None if value is None else _joined(value) for value in _entries(array)]
    if _is(kind, _LISTS):
        return [None if value is None else _joined(value) for value in _lists(array)]
    return [None if value is None else _atom(value, kind) for value in _plain_values(array)]


def _lists(array: pa.Array) -> Iterator[list[bytes | None] | None]:
    inside = iter(_bytes(array.flatten()))
    for length in pc.list_value_length(array).to_pylist():
        yield None if length is None else [next(inside) for _ in range(length)]


def _entries(array: pa.MapArray) -> Iterator[list[bytes | None] | None]:
    entry = pa.struct([pa.field("key", array.type.key_type, nullable=False), ("value", array.type.item_type)])
    lists = array.cast(pa.list_(entry))  # maps themselves cannot be flattened
    keys, items = (iter(_bytes(part)) for part in lists.flatten().flatten())
    for length in pc.list_value_length(lists).to_pylist():
        if length is None:
            yield None
            continue
        pairs = sorted(((next(keys), next(items)) for _ in range(length)), key=lambda pair: pair[0] or b"")
        yield [one for pair in pairs for one in pair]


def _valid(array: pa.Array, found: Sequence[bytes]) -> list[bytes | None]:
    return [one if there else None for one, there in zip(found, array.is_valid().to_pylist(), strict=True)]


def _joined(pieces: Sequence[bytes | None]) -> bytes:
    return b"".join(_NULL if piece is None else _LENGTH.pack(len(piece)) + piece for piece in pieces)


def _plain_values(array: pa.Array) -> list[object]:
    """Values as Python has them, but for times, which are numbers, and decimals without their point."""
    kind = array.type
    if kinds.is_timestamp(kind):
        array = array.cast(pa.timestamp("us", kind.tz)).view(pa.int64())
    elif kinds.is_date(kind):
        array = array.cast(pa.date32()).view(pa.int32())
    elif kinds.is_time(kind):
        array = array.cast(pa.time64("us")).view(pa.int64())
    elif kinds.is_decimal128(kind):
        array = unscaled(array)
    return list(array.to_pylist())


def _atom(value: object, kind: pa.DataType) -> bytes:
    if _is(kind, (*_NUMBERS, *_TIMES)) and isinstance(value, int):
        return _LONG.pack(value)
    if kinds.is_floating(kind) and isinstance(value, float):
        return _DOUBLE.pack(nan if isnan(value) else value + 0.0)
    if kinds.is_decimal128(kind):
        return shortest_bytes(int(str(value)))
    if _is(kind, _TEXTS) and isinstance(value, str):
        return value.encode()
    if _is(kind, _BYTES) and isinstance(value, bytes):
        return value
    raise UnsupportedError(f"Lance hashes no {kind} inside of other values; partition by another column")


def _is(kind: pa.DataType, which: Sequence[_Belongs]) -> bool:
    return any(belongs(kind) for belongs in which)
