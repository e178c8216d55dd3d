"""Shows a table's columns with what the catalog knows of their values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.ducklake.catalog.objects import column_comments, column_versions, columns_at
from penstock.ducklake.catalog.shown import Shown
from penstock.ducklake.inspection.live_files import shown_files
from penstock.ducklake.model.column_defaults import has_default
from penstock.ducklake.model.objects import TableInfo
from penstock.schema.columns import Column


@dataclass(frozen=True)
class ColumnSummary:
    """A column, or a field of a nested one.

    The bounds and flags hold for all rows that the table ever had: wider ones than the rows of now may need. None means
    that they are not known.
    """

    id: int
    path: tuple[str, ...]
    name: str
    type: str  # as DuckLake calls it
    nullable: bool
    default: str | None
    comment: str | None
    contains_null: bool | None
    contains_nan: bool | None
    min_value: str | None
    max_value: str | None
    bytes: int | None  # in the files that the snapshot shows
    children: tuple[ColumnSummary, ...] = ()


@dataclass(frozen=True)
class _Known:
    """What is looked up for all columns together."""

    comments: dict[int, str]
    statistics: dict[int, tuple[bool | None, bool | None, str | None, str | None]]
    bytes: dict[int, int]

    def summary(self, column: Column, parents: tuple[str, ...] = ()) -> ColumnSummary:
        path = (*parents, column.name)
        return ColumnSummary(
            column.id,
            path,
            column.name,
            str(column.type),
            column.nulls_allowed,
            column.default_value if has_default(column) else None,
            self.comments.get(column.id),
            *self.statistics.get(column.id, (None, None, None, None)),
            self.bytes.get(column.id),
            tuple(self.summary(child, path) for child in column.children),
        )


def column_summaries(shown: Shown, table: TableInfo) -> list[ColumnSummary]:
    """The columns that a snapshot shows, in their order; fields are inside the columns that they belong to."""
    database, at = shown.database, shown.at
    with database.consistent():
        columns = columns_at(column_versions(database, table.id), at)
        statistics = database.query(
            """SELECT column_id, contains_null, contains_nan, min_value, max_value FROM ducklake_table_column_stats
               WHERE table_id = ?""",
            [table.id],
        )
        known = _Known(
            column_comments(database, at, table.id),
            {row[0]: (_flag(row[1]), _flag(row[2]), row[3], row[4]) for row in statistics},
            _bytes(shown, table),
        )
    return [known.summary(column) for column in columns]


def walk(columns: Iterable[ColumnSummary]) -> Iterable[ColumnSummary]:
    """Columns with all of their fields, parents first."""
    for column in columns:
        yield column
        yield from walk(column.children)


def _bytes(shown: Shown, table: TableInfo) -> dict[int, int]:
    sql = f"""SELECT s.column_id, sum(s.column_size_bytes) FROM ducklake_file_column_stats s
              WHERE s.table_id = ? AND s.data_file_id IN (SELECT d.data_file_id FROM {shown_files(shown, table)})
              GROUP BY s.column_id"""
    with shown.database.joining():
        rows = shown.database.query(sql, [table.id])
    return {column_id: int(size) for column_id, size in rows if size is not None}


def _flag(value: object) -> bool | None:
    return None if value is None else bool(value)
