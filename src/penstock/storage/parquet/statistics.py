"""Collects statistics of a file's columns, as the catalog keeps them, from its footer and what that leaves out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow.parquet as pq

from penstock.schema.columns import Column
from penstock.schema.statistics import ColumnStatistics
from penstock.schema.types import Order
from penstock.storage.parquet.observations import Observations
from penstock.storage.parquet.schema import leaf_columns
from penstock.storage.parquet.texts import Value, bound_texts, geometry_extra, shape_name


def footer_statistics(
    columns: Iterable[Column], footer: pq.FileMetaData, observed: Observations
) -> tuple[ColumnStatistics, ...]:
    """The statistics of every leaf of a file that PyArrow wrote; `columns` are the file's first ones."""
    groups = [footer.row_group(index) for index in range(footer.num_row_groups)]
    return tuple(
        _leaf_statistics(leaf, [group.column(position) for group in groups], observed)
        for position, leaf in enumerate(leaf_columns(columns))
    )


def _leaf_statistics(
    leaf: Column, chunks: Sequence[pq.ColumnChunkMetaData], observed: Observations
) -> ColumnStatistics:
    if leaf.id in observed.counts:
        values, nulls = observed.counts[leaf.id]
    else:
        nulls = sum(chunk.statistics.null_count for chunk in chunks)
        values = sum(chunk.num_values for chunk in chunks) - nulls
    minimum, maximum = _bounds(leaf, chunks, observed)
    return ColumnStatistics(
        column_id=leaf.id,
        size=sum(chunk.total_compressed_size for chunk in chunks),
        value_count=values,
        null_count=nulls,
        minimum=minimum,
        maximum=maximum,
        contains_nan=leaf.id in observed.with_nan if leaf.type.order is Order.FLOAT else None,
        extra=_geometry(chunks) if leaf.type.name == "geometry" else None,
    )


def _bounds(
    leaf: Column, chunks: Sequence[pq.ColumnChunkMetaData], observed: Observations
) -> tuple[str | None, str | None]:
    if leaf.type.order is Order.NONE:
        return None, None
    found: list[tuple[Any, Any]] = [observed.bounds[leaf.id]] if leaf.id in observed.bounds else []
    if leaf.type.order is not Order.FLOAT:
        stated = [chunk.statistics for chunk in chunks]
        if not found and any(not item.has_min_max and item.num_values for item in stated):
            return None, None
        found += [(_raw(leaf, s.min_raw), _raw(leaf, s.max_raw)) for s in stated if s.has_min_max]
    if not found:
        return None, None
    return bound_texts(leaf.type, min(least for least, _ in found), max(greatest for _, greatest in found))


def _raw(leaf: Column, value: Any) -> Value:
    """A footer's value: unsigned integers are stored as signed ones, long decimals as bytes."""
    if isinstance(value, bytes) and leaf.type.order is Order.DECIMAL:
        return int.from_bytes(value, "big", signed=True)
    if leaf.type.name.startswith("uint") and value < 0:
        return int(value) + (2**64 if leaf.type.name == "uint64" else 2**32)
    result: Value = value
    return result


def _geometry(chunks: Iterable[pq.ColumnChunkMetaData]) -> str:
    box: dict[str, float] = {}
    types: set[str] = set()
    for chunk in chunks:
        found = chunk.geo_statistics
        if found is None:
            continue
        types.update(map(shape_name, found.geospatial_types or ()))
        for axis in "xyzm":
            least, greatest = getattr(found, f"{axis}min"), getattr(found, f"{axis}max")
            if least is not None and greatest is not None:
                box[f"{axis}min"] = min(box.get(f"{axis}min", least), least)
                box[f"{axis}max"] = max(box.get(f"{axis}max", greatest), greatest)
    return geometry_extra(box, types)
