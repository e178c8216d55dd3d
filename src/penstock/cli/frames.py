"""Makes listings of DataFrames, with the values as they are in the lake."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC
from itertools import islice
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812

from penstock.cli.machine_values import json_text, json_value
from penstock.cli.reports import Field, Listing
from penstock.cli.texts import number, visible

_NUMBERS = (T.NumericType,)
_NULL = "NULL"


def frame_listing(frame: DataFrame, most: int | None = None) -> Listing:
    """The rows of a DataFrame; with `most`, so many at most, and a note where there are more."""
    names = _told_apart(frame.columns)
    fields = tuple(
        Field(name, name, _shown, isinstance(field.dataType, _NUMBERS), null=_NULL)
        for name, field in zip(names, frame.schema.fields, strict=True)
    )
    if most is None:
        return Listing(fields, _rows(frame, frame.toLocalIterator() if fields else ()))
    found = frame.limit(most + 1).collect() if fields else []
    rest = f"the first {number(most)} rows; --limit 0 shows all" if len(found) > most else None
    return Listing(fields, list(_rows(frame, islice(found, most))), rest)


def _told_apart(names: Sequence[str]) -> list[str]:
    """Names of columns, which may be the same, as keys."""
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return found


def _rows(frame: DataFrame, rows: Any) -> Iterator[list[Any]]:
    converters = [_converter(field.dataType) for field in frame.schema.fields]
    for row in rows:
        yield [None if value is None else convert(value) for convert, value in zip(converters, row, strict=True)]


def _converter(kind: T.DataType) -> Callable[[Any], Any]:
    """What makes a value of a type plain, inside of others too; timestamps are moments in UTC."""
    if isinstance(kind, T.TimestampType):
        return lambda value: value.replace(tzinfo=UTC)
    if isinstance(kind, T.ArrayType):
        item = _nullable(kind.elementType)
        return lambda value: [item(one) for one in value]
    if isinstance(kind, T.MapType):
        key, item = _converter(kind.keyType), _nullable(kind.valueType)
        return lambda value: {_key(key(one)): item(other) for one, other in value.items()}
    if isinstance(kind, T.StructType):
        fields = [(field.name, _nullable(field.dataType)) for field in kind.fields]
        return lambda value: {name: convert(one) for (name, convert), one in zip(fields, value, strict=True)}
    return lambda value: value


def _key(value: Any) -> Any:
    """A key of a map: structs and lists cannot be one in Python."""
    return json_text(value) if isinstance(value, dict | list) else value


def _nullable(kind: T.DataType) -> Callable[[Any], Any]:
    convert = _converter(kind)
    return lambda value: None if value is None else convert(value)


def _shown(value: object) -> str:
    plain = json_value(value)
    return visible(plain) if isinstance(plain, str) else json_text(plain)
