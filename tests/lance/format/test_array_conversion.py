from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.errors import InvalidError
from penstock.lance.format.array_conversion import convert_array, null_array

_UTC, _NAIVE = pa.timestamp("us", "UTC"), pa.timestamp("us")
_NAN, _INF = float("nan"), float("inf")
_NUMBER = pa.decimal128(38, 0)
_VECTOR = pa.list_(pa.float32(), 2)
_PAIR = pa.struct([pa.field("a", pa.int8(), nullable=False), ("b", pa.string())])


def _texts(array: pa.Array) -> list[str]:
    return [repr(value) for value in array.to_pylist()]  # NaN is NaN, and -0.0 is not 0.0


def _check(values: list[Any], source: pa.DataType, target: pa.DataType, expected: list[Any]) -> None:
    """The values convert whole, sliced, chunked, NULL and not at all, inside lists and structs."""
    array = pa.array([None, *values, None], source)
    wanted = pa.array([None, *expected, None], target)
    for start, stop in ((0, len(array)), (1, len(array) - 1), (1, 1), (0, 1)):
        result = convert_array(array[start:stop], target, "c", "leaf")
        result.validate(full=True)
        assert result.type == target
        assert _texts(result) == _texts(wanted[start:stop])
    chunked = convert_array(pa.chunked_array([array, array[2:]], source), target, "c", "leaf")
    assert _texts(chunked) == _texts(wanted) + _texts(wanted[2:])
    lists = pa.ListArray.from_arrays(pa.array([0, 0, len(array)], pa.int32()), array)
    structs = pa.StructArray.from_arrays([lists, lists], ["Other", "A"])
    nested = convert_array(structs, pa.struct([("a", pa.large_list(target)), ("new", target)]), "c", "leaf")
    nested.validate(full=True)
    assert _texts(nested.field("a").flatten()) == _texts(wanted)
    assert nested.field("new").null_count == 2


