"""Writes the statistics of data files as Delta's log has them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from math import isfinite
from typing import Any

from penstock.schema.columns import Column
from penstock.schema.statistics import ColumnStatistics, WrittenFile
from penstock.schema.types import Order

_LONGEST_TEXT = 32
_LAST_CHARACTER = "\U0010ffff"


def statistics_json(file: WrittenFile, columns: Iterable[Column], indexed: int | None) -> str:
    """Returns a file's row count, and bounds and NULL counts of the first `indexed` columns, or of all, as JSON."""
    known = {one.column_id: one for one in file.columns}
    leaves = 0
    minima: dict[str, Any] = {}
    maxima: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    for column in columns:
        leaves += _leaf_count(column)
        if indexed is not None and leaves > indexed:
            break
        _add(minima, column, known, _minimum)
        _add(maxima, column, known, _maximum)
        _add(nulls, column, known, lambda _, one: one.null_count)
    told = {"numRecords": file.record_count, "minValues": minima, "maxValues": maxima, "nullCount": nulls}
    return _json({**told, "tightBounds": True})


def record_count(stats: str | None) -> int | None:
    """Returns how many rows a file has by its statistics, deleted ones included; None where they do not say."""
    try:
        told = json.loads(stats) if stats else {}
    except ValueError:
        return None
    count = told.get("numRecords") if isinstance(told, dict) else None
    return count if isinstance(count, int) else None


def _leaf_count(column: Column) -> int:
    return sum(map(_leaf_count, column.children)) if column.type.name == "struct" else 1


def _add(target: dict[str, Any], column: Column, known: Mapping[int, ColumnStatistics], get: Any) -> None:
    """Puts one column's value into an object of statistics, in which structs are objects themselves."""
    if column.type.name == "struct":
        inner: dict[str, Any] = {}
        for child in column.children:
            _add(inner, child, known, get)
        if inner:
            target[column.name] = inner
    elif column.id in known and not column.type.nested:
        value = get(column, known[column.id])
        if value is not None:
            target[column.name] = value


def _minimum(column: Column, one: ColumnStatistics) -> Any:
    return _bound(column, one.minimum, one, upper=False)


def _maximum(column: Column, one: ColumnStatistics) -> Any:
    return _bound(column, one.maximum, one, upper=True)


def _bound(column: Column, text: str | None, one: ColumnStatistics, *, upper: bool) -> Any:
    if text is None:
        return None
    match column.type.order:
        case Order.INTEGER:
            return int(text)
        case Order.FLOAT:
            return float(text) if one.contains_nan is False and isfinite(float(text)) else None
        case Order.DECIMAL:
            return Decimal(text)
        case Order.TEXT:
            return _cut(text, upper)
        case Order.DATE:
            return None if "(BC)" in text else text
        case Order.TIMESTAMP:
            return None if "(BC)" in text else _timestamp(column, text)
    return None


def _cut(text: str, upper: bool) -> str | None:
    """Cuts a long text to a bound that is not too narrow; None where no text so short stands above it."""
    if len(text) <= _LONGEST_TEXT:
        return text
    if not upper:
        return text[:_LONGEST_TEXT]
    return None if text[_LONGEST_TEXT] == _LAST_CHARACTER else text[:_LONGEST_TEXT] + _LAST_CHARACTER


def _timestamp(column: Column, text: str) -> str:
    instant = column.type.name == "timestamptz"
    return text.removesuffix("+00").replace(" ", "T") + ("Z" if instant else "")


def _json(value: object) -> str:
    """Writes JSON in which decimals have all of their digits: as doubles, rounded inwards, bounds would lose rows."""
    match value:
        case dict():
            return (
                "{" + ",".join(f"{json.dumps(key, ensure_ascii=False)}:{_json(of)}" for key, of in value.items()) + "}"
            )
        case Decimal():
            return f"{value:f}"
    return json.dumps(value, ensure_ascii=False)
