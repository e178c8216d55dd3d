"""Writes staged changes as statements on the catalog's tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.ducklake.catalog.catalog_tables import TABLES
from penstock.ducklake.catalog.commits.provisional_ids import FIRST_PROVISIONAL
from penstock.ducklake.catalog.commits.staging import CatalogRow, Ending, Staging
from penstock.ducklake.catalog.databases import Database, Row
from penstock.ducklake.catalog.id_lists import id_lists

Real = Callable[[Any], Any]


def end_rows(database: Database, staging: Staging, real: Real, which: str = "end_snapshot IS NULL") -> None:
    """End rows with the transaction's snapshot: of those that are meant, the ones of which `which` is true."""
    inlined = [Ending(table, {"row_id": frozenset(ids)}) for table, ids in staging.inlined_ended.items()]
    for ending in (*staging.endings, *inlined):
        _end(database, ending, real(staging.own), real, which)


def add_rows(database: Database, staging: Staging, table: str, real: Real, first_row_ids: Mapping[int, int]) -> None:
    """Add the rows of one catalog table. `real` gives the id for a provisional one; row ids count from the given."""
    rows = staging.rows(table)
    if rows:
        columns = TABLES[table].column_names if table in TABLES else tuple(rows[0])  # a table of inlined deletes
        database.insert(table, columns, _values(rows, columns, real, first_row_ids))


@dataclass(frozen=True)
class TableTotals:
    """What the catalog has counted of a table."""

    records: int = 0
    next_row_id: int = 0
    file_bytes: int = 0


def table_totals(database: Database, staging: Staging) -> dict[int, TableTotals]:
    """The totals of the tables that grow; those of which nothing was counted yet are left out."""
    listed = ", ".join(map(str, staging.growth))
    sql = f"""SELECT table_id, record_count, next_row_id, file_size_bytes FROM ducklake_table_stats
              WHERE table_id IN ({listed})"""
    return {row[0]: TableTotals(*row[1:]) for row in database.query(sql)} if listed else {}


def first_row_ids(staging: Staging, totals: Mapping[int, TableTotals]) -> dict[int, int]:
    """The first row id that is free, of every table that grows."""
    return {id: totals[id].next_row_id if id in totals else 0 for id in staging.growth}


def _values(rows: Sequence[CatalogRow], columns: tuple[str, ...], real: Real, row_ids: Mapping[int, int]) -> list[Row]:
    if "row_id_start" in columns:
        rows = [_with_row_ids(row, row_ids) for row in rows]
    # A commit of many files comes here a million times: no call for a value that stays as it is.
    return [
        tuple([real(v) if type(v := row.get(name)) is int and v >= FIRST_PROVISIONAL else v for name in columns])
        for row in rows
    ]


def _with_row_ids(row: CatalogRow, row_ids: Mapping[int, int]) -> CatalogRow:
    start = row.get("row_id_start")
    return row if start is None else {**row, "row_id_start": start + row_ids[row["table_id"]]}


def _end(database: Database, ending: Ending, snapshot: int, real: Real, which: str) -> None:
    fixed = {name: value for name, value in ending.where.items() if not isinstance(value, frozenset)}
    lists = {name: value for name, value in ending.where.items() if isinstance(value, frozenset)}
    conditions = [f"{database.identifier(name)} = ?" for name in fixed] + [which]
    sql = f"UPDATE {database.identifier(ending.table)} SET end_snapshot = ? WHERE {' AND '.join(conditions)}"
    parameters = [snapshot, *(real(value) for value in fixed.values())]
    if not lists:
        database.execute(sql, parameters)
        return
    [(name, ids)] = lists.items()
    for listed in id_lists(map(real, ids)):
        database.execute(f"{sql} AND {database.identifier(name)} IN ({listed})", parameters)
