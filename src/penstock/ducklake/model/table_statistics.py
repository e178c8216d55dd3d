"""Merges what files and inlined rows say into the statistics of a whole table."""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.ducklake.model.bounding_boxes import merged_extra
from penstock.ducklake.model.statistics_order import bounds_order
from penstock.ducklake.model.variant_paths import merged_paths
from penstock.schema.statistics import ColumnStatistics
from penstock.schema.types import Order, Type

_NAN = "nan"


@dataclass(frozen=True)
class TableColumnStatistics:
    """A row of `ducklake_table_column_stats`; a bound that is None is not known. No NaN is a bound."""

    column_id: int
    contains_null: bool | None
    contains_nan: bool | None
    minimum: str | None
    maximum: str | None
    extra: str | None = None

    @property
    def is_unbounded(self) -> bool:
        """Whether neither bound is known."""
        return self.minimum is None and self.maximum is None

    def without_nan(self) -> TableColumnStatistics:
        """The same with a flag in the place of bounds that are NaN, as DuckDB writes them for inlined rows."""
        if _NAN not in (self.minimum, self.maximum):
            return self
        low, high = (None if bound == _NAN else bound for bound in (self.minimum, self.maximum))
        return replace(self, contains_nan=True, minimum=low, maximum=high)


def first_statistics(new: ColumnStatistics, type: Type) -> TableColumnStatistics | None:
    """The statistics of a table's first rows, or None where they are no bound.

    DuckDB takes two missing bounds to mean that every value so far was NULL, unless the type has no bounds at all.
    """
    nulls = None if new.null_count is None else new.null_count > 0
    stated = TableColumnStatistics(new.column_id, nulls, new.contains_nan, new.minimum, new.maximum, new.extra)
    unknown = stated.is_unbounded and new.value_count != 0 and not new.contains_nan and type.order is not Order.NONE
    return None if unknown else stated


def merged_statistics(known: TableColumnStatistics, new: ColumnStatistics, type: Type) -> TableColumnStatistics | None:
    """The statistics of a table's column after more rows came, or None where they are not a bound any more."""
    other = first_statistics(new, type)
    if other is None:
        return None
    nulls = _either(known.contains_null, other.contains_null)
    nan = _either(known.contains_nan, other.contains_nan)
    if new.value_count == 0:
        return replace(known, contains_null=nulls)
    if type.order is Order.NONE:
        return replace(other, contains_null=nulls, extra=_merged_extra(known, other, type))
    if other.is_unbounded:  # all of its values are NaN
        return replace(known, contains_null=nulls, contains_nan=nan)
    if known.is_unbounded:
        # Texts with a NUL have no bounds either, when DuckDB wrote them.
        had_values = type.order is Order.TEXT and not known.contains_null
        return None if had_values else replace(other, contains_null=nulls, contains_nan=nan)
    low, high = _widened(known, other, type)
    if low is None and high is None:
        return None
    return TableColumnStatistics(known.column_id, nulls, nan, low, high)


def _either(left: bool | None, right: bool | None) -> bool | None:
    if left or right:
        return True
    return None if left is None or right is None else False


def _merged_extra(known: TableColumnStatistics, other: TableColumnStatistics, type: Type) -> str | None:
    if type.name == "variant":
        return merged_paths(known.extra, other.extra)
    is_first = known.extra is None and known.contains_null
    return other.extra if is_first else merged_extra(known.extra, other.extra)


def _widened(known: TableColumnStatistics, other: TableColumnStatistics, type: Type) -> tuple[str | None, str | None]:
    order = bounds_order(type)
    low = None if known.minimum is None or other.minimum is None else min(known.minimum, other.minimum, key=order)
    high = None if known.maximum is None or other.maximum is None else max(known.maximum, other.maximum, key=order)
    return low, high
