"""Finds tables of which the catalog itself keeps many rows or deletes."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.ducklake.inspection import remedies
from penstock.ducklake.inspection.findings import Examined, Finding, counted, finding
from penstock.ducklake.inspection.inlined_counts import inlined_delete_counts
from penstock.ducklake.inspection.thresholds import INLINED_ROWS

CHECK = "inlined rows"


def check(lake: Examined) -> Iterator[Finding]:
    """Advice for each table with more than every query should read from the catalog."""
    deletes = inlined_delete_counts(lake.database, lake.at, lake.tables)
    quiet = True
    for table in lake.tables:
        rows, deleted = lake.summaries[table.id].inlined_rows, deletes.get(table.id, 0)
        if max(rows, deleted) < INLINED_ROWS:
            continue
        quiet = False
        message = (
            f"{counted(rows, 'row')} and {counted(deleted, 'delete')} are kept in the catalog: every query reads them"
        )
        numbers = {"rows": rows, "deletes": deleted}
        yield finding(CHECK, "advice", message, numbers, table=table, remedy=remedies.flush(table))
    if quiet:
        rows = sum(summary.inlined_rows for summary in lake.summaries.values())
        numbers = {"rows": rows, "deletes": sum(deletes.values())}
        yield finding(CHECK, "fine", f"{counted(rows, 'row')} are kept in the catalog: few of any table", numbers)
