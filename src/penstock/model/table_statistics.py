"""Statistics of a whole table: what its files and inlined rows say together."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from penstock.model.bounding_boxes import merged_extra
from penstock.model.statistics import ColumnStatistics
from penstock.model.types import Order, Type

_MOMENT = re.compile(r"(-?\d+)-(\d\d)-(\d\d)(.*?)(?: ?\(BC\))?", re.DOTALL)


@dataclass(frozen=True)
class TableColumnStatistics:
    """A row of `ducklake_table_column_stats`; a bound that is None is not known."""

    column_id: int
    contains_null: bool | None
    contains_nan: bool | None
    minimum: str | None
    maximum: str | None
    extra: str | None = None


def first(statistics: ColumnStatistics) -> TableColumnStatistics:
    """What one set of rows says by itself."""
    nulls = statistics.null_count
    return TableColumnStatistics(
        statistics.column_id,
        None if nulls is None else nulls > 0,
        statistics.contains_nan,
        statistics.minimum,
        statistics.maximum,
        statistics.extra,
    )


def merged(known: TableColumnStatistics, new: ColumnStatistics, type: Type) -> TableColumnStatistics | None:
    """What is known of a table's column after more rows came, or None where that is not a bound any more.

    DuckDB takes two missing bounds to mean that every value so far was NULL, unless the type has no bounds at all.
    """
    other = first(new)
    nulls = _either(known.contains_null, other.contains_null)
    nan = _either(known.contains_nan, other.contains_nan)
    if new.value_count == 0:
        return replace(known, contains_null=nulls)
    if known.minimum is None and known.maximum is None:
        extra = merged_extra(known.extra, other.extra) if known.extra else other.extra
        return replace(other, contains_null=nulls, contains_nan=nan, extra=extra)
    low, high = _widened(known, other, type)
    if low is None and high is None:
        return None
    return TableColumnStatistics(known.column_id, nulls, nan, low, high, merged_extra(known.extra, other.extra))


def _either(left: bool | None, right: bool | None) -> bool | None:
    if left or right:
        return True
    return None if left is None or right is None else False


def _widened(known: TableColumnStatistics, other: TableColumnStatistics, type: Type) -> tuple[str | None, str | None]:
    order = _ordering(type)
    low = None if known.minimum is None or other.minimum is None else min(known.minimum, other.minimum, key=order)
    high = None if known.maximum is None or other.maximum is None else max(known.maximum, other.maximum, key=order)
    return low, high


def _ordering(type: Type) -> Callable[[str], Any]:
    match type.order:
        case Order.BOOLEAN:
            return lambda text: text in ("1", "true")
        case Order.INTEGER:
            return int
        case Order.FLOAT:
            return float
        case Order.DECIMAL:
            return Decimal
        case Order.DATE | Order.TIMESTAMP:
            return _moment
        case _:
            return lambda text: text.encode()


def _moment(text: str) -> tuple[int, str]:
    """Dates and timestamps as DuckDB prints them; years have four digits or more, and those before 1 count back."""
    match = _MOMENT.fullmatch(text)
    if match is None:  # infinity
        return (-(10**9) if text.startswith("-") else 10**9, "")
    year = int(match[1])
    return (1 - year if text.endswith("(BC)") else year, "".join(match.groups()[1:]))