@pytest.mark.parametrize(
    ("values", "source", "target", "expected"),
    [
        ([0, 127], pa.int64(), pa.uint8(), [0, 127]),
        ([2**63, 2**64 - 1], pa.uint64(), _NUMBER, [Decimal(2**63), Decimal(2**64 - 1)]),
        ([-999], pa.int64(), pa.decimal128(4, 1), [Decimal(-999)]),
        ([2**53], pa.int64(), pa.float64(), [2.0**53]),
        ([2048], pa.int32(), pa.float16(), [np.float16(2048)]),
        ([-0.0, -(2.0**63)], pa.float64(), pa.int64(), [0, -(2**63)]),
        ([np.float16(7)], pa.float16(), pa.uint8(), [7]),
        ([0.1, -1.25, 1e20], pa.float64(), pa.decimal128(38, 2), [Decimal("0.1"), Decimal("-1.25"), Decimal(10**20)]),
        ([0.1, _NAN, -0.0, -_INF], pa.float64(), pa.float32(), [0.1, _NAN, -0.0, -_INF]),
        ([0.5, _NAN, _INF], pa.float32(), pa.float16(), [np.float16(one) for one in (0.5, _NAN, _INF)]),
        ([np.float16(0.1)], pa.float16(), pa.float64(), [float(np.float16(0.1))]),
        ([Decimal(10**38 - 1)], _NUMBER, pa.decimal256(76, 38), [Decimal(10**38 - 1)]),
        ([Decimal("1.50")], pa.decimal256(76, 2), pa.decimal128(3, 1), [Decimal("1.5")]),
        ([Decimal("-1.50")], pa.decimal128(38, 2), pa.float16(), [np.float16(-1.5)]),
        ([Decimal(2**64 - 1)], pa.decimal128(38, 2), pa.uint64(), [2**64 - 1]),
        (["-1", "127"], pa.string(), pa.int8(), [-1, 127]),
        (["1.5", "nan", "-inf", "-0.0"], pa.large_string(), pa.float64(), [1.5, _NAN, -_INF, -0.0]),
        (["1.50", "1e2"], pa.string_view(), pa.decimal128(5, 2), [Decimal("1.50"), Decimal(100)]),
        (["true", "0"], pa.string(), pa.bool_(), [True, False]),
        (["0001-01-01", "9999-12-31"], pa.string(), pa.date64(), [date(1, 1, 1), date(9999, 12, 31)]),
        (
            ["1969-12-31", "1969-12-31 01:00:00.5", "1969-12-31T01:00:00-05:30"],
            pa.string(),
            _UTC,
            [datetime(1969, 12, 31), datetime(1969, 12, 31, 1, 0, 0, 500000), datetime(1969, 12, 31, 6, 30)],
        ),
        ([True], pa.bool_(), pa.string(), ["true"]),
        ([Decimal("-1.50")], pa.decimal128(38, 2), pa.large_string(), ["-1.50"]),
        ([-1], pa.timestamp("us", "Asia/Tokyo"), pa.string(), ["1969-12-31 23:59:59.999999Z"]),
        ([date(1969, 12, 31)], pa.date32(), pa.string_view(), ["1969-12-31"]),
        ([date(1969, 12, 31)], pa.date64(), _UTC, [datetime(1969, 12, 31)]),
        ([datetime(1582, 1, 1), datetime(9999, 12, 31)], _NAIVE, pa.date32(), [date(1582, 1, 1), date(9999, 12, 31)]),
        ([-86_400_000_000], pa.timestamp("us", "America/St_Johns"), pa.date32(), [date(1969, 12, 31)]),
        ([-(2**63), -1001, -1000, -1, 999], pa.timestamp("ns"), _UTC, [-9223372036854776, -2, -1, -1, 0]),
        ([-1000], pa.timestamp("us", "Asia/Tokyo"), pa.timestamp("ns", "UTC"), [-1_000_000]),
        ([1_000_000_000], pa.timestamp("ns", "UTC"), pa.timestamp("s"), [1]),
        ([1], pa.time32("s"), pa.time64("ns"), [1_000_000_000]),
        (["é", "", "🚰"], pa.string(), pa.dictionary(pa.int8(), pa.large_string()), ["é", "", "🚰"]),
        (["é", "é"], pa.dictionary(pa.int32(), pa.string()), pa.string_view(), ["é", "é"]),
        ([b"ab"], pa.binary_view(), pa.binary(2), [b"ab"]),
        ([b"ab"], pa.binary(2), pa.large_string(), ["ab"]),
        ([b"0" * 16], pa.binary(), pa.uuid(), [b"0" * 16]),
        ([[1.5, None], [2.5, 3.5]], pa.list_(pa.float64()), _VECTOR, [[1.5, None], [2.5, 3.5]]),
        ([[1.5, 2.5]], _VECTOR, pa.large_list(pa.float64()), [[1.5, 2.5]]),
        ([[], []], pa.large_list(pa.int8()), pa.list_(pa.int64(), 0), [[], []]),
        ([[1], []], pa.list_view(pa.int8()), pa.list_(pa.int64()), [[1], []]),
        (
            [{"B": 1, "a": "7", "x": 0}],
            pa.struct([("B", pa.int8()), ("a", pa.string()), ("x", pa.int8())]),
            _PAIR,
            [{"a": 7, "b": "1"}],
        ),
        (
            [[("1", {"a": [1, None]})], [], [("2", None), ("3", {"a": None})]],
            pa.map_(pa.string(), pa.struct([("a", pa.list_(pa.int64()))])),
            pa.map_(pa.int8(), pa.struct([("a", pa.list_(pa.string())), ("b", pa.int8())])),
            [
                [(1, {"a": ["1", None], "b": None})],
                [],
                [(2, None), (3, {"a": None, "b": None})],
            ],
        ),
    ],
)
def test_conversions(values: list[Any], source: pa.DataType, target: pa.DataType, expected: list[Any]) -> None:
    _check(values, source, target, expected)


