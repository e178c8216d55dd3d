"""Looks up the lake's snapshots: all of them, the latest, one by id or by time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache

import duckdb

from penstock.ducklake.catalog.databases import Database, Row
from penstock.ducklake.catalog.id_lists import id_lists
from penstock.ducklake.catalog.remembered_answers import Moment
from penstock.ducklake.model.snapshots import Snapshot
from penstock.errors import NotFoundError

_SELECT = """
    SELECT s.snapshot_id, s.snapshot_time, s.schema_version, s.next_catalog_id, s.next_file_id,
           c.changes_made, c.author, c.commit_message, c.commit_extra_info
    FROM ducklake_snapshot s LEFT JOIN ducklake_snapshot_changes c ON c.snapshot_id = s.snapshot_id
"""


def all_snapshots(database: Database) -> list[Snapshot]:
    """Every snapshot, oldest first."""
    return [_snapshot(database, row) for row in database.query(f"{_SELECT} ORDER BY s.snapshot_id")]


def newest_snapshots(database: Database, limit: int, before: int | None = None) -> list[Snapshot]:
    """So many of the newest snapshots, or of those before one, newest first."""
    where = "" if before is None else f"WHERE s.snapshot_id < {int(before)}"
    rows = database.query(f"{_SELECT} {where} ORDER BY s.snapshot_id DESC LIMIT {int(limit)}")
    return [_snapshot(database, row) for row in rows]


def snapshots_by_number(database: Database, numbers: Sequence[int]) -> list[Snapshot]:
    """Those of some snapshots that there are, in the order of the numbers."""
    rows = [
        row for listed in id_lists(numbers) for row in database.query(f"{_SELECT} WHERE s.snapshot_id IN ({listed})")
    ]
    found = {row[0]: _snapshot(database, row) for row in rows}
    return [found[number] for number in numbers if number in found]


def latest_snapshot(database: Database) -> Snapshot:
    """The newest snapshot."""
    database.check_file()
    rows = database.query(f"{_SELECT} WHERE s.snapshot_id = (SELECT max(snapshot_id) FROM ducklake_snapshot)")
    if not rows:
        raise NotFoundError(f"{database.location} has no snapshots; its catalog is damaged")
    return _snapshot(database, rows[0])


def oldest_snapshot(database: Database, since: int = 0) -> int:
    """The number of the oldest snapshot that is kept, of those from a number on."""
    number: int = database.value("SELECT min(snapshot_id) FROM ducklake_snapshot WHERE snapshot_id >= ?", [since])
    return number


def find_snapshot(database: Database, version: int) -> Snapshot | None:
    """The snapshot of a version, or None."""
    rows = database.query(f"{_SELECT} WHERE s.snapshot_id = ?", [version])
    return _snapshot(database, rows[0]) if rows else None


def has_snapshot(database: Database, moment: Moment) -> bool:
    """Whether the catalog has the snapshot of a moment, and not another one under its number."""
    times = database.query("SELECT snapshot_time FROM ducklake_snapshot WHERE snapshot_id = ?", [moment.snapshot])
    return [database.time(time) for (time,) in times] == [moment.time]


def snapshot_by_version(database: Database, version: int) -> Snapshot:
    """The snapshot of a version; a NotFoundError says which there are."""
    found = find_snapshot(database, version)
    if found is None:
        low, high = database.query("SELECT min(snapshot_id), max(snapshot_id) FROM ducklake_snapshot")[0]
        raise NotFoundError(
            f"snapshot {version} does not exist or was expired; this lake has snapshots {low} to {high}"
        )
    return found


def snapshot_by_time(database: Database, time: datetime) -> Snapshot:
    """The newest snapshot at or before an (aware) time."""
    return _nearest(
        database, time, "max", "<=", "no snapshot at or before {}; the oldest snapshot of this lake is of {}"
    )


def snapshot_from_time(database: Database, time: datetime) -> Snapshot:
    """The oldest snapshot at or after an (aware) time."""
    return _nearest(
        database, time, "min", ">=", "no snapshot at or after {}; the newest snapshot of this lake is of {}"
    )


def _nearest(database: Database, time: datetime, nearest: str, side: str, complaint: str) -> Snapshot:
    wanted = f"SELECT {nearest}(snapshot_id) FROM ducklake_snapshot WHERE snapshot_time {side} ?"
    version = database.value(wanted, [database.time_parameter(time)])
    if version is None:
        # None is on that side: the one that comes closest is the last of the other.
        closest = "min" if nearest == "max" else "max"
        there = database.time(database.value(f"SELECT {closest}(snapshot_time) FROM ducklake_snapshot"))
        raise NotFoundError(complaint.format(time, there))
    return snapshot_by_version(database, version)


def _snapshot(database: Database, row: Row) -> Snapshot:
    return Snapshot(row[0], database.time(row[1]), *row[2:])


@cache
def reserved_words() -> frozenset[str]:
    """The words that DuckDB quotes when it shows them as names."""
    with duckdb.connect() as connection:
        rows = connection.execute("SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category = 'reserved'")
        return frozenset(row[0] for row in rows.fetchall())
