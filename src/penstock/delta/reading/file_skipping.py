"""Decides which files of a version can hold a matching row, by the partition values and statistics in the log."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from pyspark.sql import types as T  # noqa: N812

from penstock.delta.format.actions import AddFile
from penstock.delta.format.partition_values import from_text
from penstock.delta.format.schema import TableSchema, type_name
from penstock.errors import PenstockError
from penstock.predicates import And, Anything, ColumnIn, Implication, Nothing, Or
from penstock.predicates.calendar import days_of
from penstock.predicates.values import Cut, Interval, ValueSet
from penstock.schema.columns import Column
from penstock.schema.types import Order

_MILLISECOND = 1000  # the precision of timestamps in statistics; writers cut them
_CUT_TEXT = 32  # characters after which writers may cut texts
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class FileSkipping:
    """Decides which files can match.

    `partitions` has the name in the log and the type of each partition column by its id, `paths` the place in the
    statistics of each other column.
    """

    partitions: Mapping[int, tuple[str, str]]
    paths: Mapping[int, tuple[str, ...]]

    @classmethod
    def of_table(cls, schema: TableSchema, columns: Sequence[Column]) -> FileSkipping:
        """Decides by predicates over the table's columns, as its users see them."""
        partitions: dict[int, tuple[str, str]] = {}
        paths: dict[int, tuple[str, ...]] = {}
        for column, item in zip(columns, schema.struct.fields, strict=True):
            if item.name in schema.partition_columns:
                partitions[column.id] = schema.physical_name(item), type_name(item)
            else:
                paths.update(_paths_of_column(column, item, schema, ()))
        return cls(partitions, paths)

    @classmethod
    def of_files(cls, columns: Sequence[Column]) -> FileSkipping:
        """Decides by predicates over the data columns, under the names that they have in files."""
        return cls({}, {item.id: path for column in columns for item, path in _leaves(column, ())})

    def can_hold(self, file: AddFile, implication: Implication) -> bool:
        """Tells whether a file can hold a row of which the implication is true."""
        if isinstance(implication, Anything):
            return True
        return self._possible(implication, file, _parsed(file.stats))

    def _possible(self, implication: Implication, file: AddFile, told: Mapping[str, Any]) -> bool:
        match implication:
            case Anything():
                return True
            case Nothing():
                return False
            case And(children):
                return all(self._possible(child, file, told) for child in children)
            case Or(children):
                return any(self._possible(child, file, told) for child in children)
            case ColumnIn(column, _, values):
                if column.id in self.partitions:
                    return _partition_value(file, *self.partitions[column.id]) in values
                path = self.paths.get(column.id)
                return path is None or not (values & _values(told, column, path)).empty


def _paths_of_column(
    column: Column, item: T.StructField, schema: TableSchema, above: tuple[str, ...]
) -> Mapping[int, tuple[str, ...]]:
    """Returns where the statistics of a column, or of the fields of a struct, are."""
    path = (*above, schema.physical_name(item))
    if not isinstance(item.dataType, T.StructType):
        return {column.id: path}
    found: dict[int, tuple[str, ...]] = {}
    for child, inner in zip(column.children, item.dataType.fields, strict=True):
        found.update(_paths_of_column(child, inner, schema, path))
    return found


def _leaves(column: Column, above: tuple[str, ...]) -> Iterator[tuple[Column, tuple[str, ...]]]:
    path = (*above, column.name)
    if column.type.name == "struct":
        for child in column.children:
            yield from _leaves(child, path)
    else:
        yield column, path


def _parsed(stats: str | None) -> Mapping[str, Any]:
    try:
        told = json.loads(stats, parse_float=Decimal) if stats else {}
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _partition_value(file: AddFile, name: str, type_name: str) -> Any:
    return from_text(file.partition_values.get(name), type_name)


def _values(told: Mapping[str, Any], column: Column, path: tuple[str, ...]) -> ValueSet:
    """Returns the values that the statistics leave possible."""
    nulls, rows = _at(told.get("nullCount"), path), told.get("numRecords")
    if nulls is not None and nulls == rows and told.get("tightBounds") is not False:
        return ValueSet(null=True)
    try:
        low = _bound(_at(told.get("minValues"), path), column, upper=False)
        high = _bound(_at(told.get("maxValues"), path), column, upper=True)
    except (ValueError, TypeError, ArithmeticError, PenstockError):
        low = high = None
    # NaN is in no bounds, or beyond them: writers differ.
    return ValueSet.of([Interval(low, high)], null=nulls != 0, nan=column.type.order is Order.FLOAT)


def _at(statistics: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        statistics = statistics.get(name) if isinstance(statistics, dict) else None
    return statistics


def _bound(value: Any, column: Column, *, upper: bool) -> Cut | None:
    if value is None:
        return None
    match column.type.order:
        case Order.INTEGER if isinstance(value, int):
            return Cut(value, upper)
        case Order.FLOAT if isinstance(value, int | Decimal):
            return Cut(float(value), upper)
        case Order.DECIMAL if isinstance(value, int | Decimal):
            # Many writers make a double of it.
            slack = abs(Decimal(value)) * Decimal("1e-14")
            return Cut(Decimal(value) + (slack if upper else -slack), upper)
        case Order.TEXT if isinstance(value, str):
            return _text(value, upper)
        case Order.DATE:
            year, month, day = map(int, str(value)[:10].split("-"))
            return Cut(days_of(year, month, day), upper)
        case Order.TIMESTAMP:
            micros = _micros(str(value))
            return Cut(micros + _MILLISECOND if upper else micros - _MILLISECOND, upper)
    return None


def _text(value: str, upper: bool) -> Cut:
    if not upper or len(value) < _CUT_TEXT:
        return Cut(value, upper)
    return Cut(value[: _CUT_TEXT - 1] + "\U0010ffff" * 2, True)


def _micros(text: str) -> int:
    parsed = datetime.fromisoformat(text)
    return ((parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)) - _EPOCH) // timedelta(microseconds=1)
