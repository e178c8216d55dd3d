"""Empty arrays inside of others get the offset that Spark 4.1 leaves out, and all values stay."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from penstock.spark.arrow_offsets import with_offsets

EMPTY = pa.Array.from_buffers(pa.string(), 0, [None, pa.py_buffer(b""), pa.py_buffer(b"")])


def lists(of: pa.Array, rows: int) -> pa.Array:
    """Empty lists, the second of them NULL."""
    offsets = pa.array([0, None, *[0] * (rows - 1)], pa.int32())
    return pa.ListArray.from_arrays(offsets, of)


def maps(keys: pa.Array, items: pa.Array, rows: int) -> pa.Array:
    return pa.MapArray.from_arrays(pa.array([0] * (rows + 1), pa.int32()), keys, items)


NO_LISTS = pa.Array.from_buffers(pa.list_(pa.string()), 0, [None, pa.py_buffer(b"")], children=[EMPTY])
CASES: dict[str, pa.Array] = {
    "list": lists(EMPTY, 3),
    "list of lists": lists(NO_LISTS, 3),
    "map": maps(EMPTY, EMPTY, 3),
    "map of lists": maps(EMPTY, NO_LISTS, 3),
    "struct": pa.StructArray.from_arrays(
        [pa.array([1, None, 3]), lists(EMPTY, 3)], names=["a", "b"], mask=pa.array([False, False, True])
    ),
    "empty": EMPTY,
}


def buffers(array: pa.Array) -> list[Any]:
    """The offsets of all texts and lists in it, however deep."""
    if pa.types.is_struct(array.type):
        return [one for place in range(array.type.num_fields) for one in buffers(array.field(place))]
    if pa.types.is_map(array.type):
        return [array.buffers()[1], *buffers(array.keys), *buffers(array.items)]
    if pa.types.is_list(array.type):
        return [array.buffers()[1], *buffers(array.values)]
    return [array.buffers()[1]]


@pytest.mark.parametrize("name", CASES)
def test_empty_arrays_get_their_offset(name: str) -> None:
    batch = pa.RecordBatch.from_arrays([CASES[name]], names=["c"])
    assert any(buffer is None or buffer.size == 0 for buffer in buffers(batch["c"]))
    whole = with_offsets(batch)
    assert all(buffer is not None and buffer.size >= 4 for buffer in buffers(whole["c"]))
    assert whole.schema == batch.schema
    assert whole.to_pylist() == batch.to_pylist()
    whole.validate(full=True)


def test_others_stay_what_they_are() -> None:
    batch = pa.RecordBatch.from_pydict({"a": [["x"], None, []], "b": [1, 2, 3], "c": ["", None, "z"]})
    assert with_offsets(batch) is batch
