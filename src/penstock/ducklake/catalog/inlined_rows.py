"""Reads the rows that live in the catalog itself, in one table for each shape that the lake's table had."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.catalog.databases.base import InlinedColumn
from penstock.ducklake.catalog.inlined_values import evolved_rows
from penstock.ducklake.catalog.objects import columns_at, inlined_column_versions
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.model.objects import ColumnVersion
from penstock.schema.columns import Column
from penstock.storage.duckdb_sql import duckdb_type, select_list

_SNAPSHOTS = ("begin_snapshot", "end_snapshot")
_ROWS_A_BATCH = 50_000


def inlined_rows(
    database: Database,
    table_id: int,
    at: At,
    columns: Sequence[Column],
    history: Sequence[ColumnVersion],
    *,
    nanoseconds: bool = False,
) -> list[pa.Table]:
    """The inlined rows that a snapshot shows: columns `v0, v1, ...` of the given columns, and `row_id`."""
    tables = list(_stored_rows(database, table_id, at.visible(), columns, history, nanoseconds))
    for shape, staged, row_ids in database.staged_inlined(table_id):
        shown = evolved_rows(shape, columns, staged, nanoseconds=nanoseconds)
        named = shown.rename_columns([f"v{i}" for i in range(len(columns))])
        tables.append(named.append_column("row_id", row_ids))
    return tables


def changed_inlined_rows(
    database: Database,
    table_id: int,
    where: str,
    snapshot: Literal["begin_snapshot", "end_snapshot"],
    columns: Sequence[Column],
    history: Sequence[ColumnVersion],
    *,
    nanoseconds: bool = False,
) -> list[pa.Table]:
    """The committed inlined rows that a condition is true for, with the snapshot they begin or end with.

    They have columns `v0, v1, ...` of the given columns, `row_id` and `snapshot_id`.
    """
    return list(_stored_rows(database, table_id, where, columns, history, nanoseconds, snapshot))


def _stored_rows(
    database: Database,
    table_id: int,
    where: str,
    columns: Sequence[Column],
    history: Sequence[ColumnVersion],
    nanoseconds: bool,
    snapshot: str | None = None,
) -> Iterator[pa.Table]:
    for name, begin_snapshot in inlined_tables(database, table_id):
        shape = columns_at(history, At(begin_snapshot))
        source = [InlinedColumn(column.name, str(column.type), duckdb_type(column)) for column in shape]
        values = {column.id: f"c{position}" for position, column in enumerate(shape)}
        select = f"{select_list(columns, shape, values, nanoseconds=nanoseconds)}, row_id"
        if snapshot is not None:
            select += f", c{len(source)} AS snapshot_id"
            source.append(InlinedColumn(snapshot, "int64", "BIGINT"))
        rows = database.inlined(name, source, where, [], select)
        if rows.num_rows:
            yield rows


@dataclass(frozen=True)
class InlinedTable:
    """A table of the catalog that holds inlined rows, and the columns that these have."""

    name: str
    begin_snapshot: int  # of the schema version that it is for
    columns: tuple[Column, ...]

    def batches(self, database: Database, newest: int) -> Iterator[pa.Table]:
        """All rows up to a snapshot, also those that have ended, some at a time.

        They have columns `v0, v1, ...`, `row_id`, `begin_snapshot` and `end_snapshot`; nanoseconds are numbers.
        """
        source = [InlinedColumn(column.name, str(column.type), duckdb_type(column)) for column in self.columns]
        source += [InlinedColumn(name, "int64", "BIGINT") for name in _SNAPSHOTS]
        values = {column.id: f"c{place}" for place, column in enumerate(self.columns)}
        numbers = ", ".join(f"c{len(self.columns) + place} AS {name}" for place, name in enumerate(_SNAPSHOTS))
        select = f"{select_list(self.columns, self.columns, values, nanoseconds=True)}, row_id, {numbers}"
        for window in self.windows(database, newest):
            rows = database.inlined(self.name, source, window, [], select)
            if rows.num_rows:
                yield rows

    def windows(self, database: Database, newest: int) -> Iterator[str]:
        """Conditions that are each true for some of the rows up to a snapshot, by their row ids."""
        rest = f"begin_snapshot <= {newest}"
        table = database.identifier(self.name)
        while True:
            found = database.query(
                f"SELECT row_id FROM {table} WHERE {rest} ORDER BY row_id LIMIT 1 OFFSET {_ROWS_A_BATCH - 1}"
            )
            if not found:
                yield rest
                return
            [(last,)] = found
            yield f"{rest} AND row_id <= {last}"
            rest = f"begin_snapshot <= {newest} AND row_id > {last}"


def tables_of_inlined_rows(database: Database, table_id: int, history: Sequence[ColumnVersion]) -> list[InlinedTable]:
    """The catalog's tables of a table's inlined rows, those of the oldest schema version first."""
    return [
        InlinedTable(name, begin, columns_at(history, At(begin))) for name, begin in inlined_tables(database, table_id)
    ]


def all_tables_of_inlined_rows(database: Database) -> list[InlinedTable]:
    """The same of all tables of the lake, asked for at once: there may be thousands."""
    histories = inlined_column_versions(database)
    return [
        InlinedTable(name, begin, columns_at(histories[id], At(begin))) for id, name, begin in _registered(database)
    ]


def live_inlined_rows(database: Database, table_id: int, at: At) -> dict[str, set[int]]:
    """The row ids that each inlined table shows."""
    found = {}
    for name, _ in inlined_tables(database, table_id):
        rows = database.query(f"SELECT row_id FROM {database.identifier(name)} WHERE {at.visible()}")
        if rows:
            found[name] = {row[0] for row in rows}
    return found


def inlined_tables(database: Database, table_id: int) -> list[tuple[str, int]]:
    """The inlined tables that can hold rows, each with the snapshot whose shape it has.

    One that was made late, by the first small insert, may have a schema version of its own: the table's last one holds.
    """
    return [(name, begin) for _, name, begin in _registered(database, "WHERE i.table_id = ?", [table_id])]


def _registered(database: Database, where: str = "", parameters: Sequence[int] = ()) -> list[tuple[int, str, int]]:
    rows = database.query(
        f"""SELECT i.table_id, i.table_name, max(v.begin_snapshot)
            FROM ducklake_inlined_data_tables i
            JOIN ducklake_schema_versions v ON v.table_id = i.table_id AND v.schema_version <= i.schema_version
            {where} GROUP BY i.table_id, i.table_name, i.schema_version ORDER BY 3, i.schema_version""",
        parameters,
    )
    existing = database.existing([name for _, name, _ in rows])
    return [(table_id, name, begin) for table_id, name, begin in rows if name in existing]


def forgotten_tables(database: Database, table_id: int) -> list[str]:
    """Tables of inlined rows that a flush has emptied and forgotten: those of older schema versions than the known.

    One of the newest version may be made by somebody who is about to name it in the catalog.
    """
    sql = "SELECT table_name, schema_version FROM ducklake_inlined_data_tables WHERE table_id = ?"
    known: dict[str, int] = dict(database.query(sql, [table_id]))
    prefix = f"ducklake_inlined_data_{table_id}_"
    found = []
    for name in sorted(database.tables(prefix) - known.keys()):
        version = re.match(r"\d+", name.removeprefix(prefix))
        if version and int(version[0]) < max(known.values(), default=0):
            found.append(name)
    return found


def inlined_delete_table(database: Database, table_id: int) -> str | None:
    """The table of inlined deletes, which is registered nowhere and found by its name."""
    name = inlined_delete_name(table_id)
    return name if database.existing([name]) else None


def inlined_delete_name(table_id: int) -> str:
    """The name of a table's table of inlined deletes."""
    return f"ducklake_inlined_delete_{table_id}"
