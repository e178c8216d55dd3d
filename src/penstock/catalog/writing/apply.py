"""Staged changes as statements on the catalog's tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from penstock.catalog.databases import Database, Row
from penstock.catalog.tables import TABLES
from penstock.catalog.writing.staging import CatalogRow, Ending, Staging

_MOST_NUMBERS = 5000  # in one statement
Real = Callable[[Any], Any]


def apply(database: Database, staging: Staging, real: Real, first_row_ids: Mapping[int, int]) -> None:
    """End rows, then add rows. `real` gives the number for a staged one; row ids count from the tables' first free."""
    for ending in staging.endings:
        _end(database, ending, real(staging.own), real)
    for table, row_ids in staging.inlined_ended.items():
        _end(database, Ending(table, {"row_id": frozenset(row_ids)}), real(staging.own), real)
    for table, rows in staging.added.items():
        columns = TABLES[table].column_names if table in TABLES else tuple(rows[0])  # a table of inlined deletes
        database.insert(table, columns, [_values(row, columns, real, first_row_ids) for row in rows])


def first_row_ids(database: Database, staging: Staging) -> dict[int, int]:
    """The first row id that is free, of every table that grows."""
    listed = ", ".join(map(str, staging.growth))
    sql = f"SELECT table_id, next_row_id FROM ducklake_table_stats WHERE table_id IN ({listed})"
    known: dict[int, int] = dict(database.query(sql)) if listed else {}
    return {table_id: known.get(table_id, 0) for table_id in staging.growth}


def _values(row: CatalogRow, columns: tuple[str, ...], real: Real, row_ids: Mapping[int, int]) -> Row:
    values = {**row}
    if values.get("row_id_start") is not None:
        values["row_id_start"] += row_ids[values["table_id"]]
    return tuple(real(values.get(name)) for name in columns)


def _end(database: Database, ending: Ending, snapshot: int, real: Real) -> None:
    fixed = {name: value for name, value in ending.where.items() if not isinstance(value, frozenset)}
    lists = {name: value for name, value in ending.where.items() if isinstance(value, frozenset)}
    conditions = [f"{database.identifier(name)} = ?" for name in fixed] + ["end_snapshot IS NULL"]
    sql = f"UPDATE {database.identifier(ending.table)} SET end_snapshot = ? WHERE {' AND '.join(conditions)}"
    parameters = [snapshot, *(real(value) for value in fixed.values())]
    if not lists:
        database.execute(sql, parameters)
        return
    [(name, numbers)] = lists.items()
    ordered = sorted(real(number) for number in numbers)
    for start in range(0, len(ordered), _MOST_NUMBERS):
        listed = ", ".join(map(str, ordered[start : start + _MOST_NUMBERS]))
        database.execute(f"{sql} AND {database.identifier(name)} IN ({listed})", parameters)
