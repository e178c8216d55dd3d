"""Statements that take rows out of a table."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark.sql import Column as SparkColumn

from penstock.catalog.inlined import live_inlined_rows
from penstock.catalog.writing.files import remove_files, remove_inlined, remove_own_inlined
from penstock.model.objects import TableInfo
from penstock.spark.scan import Contents, Scan
from penstock.transaction import Transaction


@dataclass(frozen=True)
class Removal:
    """What goes: whole files, inlined rows by the catalog's table that holds them, and the transaction's own rows."""

    files: frozenset[int] = frozenset()
    inlined: dict[str, set[int]] = field(default_factory=dict)
    own_inlined: bool = False


def everything(transaction: Transaction, table: TableInfo) -> Removal:
    """All rows that the transaction sees: no file is read."""
    shown = transaction.shown()
    sql = f"SELECT data_file_id FROM ducklake_data_file WHERE table_id = ? AND {shown.at.visible()}"
    with shown.database.consistent():
        files = frozenset(row[0] for row in shown.database.query(sql, [table.id]))
        inlined = live_inlined_rows(shown.database, table.id, shown.at)
    return Removal(files, inlined, own_inlined=True)


def matching(scan: Scan, contents: Contents, where: str | SparkColumn) -> Removal:
    raise NotImplementedError


def stage(transaction: Transaction, table: TableInfo, removal: Removal) -> None:
    staging = transaction.staging
    remove_files(staging, table, removal.files)
    remove_inlined(staging, table.id, removal.inlined)
    if removal.own_inlined:
        remove_own_inlined(staging, table.id)
