"""Evolves a table's definition: its columns, partitioning and sort order; no file is rewritten."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from penstock.ducklake.catalog import objects
from penstock.ducklake.catalog.commits import staged_tables as staged
from penstock.ducklake.catalog.inlined_storage import evolved_rows
from penstock.ducklake.model.objects import SortKey, TableInfo
from penstock.ducklake.model.options import effective_value
from penstock.ducklake.model.schema_evolution import Evolution, find_at
from penstock.ducklake.transaction import Transaction
from penstock.ducklake.writing import sort_order
from penstock.errors import NotFoundError, UnsupportedError
from penstock.partitioning import partition_fields
from penstock.schema.columns import Column, shape

Change = Callable[[tuple[Column, ...], int], Evolution]


def evolve_columns(transaction: Transaction, table: TableInfo, change: Change, inlines: bool) -> None:
    """Stage an evolution of the table's columns, and bring the rows staged for the catalog along."""
    shown = transaction.shown()
    versions = objects.column_versions(shown.database, table.id)
    before = objects.columns_at(versions, shown.at)
    evolution = change(before, 1 + max(version.column.id for version in versions))
    if not evolution.ended and not evolution.added:
        return
    reshaped = shape(before) != shape(evolution.columns)
    if reshaped and staged.has_files(transaction.staging, table.id):
        _require_plain_files(transaction, table)
    staged.evolve_columns(transaction.staging, table.id, evolution)
    if reshaped:
        _reshape(transaction, table.id, evolution.columns, inlines)


def _require_plain_files(transaction: Transaction, table: TableInfo) -> None:
    """Encrypted files do not tell the ids of their columns to anybody but DuckLake's own reader."""
    if effective_value("encrypted", transaction.options, None, None) == "true":
        raise UnsupportedError(
            f"this transaction has written encrypted files of {table.full_name}; end it, and change the columns in the "
            "next one"
        )


def reshape(transaction: Transaction, table: TableInfo, inlines: bool) -> None:
    """Bring staged inlined rows along when the table changes, but not its columns."""
    _reshape(transaction, table.id, current_columns(transaction, table), inlines)


def _reshape(transaction: Transaction, table_id: int, columns: tuple[Column, ...], inlines: bool) -> None:
    staging = transaction.staging
    if inlines and transaction.catalog.database.can_create_tables:
        staging.reshaped[table_id] = columns
    if table_id in staging.inlined:
        staging.inlined[table_id] = [
            replace(rows, columns=columns, rows=evolved_rows(rows.columns, columns, rows.rows))
            for rows in staging.inlined[table_id]
        ]


def current_columns(transaction: Transaction, table: TableInfo) -> tuple[Column, ...]:
    """The table's columns as the transaction sees them."""
    shown = transaction.shown()
    return objects.columns_at(objects.column_versions(shown.database, table.id), shown.at)


def has_column(transaction: Transaction, table: TableInfo, path: str) -> bool:
    """Whether the table has a column or field at a path."""
    try:
        find_at(current_columns(transaction, table), path)
    except NotFoundError:
        return False
    return True


def has_rows(transaction: Transaction, table: TableInfo) -> bool:
    """Whether the table has, or ever had, rows."""
    shown = transaction.shown()
    known = shown.database.value("SELECT next_row_id FROM ducklake_table_stats WHERE table_id = ?", [table.id])
    return bool(known) or table.id in transaction.staging.growth


def set_partitioned_by(transaction: Transaction, table: TableInfo, fields: Sequence[str], inlines: bool) -> None:
    """Stage how new rows are partitioned."""
    columns = current_columns(transaction, table)
    new = partition_fields(fields, columns)
    shown = transaction.shown()
    spec = objects.current_partition_spec(shown.database, shown.at, table.id)
    if new == (spec.fields if spec else ()):
        return
    staged.set_partitioning(transaction.staging, table.id, new)
    _reshape(transaction, table.id, columns, inlines)


def set_sorted_by(transaction: Transaction, table: TableInfo, keys: Sequence[SortKey]) -> None:
    """Stage how new rows are sorted."""
    staged.set_sort_order(transaction.staging, table.id, keys)


def columns_in_use(transaction: Transaction, table: TableInfo) -> dict[int, str]:
    """The columns that cannot be dropped, by id, and why."""
    shown = transaction.shown()
    spec = objects.current_partition_spec(shown.database, shown.at, table.id)
    columns = current_columns(transaction, table)
    in_use = {}
    for key in objects.sort_order(shown.database, shown.at, table.id):
        for column in sort_order.columns_of_key(key, columns):
            in_use[column.id] = "the table is sorted by it; call reset_sorted_by() or set another order first"
    for field in spec.fields if spec else ():
        in_use[field.column_id] = "the table is partitioned by it; call reset_partitioned_by() or set another first"
    return in_use


def rename_in_sort_order(transaction: Transaction, table: TableInfo, path: str, name: str) -> None:
    """Rename a column in the table's sort keys."""
    shown = transaction.shown()
    columns = current_columns(transaction, table)
    column = find_at(columns, path)
    order = objects.sort_order(shown.database, shown.at, table.id)
    keys = tuple(sort_order.with_renamed(key, column, name, columns) for key in order)
    if keys != order:
        staged.set_sort_order(transaction.staging, table.id, keys)
