"""Gives empty arrays of Arrow's their first offset, which Spark 4.1 leaves out and not every program does without."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as kinds


def with_offsets(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch as Spark has handed it over, with all arrays in it whole."""
    if not any(map(_lacks_offset, batch.columns)):
        return batch
    return pa.RecordBatch.from_arrays([_whole(column) for column in batch.columns], schema=batch.schema)


def _lacks_offset(array: pa.Array) -> bool:
    if len(array) == 0:
        return not kinds.is_primitive(array.type)
    return any(map(_lacks_offset, _inner(array)))


def _whole(array: pa.Array) -> pa.Array:
    if not _lacks_offset(array):
        return array
    if len(array) == 0:
        return pa.array([], array.type)
    inner = [_whole(one) for one in _inner(array)]
    own = array.buffers()[: 1 if kinds.is_struct(array.type) else 2]
    if kinds.is_map(array.type):
        entry = pa.struct([array.type.key_field, array.type.item_field])
        inner = [pa.Array.from_buffers(entry, len(inner[0]), [None], children=inner)]
    return pa.Array.from_buffers(array.type, len(array), own, array.null_count, array.offset, children=inner)


def _inner(array: pa.Array) -> list[pa.Array]:
    """The arrays that one is made of: Spark's types have no others. None of Spark's is a slice."""
    assert array.offset == 0
    if kinds.is_struct(array.type):
        return [array.field(place) for place in range(array.type.num_fields)]
    if kinds.is_map(array.type):
        return [array.keys, array.items]
    if kinds.is_list(array.type) or kinds.is_large_list(array.type):
        return [array.values]
    return []
