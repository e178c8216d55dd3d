"""Adds up, inside the catalog database, what it knows of the rows of whole data files.

Only what is exact is told. A column's values are counted where the counts of values and of NULLs make up the file's
rows. Bounds are taken of types whose texts are the values themselves, of columns that never had another type: those of
strings are cut, those of floats leave out NaN.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Context, Decimal
from functools import partial
from typing import Any, Literal

from penstock.ducklake.catalog.dialects import Dialect, form
from penstock.ducklake.catalog.file_pruning import ALL_SEEN, Condition, Seen
from penstock.schema.columns import Column
from penstock.schema.types import Order, Type

_EXACT_DIGITS = 15  # decimals of so many digits are told apart by doubles, which is what SQLite has for them
_MOST_COLUMNS = 300  # databases have limits for the columns of a query: PostgreSQL 1664, SQLite 2000
_WIDE = Context(prec=80)
_EPOCH = datetime(1970, 1, 1)
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d:\d\d(?:[.]\d{1,6})?)?")
Function = Literal["count", "min", "max"]


@dataclass(frozen=True)
class FileAggregate:
    """A function over the rows of files: of a column, or of the rows themselves."""

    function: Function
    column: Column | None

    def is_told(self, dialect: Dialect) -> bool:
        """Whether a catalog tells it, of files that have the statistics that they should have."""
        if self.column is None:
            return self.function == "count"
        if self.function == "count":
            return self.column.type.order is not Order.NONE
        return _reading(self.column.type, dialect) is not None

    @property
    def is_bound(self) -> bool:
        """Whether it is a least or greatest value."""
        return self.function != "count"

    def value(self, found: Any) -> str | None:
        """What the database found, as text: dates and times as their number of days or microseconds."""
        if self.column is None or not self.is_bound:
            return str(int(found or 0))
        return None if found is None else _value_text(self.column.type, found)


@dataclass(frozen=True)
class FileTotals:
    """Aggregates over the files that are covered: files of which every row counts."""

    aggregates: tuple[FileAggregate, ...]
    covered: Condition
    table_id: int
    dialect: Dialect
    seen: Seen = ALL_SEEN

    @property
    def is_feasible(self) -> bool:
        """Whether a database takes the query."""
        return len(self._columns) <= _MOST_COLUMNS

    def files(self) -> Condition:
        """The data files `d` of which all of the aggregates are known."""
        source, known = self._source(), self._known()
        sql = f"SELECT d.data_file_id FROM {source.sql} WHERE d.table_id = ? AND {known.sql}"
        parameters = (*source.parameters, self.table_id, *known.parameters)
        return Condition(f"d.data_file_id IN ({sql})", parameters)

    def query(self, files: Condition) -> Condition:
        """A query of one row over these files: how many are known, how many not, and the aggregates of the former."""
        source, known = self._source(), self._known()
        inner = [f"CASE WHEN {known.sql} THEN 1 ELSE 0 END AS known", "d.record_count AS held"]
        for column in self._columns:
            inner.append(f"s.v{column.id} AS v{column.id}")
        for column in self._bounded:
            reading = self._reading_of(column)
            inner += [f"{reading(f's.{end}{column.id}')} AS {end}{column.id}" for end in "lh"]
        outer = ["SUM(f.known)", "SUM(1 - f.known)", *map(self._total, self.aggregates)]
        rows = f"SELECT {', '.join(inner)} FROM {source.sql} WHERE {files.sql}"
        return Condition(
            f"SELECT {', '.join(outer)} FROM ({rows}) f",
            (*known.parameters, *source.parameters, *files.parameters),
        )

    @property
    def _columns(self) -> list[Column]:
        """The columns whose statistics are needed."""
        return list({one.column.id: one.column for one in self.aggregates if one.column}.values())

    @property
    def _bounded(self) -> list[Column]:
        return list({one.column.id: one.column for one in self.aggregates if one.column and one.is_bound}.values())

    def _reading_of(self, column: Column) -> Callable[[str], str]:
        reading = _reading(column.type, self.dialect)
        assert reading is not None, f"the bounds of {column.type} are not exact"
        return reading

    def _total(self, one: FileAggregate) -> str:
        if one.column is None:
            return "SUM(CASE WHEN f.known = 1 THEN f.held ELSE 0 END)"
        match one.function:
            case "count":
                return f"SUM(CASE WHEN f.known = 1 THEN f.v{one.column.id} ELSE 0 END)"
            case "min":
                return f"MIN(CASE WHEN f.known = 1 THEN f.l{one.column.id} END)"
            case "max":
                return f"MAX(CASE WHEN f.known = 1 THEN f.h{one.column.id} END)"

    def _source(self) -> Condition:
        """Data files `d`, each with its row `s` of statistics: values, NULLs, lowest and highest of each column."""
        columns = self._columns
        if not columns:
            return Condition("ducklake_data_file d")
        taken = ["data_file_id", "COUNT(*) AS told"]
        for column in columns:
            taken += [_of_column(column, "value_count", "v"), _of_column(column, "null_count", "n")]
        for column in self._bounded:
            taken += [_of_column(column, "min_value", "l"), _of_column(column, "max_value", "h")]
        ids = ", ".join(str(column.id) for column in columns)
        statistics = f"""SELECT {", ".join(taken)} FROM ducklake_file_column_stats
                         WHERE table_id = ? AND column_id IN ({ids}) GROUP BY data_file_id"""
        sql = f"ducklake_data_file d LEFT JOIN ({statistics}) s ON s.data_file_id = d.data_file_id"
        return Condition(sql, (self.table_id,))

    def _known(self) -> Condition:
        """The covered files whose rows and statistics tell all of the aggregates; may be NULL for others."""
        conditions = [self.covered.sql, "d.record_count IS NOT NULL"]
        parameters = list(self.covered.parameters)
        if self._columns:
            conditions.append(f"s.told = {len(self._columns)}")  # one row of statistics for each column
        conditions += [f"s.v{column.id} + s.n{column.id} = d.record_count" for column in self._columns]
        for column in self._bounded:
            reading = self._reading_of(column)
            both = " AND ".join(f"{reading(f's.{end}{column.id}')} IS NOT NULL" for end in "lh")
            conditions.append(f"(s.v{column.id} = 0 OR ({both}))")
            other = f"table_id = ? AND column_id = ? AND column_type <> ? AND {self.seen.columns}"
            conditions.append(f"(SELECT COUNT(*) FROM ducklake_column WHERE {other}) = 0")
            parameters += [self.table_id, column.id, str(column.type)]
        return Condition(" AND ".join(conditions), tuple(parameters))


def _of_column(column: Column, what: str, name: str) -> str:
    return f"MAX(CASE WHEN column_id = {column.id} THEN {what} END) AS {name}{column.id}"


def _reading(type: Type, dialect: Dialect) -> Callable[[str], str] | None:
    """SQL that reads an exact bound from its text, NULL where that is of another form; None if there is no way."""
    match type.order:
        case Order.BOOLEAN:
            return dialect.boolean
        case Order.INTEGER:
            return dialect.unsigned if type.name == "uint64" else dialect.integer
        case Order.DECIMAL if dialect.exact_decimals:
            return None if dialect.decimal("", type) is None else lambda text: dialect.decimal(text, type) or "NULL"
        case Order.DECIMAL:
            return dialect.number if type.precision <= _EXACT_DIGITS else None
        case Order.DATE | Order.TIMESTAMP if type.name != "timestamp_ns":
            return partial(_finite_time, type=type, dialect=dialect)
    return None


def _finite_time(text: str, type: Type, dialect: Dialect) -> str:
    return dialect.text(f"CASE WHEN {dialect.in_form(text, form(type))} THEN {text} END")


def _value_text(type: Type, found: Any) -> str:
    match type.order:
        case Order.BOOLEAN:
            return "true" if int(found) else "false"
        case Order.INTEGER:
            return str(int(found))
        case Order.DECIMAL:
            return format(Decimal(found).quantize(Decimal(1).scaleb(-type.scale), context=_WIDE), "f")
    text = (found.decode() if isinstance(found, bytes) else str(found)).removesuffix("+00")
    if not _TIMESTAMP.fullmatch(text):
        raise ValueError(f"{text!r} is no date or time")
    passed = datetime.fromisoformat(text) - _EPOCH
    return str(passed.days if type.order is Order.DATE else passed // timedelta(microseconds=1))
