"""Partitionings as users write them: `region`, `"odd name"`, `bucket(16, id)`, `month(ts)`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from penstock.errors import InvalidError, NotFoundError, UnsupportedError
from penstock.model.columns import Column, find_column
from penstock.partitioning.naming import directory_names
from penstock.partitioning.specs import PartitionField, PartitionSpec
from penstock.partitioning.transforms import MOST_BUCKETS, Bucket, Day, Hour, Identity, Month, Transform, Year

_NAME = r'"(?:[^"]|"")+"|`(?:[^`]|``)+`|[^\W\d][\w$]*'
_COLUMN = re.compile(rf"\s*({_NAME})\s*")
_FIELD_OF_STRUCT = re.compile(rf"\s*(?:{_NAME})(?:\s*\.\s*(?:{_NAME}))+\s*")
_CALL = re.compile(r"\s*(\w+)\s*\((.*)\)\s*", re.DOTALL)
_CALENDAR: dict[str, Transform] = {"year": Year(), "month": Month(), "day": Day(), "hour": Hour()}
_FOREIGN = ("truncate", "hash")
_WAYS = "column, bucket(16, column), year(column), month(column), day(column) or hour(column)"


def parse_partition_field(text: str) -> tuple[str, Transform]:
    """A field of a partitioning: the column's name, as written, and its transform."""
    call = _CALL.fullmatch(text)
    if call is None:
        return _column(text, text), Identity()
    function, arguments = call[1].lower(), call[2]
    if function in _FOREIGN:
        raise UnsupportedError(f"{text}: DuckLake has no transform {function}; write {_WAYS}")
    if function == "bucket":
        count, _, column = arguments.partition(",")
        return _column(column, text), Bucket(_count(count, text))
    if function not in _CALENDAR:
        raise InvalidError(f"{text}: there is no partition transform {call[1]}; write {_WAYS}")
    return _column(arguments, text), _CALENDAR[function]


def partition_fields(texts: Sequence[str], columns: Sequence[Column]) -> tuple[PartitionField, ...]:
    """The fields of a partitioning of a table with these columns.

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
    name, transform = parse_partition_field(text)
    column = find_column(columns, name)
    if column is None:
        there = ", ".join(column.name for column in columns)
        raise NotFoundError(f"{text}: the table has no column {name!r}; its columns are {there}")
    transform.check(column)
    return PartitionField(index, column.id, transform)


def _column(name: str, text: str) -> str:
    match = _COLUMN.fullmatch(name)
    if match:
        return _unquoted(match[1])
    if _FIELD_OF_STRUCT.fullmatch(name):
        raise InvalidError(
            f"{text}: DuckLake partitions by whole columns, not by fields of structs; make the field a column"
            " (a name with a dot in it is written in double quotes)"
        )
    raise InvalidError(f"{text!r} is no partition field; write {_WAYS}, and odd names in double quotes or backticks")


def _unquoted(name: str) -> str:
    quote = name[0]
    return name[1:-1].replace(quote * 2, quote) if quote in '"`' else name


def _count(count: str, text: str) -> int:
    number = count.strip()
    if not re.fullmatch(r"[0-9]{1,18}", number) or not 1 <= int(number) <= MOST_BUCKETS:
        raise InvalidError(
            f"{text}: the number of buckets comes first and is from 1 to {MOST_BUCKETS}, as in bucket(16, column)"
        )
    return int(number)
