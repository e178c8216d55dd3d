"""Reads the values of columns that are in a file's path, as DuckDB reads them."""

from __future__ import annotations

from dataclasses import replace

import duckdb

from penstock.ducklake.reading.initial_defaults import typed_default
from penstock.ducklake.reading.time_texts import spark_date, spark_timestamp
from penstock.partitioning.texts import is_infinite, read_text
from penstock.schema.columns import Column
from penstock.schema.types import Order


def castable_text(text: str, column: Column, nanoseconds: bool) -> str:
    """The text that Spark casts to the value that DuckDB casts the path's text to.

    Dates and timestamps need one: DuckDB rounds those of seconds and milliseconds, and knows infinite ones. A text that
    DuckDB cannot read stays as it is, and so does a moment of no zone, which is one of the reader's session for both.
    `nanoseconds` means that a timestamp_ns is shown as a number.
    """
    type = column.type
    if type.order not in (Order.DATE, Order.TIMESTAMP) or (type.name == "timestamptz" and any(map(str.isdigit, text))):
        return text
    try:
        value = _number(text, column)
    except duckdb.Error:
        return text
    if type.order is Order.DATE:
        return spark_date(value)
    if type.name == "timestamp_ns":
        if nanoseconds:
            return str(value)
        value = value if is_infinite(value, type) else value // 1000
    return spark_timestamp(value) + "Z" * (type.name == "timestamptz")


def _number(text: str, column: Column) -> int:
    """Days, microseconds or, of a timestamp_ns, nanoseconds since 1970. A duckdb.Error where DuckDB reads none."""
    try:
        value: int = read_text(text, column.type)  # spares DuckDB most of the texts
    except ValueError:
        found = typed_default(replace(column, initial_default=text), nanoseconds=True)
        value = found.as_py() if column.type.name == "timestamp_ns" else found.value
    return value
