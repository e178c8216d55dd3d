"""Collects, while rows are written, the statistics that a file's own footer does not tell or tells wrong."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.schema.columns import Column
from penstock.schema.types import Order
from penstock.storage.parquet.leaves import leaves
from penstock.storage.parquet.texts import Value

# PyArrow leaves longer bounds out of its footers.
_LONGEST_IN_FOOTER = 4096
_EVERY_DIGIT = Context(prec=80)
# Types that are kept as floats: their statistics are not in footers.
FLOATING = ("float32", "float64", "int128", "uint128")
Wanted = Callable[[Column], bool]


class Observations:
    """Collects counts of values and NULLs, the least and greatest value and any NaN of the wanted leaves, by column id.

    Texts and blobs have their bounds observed only when one is too long for a footer.
    """

    def __init__(self, columns: tuple[Column, ...], *, counted: Wanted, bounded: Wanted) -> None:
        self.counts: dict[int, tuple[int, int]] = {}
        self.bounds: dict[int, tuple[Value, Value]] = {}
        self.with_nan: set[int] = set()
        self._counted, self._bounded = counted, bounded
        self._columns = [
            (position, column)
            for position, column in enumerate(columns)
            if any(counted(item) or bounded(item) for item in column.walk() if not item.type.nested)
        ]

    def add(self, rows: pa.Table) -> None:
        """Take note of rows that are written."""
        for position, column in self._columns:
            for chunk in rows.column(position).chunks:
                for leaf, values, missing in leaves(column, chunk):
                    if self._counted(leaf):
                        self._count(leaf.id, len(values) - values.null_count, values.null_count + missing)
                    if self._bounded(leaf):
                        self._bound(leaf, values.storage if isinstance(values, pa.ExtensionArray) else values)

    def _count(self, column_id: int, values: int, nulls: int) -> None:
        before = self.counts.get(column_id, (0, 0))
        self.counts[column_id] = before[0] + values, before[1] + nulls

    def _bound(self, leaf: Column, values: pa.Array) -> None:
        if leaf.type.order in (Order.TEXT, Order.BYTES):
            longest = pc.max(pc.binary_length(values)).as_py()
            if longest is None or longest <= _LONGEST_IN_FOOTER:
                return
        elif leaf.type.order is Order.FLOAT and pc.any(pc.is_nan(values)).as_py():
            self.with_nan.add(leaf.id)
            values = values.filter(pc.invert(pc.is_nan(values)))
        least, greatest = (_value(leaf, scalar) for scalar in pc.min_max(values).values())
        if least is not None and greatest is not None:
            self._widen(leaf.id, least, greatest)

    def _widen(self, column_id: int, least: Any, greatest: Any) -> None:
        if column_id in self.bounds:
            before: tuple[Any, Any] = self.bounds[column_id]
            least, greatest = min(before[0], least), max(before[1], greatest)
        self.bounds[column_id] = least, greatest


def footer_observations(columns: tuple[Column, ...]) -> Observations:
    """Observations of what our footers lack: all of floats, long texts, the NULLs of geometries."""
    return Observations(
        columns,
        counted=lambda leaf: leaf.type.name in ("geometry", *FLOATING),
        bounded=lambda leaf: leaf.type.order in (Order.FLOAT, Order.TEXT, Order.BYTES) and leaf.type.name != "uuid",
    )


def copy_observations(columns: tuple[Column, ...]) -> Observations:
    """Observations of what DuckDB's COPY may return wrong: counts of nested values, NaN, bounds of long decimals."""
    return Observations(
        columns,
        counted=lambda leaf: True,
        bounded=lambda leaf: leaf.type.order in (Order.FLOAT, Order.DECIMAL),
    )


def nan_observations(columns: tuple[Column, ...]) -> Observations:
    """Observations of NaN alone."""
    return Observations(columns, counted=lambda leaf: False, bounded=lambda leaf: leaf.type.order is Order.FLOAT)


def _value(leaf: Column, scalar: pa.Scalar) -> Value | None:
    value = scalar.as_py()
    if isinstance(value, str):
        return value.encode()
    if value is not None and leaf.type.order is Order.DECIMAL:
        return int(value.scaleb(leaf.type.scale, _EVERY_DIGIT))
    result: Value | None = value
    return result
