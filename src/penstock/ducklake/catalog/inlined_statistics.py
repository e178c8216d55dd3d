"""Computes statistics of rows that are inlined, in the texts that DuckDB's extension gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.ducklake.catalog.inlined_values import evaluated, native_sqls
from penstock.schema.columns import Column
from penstock.schema.statistics import ColumnStatistics
from penstock.schema.types import Order

Bounds = tuple[str | None, str | None, bool | None]  # the least and the greatest value, and whether there is a NaN

_BY_TEXT = ("varchar", "json", "uuid", "blob", "interval", "variant")
# Types whose order and text need no DuckDB.
_SPOKEN: Mapping[str, Callable[[Any], str]] = {
    "boolean": lambda value: "true" if value else "false",
    "int8": str,
    "int16": str,
    "int32": str,
    "int64": str,
    "varchar": str,
}


def inlined_statistics(columns: Sequence[Column], rows: pa.Table) -> tuple[ColumnStatistics, ...]:
    """One for every column that is not nested and every leaf of those that are.

    They differ from the extension's where those would mislead: a NaN is flagged and no bound, and a bound never holds a
    NUL, with which it could not be stored.
    """
    found = [leaf for i, column in enumerate(columns) for leaf in _leaves(column, rows.column(i).combine_chunks())]
    asked = _asked_bounds([(leaf, values) for leaf, values in found if leaf.type.name not in _SPOKEN])
    bounds = [_spoken_bounds(*pair) if pair[0].type.name in _SPOKEN else next(asked) for pair in found]
    return tuple(
        ColumnStatistics(
            leaf.id,
            value_count=len(values) - values.null_count,
            null_count=values.null_count,
            minimum=low,
            maximum=high,
            contains_nan=nan,
        ).storable()
        for (leaf, values), (low, high, nan) in zip(found, bounds, strict=True)
    )


def _leaves(column: Column, values: pa.Array) -> Iterator[tuple[Column, pa.Array]]:
    """The leaves with all their values; those of a NULL struct are NULL, those of a NULL list or map are not there."""
    match column.type.name:
        case "struct":
            children = values.flatten()
        case "list":
            children = [values.flatten()]
        case "map":
            entries = values.filter(values.is_valid())
            children = [entries.keys, entries.items]
        case _:
            yield column, values
            return
    for child, array in zip(column.children, children, strict=True):
        yield from _leaves(child, array)


def _spoken_bounds(leaf: Column, array: pa.Array) -> Bounds:
    text = _SPOKEN[leaf.type.name]
    values = [value for value in array.to_pylist() if value is not None]
    return (text(min(values)), text(max(values)), None) if values else (None, None, None)


def _asked_bounds(found: Sequence[tuple[Column, pa.Array]]) -> Iterator[Bounds]:
    leaves = [leaf for leaf, _ in found]
    longest = max((len(array) for _, array in found), default=0)
    if not longest:
        return iter([(None, None, False if _is_float(leaf) else None) for leaf in leaves])
    padded = [pa.concat_arrays([array, pa.nulls(longest - len(array), array.type)]) for _, array in found]
    table = pa.table(padded, names=[f"c{i}" for i in range(len(padded))])
    values = native_sqls(leaves, table)
    if longest == 1:  # a plain projection is half the work of an aggregation
        [texts] = evaluated([f"CAST({value} AS VARCHAR)" for value in values], leaves, table)
        return map(_only, leaves, texts)
    parts = [part for leaf, value in zip(leaves, values, strict=True) for part in _extremes(leaf, value)]
    [row] = evaluated(parts, leaves, table)
    return zip(row[::3], row[1::3], row[2::3], strict=True)


def _only(leaf: Column, text: str | None) -> Bounds:
    if not _is_float(leaf):
        return text, text, None
    return (None, None, True) if text == "nan" else (text, text, False)


def _extremes(leaf: Column, value: str) -> tuple[str, str, str]:
    """SQL of the bounds."""
    if leaf.type.name in _BY_TEXT:
        text = f"CAST({value} AS VARCHAR)"
        return f"min({text})", f"max({text})", "NULL"
    numbers = f"FILTER (NOT isnan({value}))" if _is_float(leaf) else ""
    low, high = (f"CAST({extreme}({value}) {numbers} AS VARCHAR)" for extreme in ("min", "max"))
    return low, high, f"coalesce(bool_or(isnan({value})), false)" if numbers else "NULL"


def _is_float(leaf: Column) -> bool:
    return leaf.type.order is Order.FLOAT
