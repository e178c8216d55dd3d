"""Looks up a table for a statement that changes its rows."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.ducklake.attachment import Attachment
from penstock.ducklake.catalog.table_files import table_size
from penstock.ducklake.changing import row_places
from penstock.ducklake.model.objects import TableInfo
from penstock.ducklake.reading.table_scan import TableContents, TableScan, table_scan
from penstock.ducklake.transaction import Transaction
from penstock.ducklake.writing.write_target import WriteTarget, write_target
from penstock.spark.types import has_nanoseconds


@dataclass(frozen=True)
class TargetTable:
    """What it takes to find the table's rows, and to write rows of it."""

    target: WriteTarget
    scan: TableScan
    contents: TableContents
    file_rows: int  # of its files; deleted ones count

    @property
    def has_places_at_hand(self) -> bool:
        """Whether the positions of any of its rows are little enough to come to the driver."""
        return self.file_rows + sum(len(rows) for rows in self.contents.inlined) <= row_places.MOST_ROWS_AT_HAND


def target_table(
    attachment: Attachment, transaction: Transaction, table: TableInfo, *, in_full: bool = True
) -> TargetTable:
    """Look up the table as the transaction sees it: `in_full` with all that it takes to write its rows anew."""
    shown = transaction.shown()
    target = write_target(transaction, table, attachment.options)
    with shown.database.consistent():
        nanoseconds = in_full and any(map(has_nanoseconds, target.columns))
        scan = table_scan(attachment, shown, table, row_ids=True, addresses=True, nanoseconds=nanoseconds)
        rows, _ = table_size(shown.database, shown.at, table.id)
        return TargetTable(target, scan, scan.contents(), rows)
