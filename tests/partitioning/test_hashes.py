"""The hashes of Lance's partitions: Murmur3 as it is written down, of the bytes that Iceberg's specification names."""

from __future__ import annotations

import struct
from dataclasses import replace
from decimal import Decimal
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partitioning.test_values import stored_values
from penstock.errors import InvalidError, UnsupportedError
from penstock.partitioning import MURMUR3, Bucket, Day, Hash, Hour, Identity, Month, Truncate, Year
from penstock.predicates.domains import within
from penstock.predicates.values import NO_VALUES, ValueSet, interval
from penstock.schema.types import Order, Type, parse_type
from support.arrays import spark_array
from support.effort import tries

HASHED = ["int8", "int16", "int32", "int64", "uint8", "uint32", "uint64", "decimal(4,1)", "decimal(38,10)"]
HASHED += ["decimal(38,0)", "date", "timestamp", "timestamptz", "timestamp_s", "timestamp_ms", "timestamp_ns"]
HASHED += ["varchar", "json", "blob"]
NOT_HASHED = ["boolean", "float32", "float64", "time", "uuid", "interval", "int128", "list", "struct", "map"]
HEXADECIMAL = Hash()


def murmur3(data: bytes) -> int:
    """MurmurHash3_x86_32 with seed 0, signed."""

    def turned(word: int, bits: int) -> int:
        return (word << bits | word >> (32 - bits)) & 0xFFFFFFFF

    def mixed(word: int) -> int:
        return turned(word * 0xCC9E2D51 & 0xFFFFFFFF, 15) * 0x1B873593 & 0xFFFFFFFF

    whole = len(data) // 4 * 4
    state = 0
    for place in range(0, whole, 4):
        state ^= mixed(int.from_bytes(data[place : place + 4], "little"))
        state = (turned(state, 13) * 5 + 0xE6546B64) & 0xFFFFFFFF
    state ^= mixed(int.from_bytes(data[whole:], "little")) ^ len(data)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        state = (state ^ state >> shift) * factor & 0xFFFFFFFF
    return state - (state >> 31 << 32)


def hashed_bytes(value: Any, type: Type) -> bytes:
    match type.order:
        case Order.DECIMAL:
            sign, digits, exponent = value.as_tuple()
            number = int("".join(map(str, digits))) * 10 ** (exponent + type.scale) * (-1 if sign else 1)
            length = next(n for n in range(1, 20) if -(1 << (8 * n - 1)) <= number < 1 << (8 * n - 1))
            return number.to_bytes(length, "big", signed=True)
        case Order.TEXT:
            return bytes(value, "utf-8")
        case Order.BYTES:
            return bytes(value)
    number = value // 1000 if type.name == "timestamp_ns" else value
    return struct.pack("<q", number - (number >> 63 << 64) if type.name == "uint64" else number)


def row_hash(row: tuple[Any, ...], types: list[Type]) -> str | None:
    if row == (None,) * len(row):
        return None
    pieces = [None if value is None else hashed_bytes(value, type) for value, type in zip(row, types, strict=True)]
    if len(pieces) > 1:
        pieces = [struct.pack("<i", -1 if one is None else len(one)) + (one or b"") for one in pieces]
    return f"{murmur3(b''.join(one or b'' for one in pieces)) & 0xFFFFFFFF:08x}"


@pytest.mark.parametrize(
    ("name", "value", "published"),
    [
        ("int64", 34, 2017239379),
        ("int8", 34, 2017239379),
        ("uint64", 34, 2017239379),
        ("varchar", "iceberg", 1210000089),
        ("date", 17_486, -653330422),
        ("timestamp", 1_510_871_468_000_000, -2047944441),
        ("timestamptz", 1_510_871_468_000_000, -2047944441),
        ("timestamp_ns", 1_510_871_468_000_000_999, -2047944441),
        ("decimal(9,2)", Decimal("14.20"), -500754589),
        ("blob", bytes([0, 1, 2, 3]), -188683207),
    ],
)
def test_published_hashes(name: str, value: Any, published: int) -> None:
    type = parse_type(name)
    assert murmur3(hashed_bytes(value, type)) == published
    assert HEXADECIMAL.apply(value, type) == f"{published % 2**32:08x}"
    assert Bucket(7, MURMUR3).apply(value, type) == abs(published) % 7


@settings(deadline=None, max_examples=tries(50, 150))
@given(st.data(), st.sampled_from(HASHED), st.sampled_from([1, 16, 2**31 - 1]))
def test_buckets_and_hashes_are_as_defined(data: st.DataObject, name: str, count: int) -> None:
    type, bucket = parse_type(name), Bucket(count, MURMUR3)
    values = data.draw(st.lists(st.none() | stored_values(type), max_size=6))
    array = spark_array(type, [*values, None])
    numbers = [None if one is None else abs(murmur3(hashed_bytes(one, type))) % count for one in [*values, None]]
    assert bucket.values(array, type).to_pylist() == [None if one is None else str(one) for one in numbers]
    texts = [row_hash((one,), [type]) for one in [*values, None]]
    assert HEXADECIMAL.values(array, type).to_pylist() == HEXADECIMAL.combined([array], [type]).to_pylist() == texts
    for value, number, text in zip(values, numbers, texts, strict=False):
        if value is not None:
            assert (bucket.apply(value, type), HEXADECIMAL.apply(value, type)) == (number, text)


