"""Plans how a lake keeps the tables of a DuckDB database, and which rows of them each task brings."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

from penstock.ducklake.model.column_defaults import NO_DEFAULT, with_default
from penstock.ducklake.model.schema_evolution import check_names
from penstock.ducklake.model.snapshot_changes import quoted_name
from penstock.ducklake.moving.duckdb_source import DuckDBSource, SourceColumn, SourceTable
from penstock.ducklake.moving.import_report import ImportReport
from penstock.ducklake.moving.lake_types import kept_column
from penstock.ducklake.moving.texts import lake_default
from penstock.ducklake.writing.table_schemas import NewTable, without_default
from penstock.errors import InvalidError
from penstock.schema.columns import Column
from penstock.storage.duckdb_sql import shown_sql

_BYTES_OF_A_TASK = 64 * 2**20  # at least, in the database: less is not worth a file of its own
_ROWS_OF_A_GROUP = 122_880  # which DuckDB reads as one


@dataclass(frozen=True)
class TablePlan:
    """A table that is to be made: its columns, SQL of their values in their order, and its rows."""

    source: SourceTable
    definition: NewTable
    values: tuple[str, ...]
    row_count: int
    size: int
    last_row: int | None
    inlines: bool  # whether the lake may keep rows of it in its catalog
    changed: tuple[str, ...] = ()  # the columns whose values are of another type

    @property
    def name(self) -> str:
        """The table's name, as a lake's verbs take it."""
        return quoted_name(self.source.schema, self.source.name)

    def queries(self, cores: int) -> Iterator[str]:
        """A query for each task: the rows between two numbers, as the writer takes them."""
        if not self.row_count:
            return
        tasks = self._tasks(cores)
        if tasks == 1 or self.last_row is None:
            yield self._query("")
            return
        groups = math.ceil((self.last_row + 1) / _ROWS_OF_A_GROUP)
        step = math.ceil(groups / tasks) * _ROWS_OF_A_GROUP
        for start in range(0, self.last_row + 1, step):
            yield self._query(f" WHERE rowid BETWEEN {start} AND {start + step - 1}")

    def _tasks(self, cores: int) -> int:
        return max(1, min(cores, math.ceil(self.size / _BYTES_OF_A_TASK)))

    def _query(self, condition: str) -> str:
        stored = ", ".join(f"{value} AS v{place}" for place, value in enumerate(self.values))
        shown = ", ".join(shown_sql(column, f"v{place}") for place, column in enumerate(self.definition.columns))
        return f"SELECT {shown} FROM (SELECT {stored} FROM {self.source.relation}{condition})"


def plan_table(source: DuckDBSource, table: SourceTable, report: ImportReport, *, inlines: bool) -> TablePlan:
    """Choose the types and defaults of a table's columns, and report what is not as it was."""
    rows = source.row_count(table)
    report.brought((table.schema, table.name), "table", rows)
    ids = count(1)
    columns, values, comments, changed = [], [], {}, []
    for column in table.columns:
        place = (table.schema, table.name, column.name)
        kept = kept_column(column.name, column.kind, ids, lambda condition: source.holds(table, condition))
        for change in kept.changes:
            report.changed(place, "column", change)
        if kept.changes:
            changed.append(column.name)
        plain = replace(without_default(kept.column), nulls_allowed=column.nulls_allowed)
        columns.append(_with_default(plain, column, place, report))
        values.append(kept.value)
        if column.comment is not None:
            comments[plain.id] = column.comment
    try:
        check_names(columns, inlining=inlines)
    except InvalidError as error:
        raise InvalidError(f"table {table.schema}.{table.name} of {source.path} cannot be brought: {error}") from None
    definition = NewTable(tuple(columns), comments)
    size, last_row = source.size(table), source.last_row(table)
    return TablePlan(table, definition, tuple(values), rows, size, last_row, inlines, tuple(changed))


def _with_default(plain: Column, column: SourceColumn, place: tuple[str, ...], report: ImportReport) -> Column:
    if column.default is None:
        return plain
    if column.generated:
        how = f"its values are kept, and new rows have to bring theirs: DuckLake does not compute {column.default}"
        report.changed(place, "generated column", how)
        return plain
    try:
        return with_default(plain, lake_default(plain, column.default))
    except InvalidError as error:
        report.left(place, "default", f"{column.default}: {error}; new rows have to bring a value, or have NULL")
        return with_default(plain, NO_DEFAULT)
