"""Looks whether a lake still has the snapshot that a transaction began at."""

from __future__ import annotations

from typing import Any

from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.catalog.snapshots import latest_snapshot
from penstock.ducklake.model.snapshots import Snapshot
from penstock.errors import ConflictError


def newest_since(database: Database, base: Snapshot) -> Snapshot:
    """The newest snapshot of the lake that had `base`, which may have been expired since it was the newest.

    A ConflictError where a backup took the catalog's place: its tables and numbers may be others.
    """
    sql = "SELECT snapshot_id, snapshot_time FROM ducklake_snapshot WHERE snapshot_id >= ?"
    times: dict[int, Any] = dict(database.query(sql, [base.id]))
    if not times or (base.id in times and database.time(times[base.id]) != base.time):
        raise ConflictError(
            f"{database.location} was put back to an older state since this transaction began at snapshot {base.id} of "
            f"{base.time:%Y-%m-%d %H:%M:%S} UTC, which is not there any more; nothing was committed: read the lake "
            "again and repeat what you did"
        )
    return base if max(times) == base.id else latest_snapshot(database)