@pytest.mark.parametrize(
    ("values", "source", "target", "where", "value"),
    [
        ([1, None, 300, 400], pa.int64(), pa.uint8(), "c", "300"),
        ([2**53, 2**63 - 1], pa.int64(), pa.float64(), "c", str(2**63 - 1)),
        ([2049], pa.int32(), pa.float16(), "c", "2049"),
        ([1.0, 1.5], pa.float64(), pa.int64(), "c", "1.5"),
        ([2.0**63], pa.float64(), pa.int64(), "c", r"9.223372036854776e\+18"),
        ([_NAN], pa.float32(), pa.int8(), "c", "nan"),
        ([1.0, 1e39], pa.float64(), pa.float32(), "c", r"1e\+39"),
        ([0.125], pa.float64(), pa.decimal128(10, 2), "c", "0.125"),
        ([Decimal(5), Decimal(300000)], _NUMBER, pa.float16(), "c", "300000"),
        ([Decimal(10**37)], _NUMBER, pa.decimal128(38, 2), "c", str(10**37)),
        (["1", "", "x"], pa.string(), pa.int64(), "c", "''"),
        (["inf", "1e400"], pa.string(), pa.float64(), "c", "'1e400'"),
        ([datetime(1969, 12, 31, 23)], _NAIVE, pa.date32(), "c", "1969-12-31 23:00:00"),
        ([0, 2**62], _NAIVE, pa.timestamp("ns"), "c", "4611686018427387904"),
        ([1_000], _NAIVE, pa.timestamp("s"), "c", "1000"),
        ([b"ok", b"\xff"], pa.binary(), pa.string(), "c", r"b'\\xff'"),
        ([b"ab", b"abc"], pa.binary(), pa.binary(2), "c", "b'abc'"),
        ([None, 5], pa.int64(), _UTC, "c", "5"),
        ([None, [5]], pa.list_(pa.int64()), pa.int64(), "c", r"\[5\]"),
        ([[1.0, 2.0], None, [3.0]], pa.list_(pa.float64()), _VECTOR, "c", r"\[3.0\]"),
        ([[1.0, 2.0], [1.0, 1e39]], pa.list_(pa.float64()), _VECTOR, "c.element", r"1e\+39"),
        ([[("k", 1), ("l", 300)]], pa.map_(pa.string(), pa.int64()), pa.map_(pa.string(), pa.int8()), "c.value", "300"),
        ([{"a": 300}], pa.struct([("a", pa.int64())]), pa.struct([("a", pa.int8())]), "c.a", "300"),
    ],
)
def test_values_that_do_not_fit(
    values: list[Any], source: pa.DataType, target: pa.DataType, where: str, value: str
) -> None:
    with pytest.raises(InvalidError, match=f"column {where} of leaf country=US: .*{value}") as caught:
        convert_array(pa.array([None, *values], source)[1:], target, "c", "country=US")
    assert where != "c" or f"of type {source} is no {target};" in str(caught.value)


@pytest.mark.parametrize(
    ("values", "source", "target"),
    [
        ([{"b": "x"}], pa.struct([("b", pa.string())]), _PAIR),
        ([None, {"a": None}], pa.struct([("a", pa.int64())]), _PAIR),
        ([{"A": 1}, {"A": None}], pa.struct([("A", pa.int8())]), _PAIR),
    ],
)
def test_fields_that_take_no_null(values: list[Any], source: pa.DataType, target: pa.DataType) -> None:
    with pytest.raises(InvalidError, match=r"column c\.a of leaf country=US .*nullable"):
        convert_array(pa.array(values, source), target, "c", "country=US")
    assert convert_array(pa.array([None, None], source), target, "c", "leaf").null_count == 2
    with pytest.raises(InvalidError, match=r"c\.element .*nullable"):
        convert_array(pa.array([[1, None]]), pa.list_(pa.field("item", pa.int64(), nullable=False)), "c", "leaf")


def test_two_fields_of_one_name() -> None:
    with pytest.raises(InvalidError, match=r"c\.id .*several"):
        convert_array(pa.array([{"ID": 1, "Id": 2}]), pa.struct([("id", pa.int8())]), "c", "leaf")
    exact = convert_array(pa.array([{"ID": 1, "id": 2}]), pa.struct([("id", pa.int8())]), "c", "leaf")
    assert exact.to_pylist() == [{"id": 2}]


def test_values_under_null_do_not_matter() -> None:
    hidden = pa.array([True, False, True])
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([1e300, _NAN, 1.0, 2.0, 1e300, 0.0]), 2, mask=hidden)
    structs = pa.StructArray.from_arrays([pa.array([300, 7, -300])], ["a"], mask=hidden)
    for start in (0, 1, 2):
        expected = [None, [1.0, 2.0], None][start:]
        for target in (_VECTOR, pa.list_(pa.float32())):
            assert convert_array(vectors[start:], target, "v", "leaf").to_pylist() == expected
        expected = [None, {"a": 7, "b": None}, None][start:]
        assert convert_array(structs[start:], _PAIR, "s", "leaf").to_pylist() == expected


def test_columns_that_a_leaf_has_not_are_null() -> None:
    for kind in (_VECTOR, _PAIR, pa.map_(pa.string(), _UTC), pa.dictionary(pa.int8(), pa.string()), _NUMBER):
        assert null_array(3, pa.field("c", kind), "leaf") == pa.nulls(3, kind)
    with pytest.raises(InvalidError, match="column c of leaf country=US"):
        null_array(3, pa.field("c", pa.int8(), nullable=False), "country=US")
