"""Finds out whether a commit happened that was broken off, by an interrupt or a lost connection."""

from __future__ import annotations

from penstock.ducklake.catalog.commits.staging import FILE_TABLES, Staging
from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.catalog.databases.base import CommitInDoubtError
from penstock.ducklake.catalog.snapshots import find_snapshot, latest_snapshot
from penstock.ducklake.model.snapshots import Snapshot
from penstock.errors import CatalogError


def is_committed(database: Database, staging: Staging) -> bool:
    """Whether the catalog has the snapshot of a commit that did not say so. An error means that nobody can tell."""
    made = staging.attempted
    if made is None:  # nobody said COMMIT
        return False
    # A transaction takes its turn after the one in question, whose connection may be gone while its server still works.
    with database.transaction():
        return _is_there(database, staging, made)


def commit_in_doubt(database: Database, error: Exception) -> CatalogError:
    """The error of a commit of which nobody can tell whether it happened."""
    return error if isinstance(error, CommitInDoubtError) else database.doubt()


def commit_failed(database: Database) -> CatalogError:
    """The error of a commit whose connection broke, and that did not happen."""
    return CatalogError(
        f"the connection to {database.location} broke before a transaction was committed; nothing was, so do "
        "it again: a new connection is opened for it"
    )


def _is_there(database: Database, staging: Staging, made: Snapshot) -> bool:
    known = _knows_files(database, staging)
    if known:
        return True
    found = find_snapshot(database, made.id)
    if found is None and latest_snapshot(database).id > made.id:  # somebody's was there, and was expired
        raise database.doubt()
    if found != made or database.fractional_seconds:
        return found == made
    # Another writer may have done the same in the same second; or it is ours, and somebody has merged its files since.
    raise database.doubt()


def _knows_files(database: Database, staging: Staging) -> bool | None:
    """Whether the catalog has a file that the transaction wrote; None if it wrote none."""
    for table in FILE_TABLES:
        for row in staging.rows(table):
            if row["path_is_relative"]:  # no other transaction has files of these names
                return bool(database.query(f"SELECT 1 FROM {table} WHERE path = ?", [row["path"]]))
    return None
