"""Finds the values at the bottom of nested columns."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from penstock.schema.columns import Column


def leaves(column: Column, array: pa.Array, missing: int = 0) -> Iterator[tuple[Column, pa.Array, int]]:
    """Each leaf, its values, and how many entries above it hold none: NULL and empty lists, which Parquet counts.

    A column of a type that is not nested is its own leaf.
    """
    match column.type.name:
        case "struct":
            for child, values in zip(column.children, array.flatten(), strict=True):
                yield from leaves(child, values, missing)
        case "list":
            yield from leaves(column.children[0], _items(array), missing + _without_items(array))
        case "map":
            entries = _as_lists(array)
            keys, items = _items(entries).flatten()
            missing += _without_items(entries)
            yield from leaves(column.children[0], keys, missing)
            yield from leaves(column.children[1], items, missing)
        case _:
            yield column, array, missing


def _items(lists: pa.Array) -> pa.Array:
    """The items of all lists, one after another; Arrow cannot tell those of nothing but NULLs for every type."""
    return lists.flatten() if lists.null_count < len(lists) else lists.values[:0]


def _without_items(lists: pa.Array) -> int:
    filled: int | None = pc.sum(pc.greater(pc.list_value_length(lists), 0)).as_py()
    return len(lists) - (filled or 0)


def _as_lists(maps: pa.Array) -> pa.Array:
    entries = pa.StructArray.from_arrays([maps.keys, maps.items], names=["key", "value"])
    offsets = pc.add(maps.offsets, 0)  # a fresh array: a mask needs offsets that are not a slice
    return pa.ListArray.from_arrays(offsets, entries, mask=maps.is_null() if maps.null_count else None)
