"""The bytes of lists, structs and maps that are hashed."""

from __future__ import annotations

from math import nan
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import UnsupportedError
from penstock.lance.format.nested_hashes import nested_bytes


def hashed(kind: pa.DataType, *values: Any) -> list[bytes | None]:
    """The same bytes, sliced or not."""
    array = pa.array([None, *values, None], kind)
    found = nested_bytes(array.slice(1, len(values))).to_pylist()
    assert nested_bytes(array).to_pylist() == [None, *found, None]
    assert nested_bytes(pa.chunked_array([array])).to_pylist() == [None, *found, None]
    return found


def test_bytes_of_lists_structs_and_maps() -> None:
    one, two = (b"\x08\0\0\0" + number.to_bytes(8, "little") for number in (1, 2))
    null = b"\xff\xff\xff\xff"
    for kind in (pa.list_(pa.int32()), pa.large_list(pa.int64()), pa.list_(pa.uint8(), 2)):
        assert hashed(kind, [1, 2], None, [None, 2]) == [one + two, None, null + two]
    pair = pa.struct([("a", pa.int8()), ("b", pa.string())])
    assert hashed(pair, {"a": 1, "b": "é"}, {"a": None, "b": ""}) == [
        one + b"\2\0\0\0" + "é".encode(),
        null + b"\0" * 4,
    ]
    assert hashed(pa.map_(pa.string(), pa.int8()), [("b", 2), ("a", 1)], []) == [
        b"\1\0\0\0a" + one + b"\1\0\0\0b" + two,
        b"",
    ]


@pytest.mark.parametrize(
    ("kind", "values", "distinct"),
    [
        (pa.list_(pa.list_(pa.int8())), [[[1], [2]], [[1, 2]], [[], [1, 2]], [None, [1, 2]], [[1, 2]], []], 5),
        (pa.list_(pa.float64()), [[0.0], [-0.0], [nan], [-nan], [1.5]], 3),
        (pa.list_(pa.string()), [["ab", ""], ["a", "b"], ["", "ab"], ["ab"], [None], [""]], 6),
        (pa.map_(pa.int8(), pa.string()), [[(1, "a"), (2, "b")], [(2, "b"), (1, "a")], [(1, "b"), (2, "a")]], 2),
    ],
)
def test_equal_values_have_equal_bytes_and_others_not(kind: pa.DataType, values: list[Any], distinct: int) -> None:
    assert len(set(hashed(kind, *values))) == distinct


def test_what_is_not_hashed() -> None:
    with pytest.raises(UnsupportedError, match="duration"):
        hashed(pa.list_(pa.duration("s")), [1])
