"""Copies inlined rows from the tables of one catalog to those of another, in the types of its database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.catalog.databases.base import InlinedColumn
from penstock.ducklake.catalog.databases.duckdb import INSERTED, DuckdbDatabase
from penstock.ducklake.catalog.inlined_rows import InlinedTable
from penstock.ducklake.catalog.inlined_storage import inlinable
from penstock.ducklake.catalog.inlined_values import encoded_sql, kept_sql, native_sql
from penstock.ducklake.model.reserved_names import INLINED_COLUMNS
from penstock.errors import UnsupportedError
from penstock.schema.columns import Column
from penstock.storage.duckdb_sql import duckdb_type, shown_sql

_SNAPSHOTS = INLINED_COLUMNS[1:]
# Types whose values Arrow does not hold in full when DuckDB gives them to it, and those that it holds as Spark does.
_TEXTS = frozenset(("int128", "uint128", "timetz"))
_SHOWN = frozenset(("interval", "variant"))
# Plain types of which DuckDB cannot read all texts that it writes: here, those of years beyond 280,000.
_NOT_ALWAYS_TEXT = frozenset(("timestamptz",))


@dataclass(frozen=True)
class _Carried:
    """A column under way: SQL of what is carried of DuckDB's own value, and of whether that is all of it."""

    column: Column
    sql: str
    check: str | None = None
    as_shown: bool = False

    def stored(self, type: pa.DataType, name: str) -> str:
        """SQL of DuckDB's own value, over what was carried."""
        return native_sql(self.column, type, name) if self.as_shown else f"CAST({name} AS {duckdb_type(self.column)})"


def can_hold(target: Database, table: InlinedTable) -> bool:
    """Whether a database can have a table of inlined rows like one of another."""
    return inlinable(table.columns, target.engine)


def refuse_rows(source: Database, target: Database, table: InlinedTable) -> None:
    """An error, if there are rows in a table that the target cannot have."""
    if source.query(f"SELECT 1 FROM {source.identifier(table.name)} LIMIT 1"):
        raise _unsupported(source, target, table, "columns whose names or types cannot be kept there")


def copy_inlined(source: Database, target: Database, table: InlinedTable, newest: int) -> None:
    """Copy all rows of a table of inlined rows, also those that have ended, some at a time."""
    carried = [_carried(target.engine, column, f"c{place}") for place, column in enumerate(table.columns)]
    inputs = [InlinedColumn(column.name, str(column.type), duckdb_type(column)) for column in table.columns]
    inputs += [InlinedColumn(name, "int64", "BIGINT") for name in _SNAPSHOTS]
    select = _select_list(carried)
    for window in table.windows(source, newest):
        rows = source.inlined(table.name, inputs, window, [], select)
        if not rows.num_rows:
            continue
        for place, one in enumerate(carried):
            if one.check is not None and not all(rows.column(f"k{place}").to_pylist()):
                raise _unsupported(source, target, table, f"values of {one.column.name!r} that do not survive as text")
        _insert(target, table, carried, rows)


def _carried(engine: str, column: Column, value: str) -> _Carried:
    kinds = {item.type.name for item in column.walk()}
    if engine != "duckdb":
        sql = encoded_sql(engine, column, value, shown_sql(column, value))
        checked = column.type.nested or column.type.name in _NOT_ALWAYS_TEXT
        return _Carried(column, sql, kept_sql(engine, column, value) if checked else None)
    if kinds & _SHOWN and not kinds & _TEXTS:
        return _Carried(column, shown_sql(column, value), as_shown=True)
    if kinds & (_SHOWN | _TEXTS):
        return _Carried(column, f"CAST({value} AS VARCHAR)", kept_sql(engine, column, value))
    return _Carried(column, value)


def _select_list(carried: Sequence[_Carried]) -> str:
    """The carried values `v0, v1, ...`, the checks `k0, k1, ...` that there are, the row id and its two snapshots."""
    values = [f"{one.sql} AS v{place}" for place, one in enumerate(carried)]
    checks = [f"{one.check} AS k{place}" for place, one in enumerate(carried) if one.check is not None]
    snapshots = [f"c{len(carried) + place} AS {name}" for place, name in enumerate(_SNAPSHOTS)]
    return ", ".join([*values, *checks, "row_id", *snapshots])


def _insert(target: Database, table: InlinedTable, carried: Sequence[_Carried], rows: pa.Table) -> None:
    values = [f"v{place}" for place in range(len(carried))]
    if isinstance(target, DuckdbDatabase):
        types = [rows.schema.field(name).type for name in values]
        stored = [one.stored(*pair) for one, pair in zip(carried, zip(types, values, strict=True), strict=True)]
        select = f"SELECT {', '.join([*INLINED_COLUMNS, *stored])} FROM {INSERTED}"
        target.insert_arrow(f"INSERT INTO {target.identifier(table.name)} {select}", rows)
        return
    lists = [rows.column(name).to_pylist() for name in (*INLINED_COLUMNS, *values)]
    names = [*INLINED_COLUMNS, *(one.column.name for one in carried)]
    target.insert(table.name, names, list(zip(*lists, strict=True)))


def _unsupported(source: Database, target: Database, table: InlinedTable, what: str) -> UnsupportedError:
    return UnsupportedError(
        f"{source.location} cannot be copied to {target.location}: its table {table.name} has rows with {what}, in "
        f"{target.product}; write them to files first, with lake.flush_inlined_data()"
    )
