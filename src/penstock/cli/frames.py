"""Makes listings of DataFrames, with the values as they are in the lake."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812

from penstock.cli.frame_values import Held, asked, held, told_apart
from penstock.cli.machine_values import json_text, json_value
from penstock.cli.reports import Field, Listing
from penstock.cli.texts import number, visible

_NUMBERS = (T.NumericType,)
_NULL = "NULL"


def frame_listing(frame: DataFrame, most: int | None = None) -> Listing:
    """The rows of a DataFrame; with `most`, so many at most, and a note where there are more."""
    names = told_apart(frame.columns)
    fields = tuple(
        Field(name, name, _shown, isinstance(field.dataType, _NUMBERS), null=_NULL)
        for name, field in zip(names, frame.schema.fields, strict=True)
    )
    kinds = [held(field.dataType) for field in frame.schema.fields]
    rows = asked(frame, kinds)
    if most is None:
        return Listing(fields, _rows(kinds, rows.toLocalIterator() if fields else ()))
    found = rows.limit(most + 1).collect() if fields else []
    rest = f"the first {number(most)} rows; --limit 0 shows all" if len(found) > most else None
    return Listing(fields, list(_rows(kinds, islice(found, most))), rest)


def _rows(kinds: Sequence[Held], rows: Iterable[Sequence[Any]]) -> Iterator[list[Any]]:
    for row in rows:
        yield [kind.value(value) for kind, value in zip(kinds, row, strict=True)]


def _shown(value: object) -> str:
    plain = json_value(value)
    return visible(plain) if isinstance(plain, str) else json_text(plain)
