"""Finds files that were scheduled for deletion and are still there."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.ducklake.catalog.ages import DELETE_OLDER_THAN, option_cutoff
from penstock.ducklake.catalog.file_paths import SCHEDULE
from penstock.ducklake.inspection import remedies
from penstock.ducklake.inspection.findings import Examined, Finding, counted, finding

CHECK = "scheduled files"


def check(lake: Examined) -> Iterator[Finding]:
    """Advice where some are due by the lake's option `delete_older_than`."""
    database = lake.database
    [(count, oldest)] = database.query(f"SELECT count(*), min(schedule_start) FROM {SCHEDULE}")
    interval = lake.option("delete_older_than") or DELETE_OLDER_THAN
    before = database.time_parameter(option_cutoff("delete_older_than", interval))
    due = int(database.value(f"SELECT count(*) FROM {SCHEDULE} WHERE schedule_start < ?", [before]))
    days = max(0, (lake.now - database.time(oldest)).days) if oldest is not None else 0
    numbers = {"files": int(count), "due": due, "oldest_days": days}
    if due:
        message = f"{counted(due, 'file')} have waited for their deletion for longer than {interval}"
        yield finding(CHECK, "advice", message, numbers, remedy=remedies.cleanup())
    else:
        message = f"{counted(int(count), 'file')} wait for their deletion, none for longer than {interval}"
        yield finding(CHECK, "fine", message, numbers)