@settings(deadline=None, max_examples=tries(40, 100))
@given(st.data(), st.lists(st.sampled_from(HASHED), min_size=2, max_size=4))
def test_several_columns_are_hashed_together(data: st.DataObject, names: list[str]) -> None:
    types = [parse_type(name) for name in names]
    rows = data.draw(st.lists(st.tuples(*(st.none() | stored_values(type) for type in types)), max_size=5))
    rows = [*rows, (None,) * len(types), *rows]
    arrays = [spark_array(type, [row[n] for row in rows]) for n, type in enumerate(types)]
    wanted = [row_hash(row, types) for row in rows]
    assert HEXADECIMAL.combined(arrays, types).to_pylist() == wanted
    chunked = pa.chunked_array([arrays[0].slice(0, 1), arrays[0].slice(1)])
    assert (
        HEXADECIMAL.combined([chunked, *(one.dictionary_encode() for one in arrays[1:])], types).to_pylist() == wanted
    )
    assert HEXADECIMAL.combined([one.slice(0, 0) for one in arrays], types).to_pylist() == []


@settings(deadline=None, max_examples=tries(50, 150))
@given(st.data(), st.lists(st.sampled_from(HASHED), min_size=1, max_size=3))
def test_pruning_loses_no_row(data: st.DataObject, names: list[str]) -> None:
    types = [parse_type(name) for name in names]
    wanted = [data.draw(st.lists(st.none() | stored_values(type), min_size=1, max_size=3)) for type in types]
    sets = [shown(values, type) for values, type in zip(wanted, types, strict=True)]
    projected = HEXADECIMAL.project_together(sets, types)
    if any(None in (one.low, one.high) for values in sets for one in values.intervals):
        assert projected is None  # the first or last value of a type is an open end
        return
    assert projected is not None
    rows = list(product(*wanted))
    arrays = [spark_array(type, [row[n] for row in rows]) for n, type in enumerate(types)]
    assert all(text in projected for text in HEXADECIMAL.combined(arrays, types).to_pylist())
    for transform in (Bucket(5, MURMUR3), HEXADECIMAL):
        alone = transform.project(sets[0], types[0])
        assert alone is not None
        for value in wanted[0]:
            assert (None if value is None else transform.apply(value, types[0])) in alone


def shown(values: list[Any], type: Type) -> ValueSet:
    """The set of some stored values as Spark shows them."""
    alone = [one // 1000 if type.name == "timestamp_ns" else one for one in values if one is not None]
    return within(ValueSet.points(alone, null=None in values), type)


def test_only_named_values_prune() -> None:
    int64 = parse_type("int64")
    short, long = (within(ValueSet.of([interval(1, last)]), int64) for last in (40, 2000))
    assert all(HEXADECIMAL.apply(n, int64) in (HEXADECIMAL.project(short, int64) or NO_VALUES) for n in range(1, 41))
    assert HEXADECIMAL.project(long, int64) is None
    assert HEXADECIMAL.project_together([short, short], [int64, int64]) is None  # 1600 rows
    assert HEXADECIMAL.project_together([short, NO_VALUES], [int64, int64]) == NO_VALUES
    assert HEXADECIMAL.project(within(~ValueSet.points(["a"]), parse_type("varchar")), parse_type("varchar")) is None
    assert Bucket(4, MURMUR3).project(ValueSet.points([1.5]), parse_type("float64")) is None


def test_the_least_hash_has_a_bucket() -> None:
    """Whose absolute value is no 32-bit number."""
    least, blob = b"U\x07o\x83", parse_type("blob")
    assert murmur3(least) == -(2**31)
    assert HEXADECIMAL.apply(least, blob) == "80000000"
    for count in (3, 16, 2**31 - 1):
        assert Bucket(count, MURMUR3).values(pa.array([least]), blob).to_pylist() == [str(2**31 % count)]


@pytest.mark.parametrize("name", NOT_HASHED)
def test_types_that_are_not_hashed(name: str) -> None:
    for transform in (Bucket(4, MURMUR3), HEXADECIMAL):
        with pytest.raises(UnsupportedError, match=rf"{transform.suffix}\(.*x is a {name}"):
            transform.values(pa.array([None]), parse_type(name))
    with pytest.raises(UnsupportedError, match=f"x is a {name}"):
        HEXADECIMAL.combined([pa.array([1]), pa.array([None])], [parse_type("int64"), parse_type(name)])


def test_one_bucket_for_both_systems() -> None:
    assert replace(Bucket(4), hashing=MURMUR3) == Bucket(4, MURMUR3) != Bucket(4)
    assert str(Bucket(4, MURMUR3)) == "bucket(4)"
    assert Bucket(4, MURMUR3).describe("x") == "bucket(4, x)"


def test_endings_of_lance_s_names() -> None:
    transforms = (Identity(), Bucket(4), Hash(), Truncate(3), Year(), Month(), Day(), Hour())
    assert [one.suffix for one in transforms] == ["", "bucket", "hash", "trunc", "year", "month", "day", "hour"]
    assert [one.digits for one in (Year(), Month(), Day(), Hour())] == [4, 2, 2, 2]


def test_only_hash_takes_several_columns() -> None:
    int64 = parse_type("int64")
    for transform in (Bucket(4), Truncate(4)):
        with pytest.raises(InvalidError, match=r"takes one column, not 2; .*hash\(a, b\)"):
            transform.combined([pa.array([1])] * 2, [int64] * 2)
    assert Truncate(10).combined([pa.array([17])], [int64]).to_pylist() == ["10"]
    assert Truncate(10).project_together([ValueSet.points([17])], [int64]) is not None


@pytest.mark.parametrize("text", ["12345678901234567890", "-12345678901234567890"])
def test_ducklake_s_buckets_of_long_whole_decimals(text: str) -> None:
    type = parse_type("decimal(38,0)")
    projected = Bucket(2**31 - 1).project(within(ValueSet.points([Decimal(text)]), type), type)
    assert projected is not None
    assert Bucket(2**31 - 1).apply(Decimal(text), type) in projected
