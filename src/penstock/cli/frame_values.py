"""Asks Spark for values in forms that Python can hold, and makes them what they were.

Python has no dates after the year 9999, no infinite ones, and no intervals of months; Spark hands over what it has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from penstock.cli.machine_values import json_text

_EPOCH = datetime(1970, 1, 1)
_DAY = date.min.toordinal() - _EPOCH.toordinal(), date.max.toordinal() - _EPOCH.toordinal()
_MICROSECOND = timedelta(microseconds=1)
_MOMENT = (datetime.min - _EPOCH) // _MICROSECOND, (datetime.max - _EPOCH) // _MICROSECOND
_INFINITE_DAY, _INFINITE_MOMENT = 2**31 - 1, 2**63 - 1  # as DuckDB keeps them
_AS_TEXT = (T.CalendarIntervalType, T.YearMonthIntervalType)


@dataclass(frozen=True)
class Held:
    """How values of a type come to Python: what Spark is asked for, None for the values themselves, and what they are
    then made, where they are not NULL."""

    asked: Callable[[Column], Column] | None
    plain: Callable[[Any], Any]

    def of(self, column: Column) -> Column:
        """What is asked for of a column."""
        return column if self.asked is None else self.asked(column)

    def value(self, value: Any) -> Any:
        """A value that came."""
        return None if value is None else self.plain(value)


def held(kind: T.DataType) -> Held:
    """How values of a type come, those inside of others too."""
    if isinstance(kind, T.DateType):
        return Held(F.unix_date, _day)
    if isinstance(kind, T.TimestampType):
        return Held(F.unix_micros, _moment)
    if isinstance(kind, T.TimestampNTZType):
        return Held(lambda column: F.unix_micros(column.cast("timestamp")), _local)
    if isinstance(kind, _AS_TEXT):
        return Held(lambda column: column.cast("string"), str)
    if isinstance(kind, T.ArrayType):
        item = held(kind.elementType)
        asked = None if item.asked is None else lambda column: F.transform(column, lambda one: item.of(one))
        return Held(asked, lambda value: [item.value(one) for one in value])
    if isinstance(kind, T.MapType):
        return _map(held(kind.keyType), held(kind.valueType))
    if isinstance(kind, T.StructType):
        return _struct(kind)
    return Held(None, lambda value: value)


def asked(frame: DataFrame, kinds: Sequence[Held]) -> DataFrame:
    """The rows of a frame with what is asked for of its columns, which may have the same names."""
    if all(kind.asked is None for kind in kinds):
        return frame
    columns = [f"_{place}" for place in range(len(kinds))]
    return frame.toDF(*columns).select(*(kind.of(F.col(name)) for kind, name in zip(kinds, columns, strict=True)))


def told_apart(names: Sequence[str]) -> list[str]:
    """Names of columns or fields, which may be the same, as keys."""
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return found


def _map(key: Held, item: Held) -> Held:
    def entries(column: Column) -> Column:
        pairs = F.transform(F.map_entries(column), lambda one: F.struct(key.of(one["key"]), item.of(one["value"])))
        return F.map_from_entries(pairs)

    return Held(
        None if key.asked is None and item.asked is None else entries,
        lambda value: {_key(key.plain(one)): item.value(other) for one, other in value.items()},
    )


def _key(value: Any) -> Any:
    """A key of a map: structs and lists cannot be one in Python."""
    return json_text(value) if isinstance(value, dict | list) else value


def _struct(kind: T.StructType) -> Held:
    fields = [held(field.dataType) for field in kind.fields]
    by_place = T.StructType([T.StructField(f"_{place}", field.dataType) for place, field in enumerate(kind.fields)])
    names = told_apart([field.name for field in kind.fields])

    def rebuilt(column: Column) -> Column:
        placed = column.cast(by_place)  # two fields may have one name
        made = F.struct(
            *(field.of(placed[name]).alias(name) for name, field in zip(by_place.names, fields, strict=True))
        )
        return F.when(column.isNotNull(), made)

    return Held(
        None if all(field.asked is None for field in fields) else rebuilt,
        lambda value: {name: field.value(one) for name, field, one in zip(names, fields, value, strict=True)},
    )


def _day(days: int) -> date | str:
    if _DAY[0] <= days <= _DAY[1]:
        return date.fromordinal(_EPOCH.toordinal() + days)
    return _infinite(days, _INFINITE_DAY) or str(np.datetime64(days, "D"))


def _local(micros: int) -> datetime | str:
    if _MOMENT[0] <= micros <= _MOMENT[1]:
        return _EPOCH + micros * _MICROSECOND
    return _infinite(micros, _INFINITE_MOMENT) or str(np.datetime64(micros, "us"))


def _moment(micros: int) -> datetime | str:
    """A timestamp is a moment in UTC."""
    local = _local(micros)
    if isinstance(local, datetime):
        return local.replace(tzinfo=UTC)
    return local if local.endswith("infinity") else f"{local}+00:00"


def _infinite(number: int, most: int) -> str | None:
    return "infinity" if number >= most else "-infinity" if number <= -most else None
