"""Parses partitionings as users write them: `"odd name"`, `bucket(16, id)`, `month(ts)`; and as DuckLake does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.errors import InvalidError, NotFoundError, UnsupportedError
from penstock.partitioning.naming import directory_names
from penstock.partitioning.parts import Day, Hour, Month, Year
from penstock.partitioning.specs import PartitionField, PartitionSpec
from penstock.partitioning.transforms import (
    MOST_BUCKETS,
    MOST_WIDTH,
    Bucket,
    Hash,
    Identity,
    Transform,
    Truncate,
    Unknown,
)
from penstock.schema.columns import Column, find_column

_NAME = r'"(?:[^"]|"")+"|`(?:[^`]|``)+`|[^\W\d][\w$]*'
_COLUMN = rf"\s*(?:{_NAME})\s*"
_COLUMNS = re.compile(rf"{_COLUMN}(?:,{_COLUMN})*")
_PATH = rf"(?:{_NAME})(?:\s*\.\s*(?:{_NAME}))*"
_PATHS = re.compile(rf"\s*{_PATH}\s*(?:,\s*{_PATH}\s*)*")
_FIELD_OF_STRUCT = re.compile(rf"\s*(?:{_NAME})(?:\s*\.\s*(?:{_NAME}))+\s*")
_CALL = re.compile(r"\s*(\w+)\s*\((.*)\)\s*", re.DOTALL)
_BUCKET = re.compile(r"bucket\(\s*(\d{1,18})\s*\)")
_CALENDAR: dict[str, Transform] = {"year": Year(), "month": Month(), "day": Day(), "hour": Hour()}


def parse_transform(text: str) -> Transform:
    """The transform of a `ducklake_partition_column.transform`."""
    name = text.strip().lower()
    bucket = _BUCKET.fullmatch(name)
    if bucket and 0 < int(bucket[1]) <= MOST_BUCKETS:
        return Bucket(int(bucket[1]))
    return Identity() if name == "identity" else _CALENDAR.get(name, Unknown(text))


def parse_partition_field(text: str) -> tuple[tuple[str, ...], Transform]:
    """A field of a partitioning: the names of its columns, as written, and their transform. Only `hash` has several.

    Fields of structs have dots in their names. Buckets are DuckLake's.
    """
    return _EVERY_SYSTEM.field(text)


@dataclass(frozen=True)
class _Language:
    """The transforms that can be written in a system's partitionings."""

    system: str
    ways: str
    foreign: tuple[str, ...] = ()
    nested: bool = False  # whether it partitions by fields of structs

    def field(self, text: str) -> tuple[tuple[str, ...], Transform]:
        call = _CALL.fullmatch(text)
        if call is None:
            return self.column(text, text), Identity()
        function, arguments = call[1].lower(), call[2]
        if function in self.foreign:
            raise UnsupportedError(f"{text}: {self.system} has no transform {function}; write {self.ways}")
        number, _, column = arguments.partition(",")
        match function:
            case "bucket":
                columns = self.column(column, text)
                count = _number(number, MOST_BUCKETS, "number of buckets", "bucket(16, column)", text)
                return columns, Bucket(count)
            case "truncate":
                columns = self.column(column, text)
                width = _number(number, MOST_WIDTH, "width", "truncate(4, column)", text)
                return columns, Truncate(width)
            case "hash":
                return self.columns(arguments, text), Hash()
        if function not in _CALENDAR:
            raise InvalidError(f"{text}: there is no partition transform {call[1]}; write {self.ways}")
        return self.column(arguments, text), _CALENDAR[function]

    def column(self, name: str, text: str) -> tuple[str, ...]:
        found = self.columns(name, text)
        if len(found) > 1:
            raise self.refusal(text)
        return found

    def columns(self, names: str, text: str) -> tuple[str, ...]:
        if _COLUMNS.fullmatch(names):
            return tuple(map(_unquoted, re.findall(_NAME, names)))
        if self.nested and _PATHS.fullmatch(names):
            return tuple(".".join(map(_unquoted, re.findall(_NAME, path))) for path in re.findall(_PATH, names))
        if _FIELD_OF_STRUCT.fullmatch(names):
            raise InvalidError(
                f"{text}: {self.system} partitions by whole columns, not by fields of structs; make the field a column"
                " (a name with a dot in it is written in double quotes)"
            )
        raise self.refusal(text)

    def refusal(self, text: str) -> InvalidError:
        return InvalidError(
            f"{text!r} is no partition field; write {self.ways}, and odd names in double quotes or backticks"
        )


_DUCKLAKE = _Language(
    "DuckLake",
    "column, bucket(16, column), year(column), month(column), day(column) or hour(column)",
    foreign=("truncate", "hash"),
)
_EVERY_SYSTEM = _Language(
    "Penstock",
    "column, bucket(16, column), truncate(4, column), hash(column, ...), year(column), month(column), day(column) or"
    " hour(column)",
    nested=True,
)


def partition_fields(texts: Sequence[str], columns: Sequence[Column]) -> tuple[PartitionField, ...]:
    """The fields of a partitioning of a DuckLake table with these columns.

    Refused, before anything is written, is what DuckDB's extension takes here but can write no row to.
    """
    fields = tuple(_field(index, text, columns) for index, text in enumerate(texts))
    names = directory_names(PartitionSpec(0, fields), columns)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidError(
            f"partitioned by {', '.join(texts)}: two of these would be the directory {twice!r}, which DuckLake refuses;"
            " leave one out"
        )
    return fields


def _field(index: int, text: str, columns: Sequence[Column]) -> PartitionField:
    (name,), transform = _DUCKLAKE.field(text)
    column = find_column(columns, name)
    if column is None:
        there = ", ".join(column.name for column in columns)
        raise NotFoundError(f"{text}: the table has no column {name!r}; its columns are {there}")
    transform.check(column)
    return PartitionField(index, column.id, transform)


def _unquoted(name: str) -> str:
    quote = name[0]
    return name[1:-1].replace(quote * 2, quote) if quote in '"`' else name


def _number(written: str, most: int, thing: str, example: str, text: str) -> int:
    number = written.strip()
    if not re.fullmatch(r"[0-9]{1,18}", number) or not 1 <= int(number) <= most:
        raise InvalidError(f"{text}: the {thing} comes first and is from 1 to {most}, as in {example}")
    return int(number)
