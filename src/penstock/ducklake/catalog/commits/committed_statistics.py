"""Brings the statistics of whole tables up to date with a commit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from penstock.ducklake.catalog.commits.provisional_ids import CommittedIds
from penstock.ducklake.catalog.commits.staged_statements import TableTotals
from penstock.ducklake.catalog.commits.staging import Staging, TableGrowth
from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.catalog.objects import columns_at
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.model.objects import ColumnVersion
from penstock.ducklake.model.table_statistics import TableColumnStatistics, first_statistics, merged_statistics
from penstock.schema.columns import Column
from penstock.schema.statistics import ColumnStatistics

_COLUMNS = ("table_id", "column_id", "contains_null", "contains_nan", "min_value", "max_value", "extra_stats")


def grow_tables(
    database: Database,
    staging: Staging,
    committed_ids: CommittedIds,
    totals: Mapping[int, TableTotals],
    history: Callable[[int], Sequence[ColumnVersion]],
) -> None:
    """Count the rows and bytes that a transaction adds, and widen the bounds of its tables' columns.

    `totals` are what was counted before, and `history` gives the versions of a table's columns.
    """
    for staged_id, growth in staging.growth.items():
        table_id = committed_ids.real(staged_id)
        before = totals.get(staged_id)
        _count(database, table_id, before, growth)
        columns = columns_at(history(table_id), At(committed_ids.snapshot))
        leaves = {item.id: item for column in columns for item in column.walk()}
        _widen(database, table_id, growth.statistics, leaves, had_rows=bool(before and before.next_row_id))


def _count(database: Database, table_id: int, before: TableTotals | None, growth: TableGrowth) -> None:
    so_far = before or TableTotals()
    values = (
        so_far.records + growth.records, so_far.next_row_id + growth.row_ids, so_far.file_bytes + growth.file_bytes
    )  # fmt: skip
    if before is not None:
        database.execute(
            "UPDATE ducklake_table_stats SET record_count = ?, next_row_id = ?, file_size_bytes = ? WHERE table_id = ?",
            [*values, table_id],
        )
        return
    names = ("table_id", "record_count", "next_row_id", "file_size_bytes")
    database.insert("ducklake_table_stats", names, [(table_id, *values)])


def _widen(
    database: Database,
    table_id: int,
    statistics: Sequence[Sequence[ColumnStatistics]],
    leaves: Mapping[int, Column],
    had_rows: bool,
) -> None:
    before = _known(database, table_id)
    # Nothing is said of a column that was added to a table with rows, nor of one that lost its bounds.
    everywhere = Counter(item.column_id for items in statistics for item in items)
    told = {id for id, times in everywhere.items() if times == len(statistics) and (id in before or not had_rows)}
    known: dict[int, TableColumnStatistics | None] = {id: row.without_nan() for id, row in before.items()}
    for item in (item for items in statistics for item in items if item.column_id in leaves):
        id, type = item.column_id, leaves[item.column_id].type
        so_far = known.get(id)
        if id not in told:
            known[id] = None
        elif id not in known:
            known[id] = first_statistics(item, type)
        elif so_far is not None:
            known[id] = merged_statistics(so_far, item, type)
    new = [item for item in known.values() if item is not None and item.column_id not in before]
    database.insert("ducklake_table_column_stats", _COLUMNS, [_row(table_id, item) for item in new])
    for column_id, old in before.items():
        _update(database, table_id, old, known[column_id])


def _update(database: Database, table_id: int, old: TableColumnStatistics, new: TableColumnStatistics | None) -> None:
    place = [table_id, old.column_id]
    if new is None:
        database.execute("DELETE FROM ducklake_table_column_stats WHERE table_id = ? AND column_id = ?", place)
    elif new != old:
        database.execute(
            """UPDATE ducklake_table_column_stats
               SET contains_null = ?, contains_nan = ?, min_value = ?, max_value = ?, extra_stats = ?
               WHERE table_id = ? AND column_id = ?""",
            [*_row(table_id, new)[2:], *place],
        )


def _known(database: Database, table_id: int) -> dict[int, TableColumnStatistics]:
    sql = """SELECT column_id, contains_null, contains_nan, min_value, max_value, extra_stats
             FROM ducklake_table_column_stats WHERE table_id = ?"""
    return {
        r[0]: TableColumnStatistics(r[0], _truth(r[1]), _truth(r[2]), r[3], r[4], r[5])
        for r in database.query(sql, [table_id])
    }


def _row(table_id: int, item: TableColumnStatistics) -> tuple[object, ...]:
    return (table_id, item.column_id, item.contains_null, item.contains_nan, item.minimum, item.maximum, item.extra)


def _truth(value: object) -> bool | None:
    return None if value is None else bool(value)
