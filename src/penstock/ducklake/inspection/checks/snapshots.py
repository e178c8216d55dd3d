"""Finds snapshots that were never expired: they keep files and rows of the catalog that no table needs any more."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from penstock.ducklake.catalog.ages import option_cutoff
from penstock.ducklake.inspection import remedies
from penstock.ducklake.inspection.findings import Examined, Finding, counted, finding
from penstock.ducklake.inspection.thresholds import SNAPSHOT_AGE, SNAPSHOTS

CHECK = "old snapshots"


def check(lake: Examined) -> Iterator[Finding]:
    """Advice where snapshots are due by the lake's option, or where there is none and they are many or old."""
    database = lake.database
    [(count, oldest, newest)] = database.query(
        "SELECT count(*), min(snapshot_time), max(snapshot_id) FROM ducklake_snapshot"
    )
    age = lake.now - database.time(oldest)
    numbers = {"snapshots": int(count), "oldest_days": max(0, age.days)}
    kept = f"{counted(int(count), 'snapshot')}, the oldest of {database.time(oldest):%Y-%m-%d}"
    interval = lake.option("expire_older_than")
    if interval:
        due = _older(lake, option_cutoff("expire_older_than", interval), int(newest))
        message = f"{kept}; {counted(due, 'snapshot')} are older than expire_older_than, {interval}"
        yield finding(
            CHECK,
            "advice" if due else "fine",
            message,
            {**numbers, "due": due},
            remedy=remedies.expire() if due else None,
        )
    elif count > SNAPSHOTS or (age > SNAPSHOT_AGE and _older(lake, lake.now - SNAPSHOT_AGE, int(newest))):
        message = f"{kept}; none expires while the option expire_older_than is not set"
        yield finding(
            CHECK,
            "advice",
            message,
            numbers,
            remedy=remedies.set_option("expire_older_than", f"{SNAPSHOT_AGE.days} days"),
        )
    else:
        yield finding(CHECK, "fine", kept, numbers)


def _older(lake: Examined, moment: datetime, newest: int) -> int:
    """The snapshots before a moment but for the newest, which always stays."""
    sql = "SELECT count(*) FROM ducklake_snapshot WHERE snapshot_time < ? AND snapshot_id < ?"
    return int(lake.database.value(sql, [lake.database.time_parameter(moment), newest]))
