"""Commits whose connection broke before the database could say that they happened."""

from __future__ import annotations

from penstock.catalog.databases import Database
from penstock.catalog.databases.base import CommitInDoubtError
from penstock.catalog.snapshots import latest_snapshot, snapshot_by_version
from penstock.catalog.writing.staging import FILE_TABLES, Staging
from penstock.errors import CatalogError, ConflictError, NotFoundError
from penstock.model.snapshots import Snapshot


def came_through(database: Database, staging: Staging, made: Snapshot, doubt: CommitInDoubtError) -> bool:
    """Whether the catalog has the snapshot after all. If it cannot tell, the doubt itself is raised."""
    try:
        # A commit of our own waits until the server has ended the one whose connection broke, one way or the other.
        with database.transaction():
            return _is_there(database, staging, made, doubt)
    except (CatalogError, ConflictError):
        raise doubt from doubt.__cause__


def knows_files(database: Database, staging: Staging) -> bool | None:
    """Whether the catalog has a file that the transaction wrote; None if it wrote none."""
    paths = [(table, row["path"]) for table in FILE_TABLES for row in staging.added.get(table, ())]
    for table, path in paths[:1]:
        return bool(database.query(f"SELECT 1 FROM {table} WHERE path = ?", [path]))
    return None


def _is_there(database: Database, staging: Staging, made: Snapshot, doubt: CommitInDoubtError) -> bool:
    try:
        found = snapshot_by_version(database, made.id)
    except NotFoundError:
        if latest_snapshot(database).id > made.id:  # somebody's was there, and was expired
            raise doubt from doubt.__cause__
        return False
    if found != made:
        return False
    known = knows_files(database, staging)
    if known is None and not database.fractional_seconds:
        # Another writer may have done the same in the same second.
        raise doubt
    return known is not False
