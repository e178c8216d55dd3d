"""Counts the rows of the catalog's own tables, and finds those that grew by what only old snapshots need."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.ducklake.catalog.catalog_tables import TABLES
from penstock.ducklake.inspection import remedies
from penstock.ducklake.inspection.findings import Examined, Finding, counted, finding
from penstock.ducklake.inspection.inlined_counts import counted as counted_rows
from penstock.ducklake.inspection.thresholds import CATALOG_ROWS, ENDED_SHARE, SNAPSHOT_AGE

CHECK = "size of the catalog"
_SHOWN = 5


def check(lake: Examined) -> Iterator[Finding]:
    """Advice where one is large, and much of it is of files that are gone from their tables."""
    names = sorted(lake.database.existing(list(TABLES)))
    found = counted_rows(lake.database, ((number, name) for number, name in enumerate(names)))
    rows = {name: found.get(number, 0) for number, name in enumerate(names)}
    largest = sorted(rows, key=lambda name: (-rows[name], name))[:_SHOWN]
    files = rows["ducklake_data_file"]
    ended = int(lake.database.value("SELECT count(*) FROM ducklake_data_file WHERE end_snapshot IS NOT NULL"))
    numbers = {"rows": sum(rows.values()), "ended_files": ended, **{name: rows[name] for name in largest}}
    message = f"{counted(sum(rows.values()), 'row')}, most of them in {largest[0]}"
    if rows[largest[0]] > CATALOG_ROWS and ended >= ENDED_SHARE * files:
        message += f"; {ended:,} of {counted(files, 'file')} are needed by old snapshots only"
        yield finding(CHECK, "advice", message, numbers, remedy=remedies.expire(SNAPSHOT_AGE.days))
    else:
        yield finding(CHECK, "fine", message, numbers)
