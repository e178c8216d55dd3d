"""One transaction becomes one snapshot, or nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from penstock.catalog.databases import Database
from penstock.catalog.inlining import insert_inlined
from penstock.catalog.snapshots import latest_snapshot
from penstock.catalog.writing.apply import apply, first_row_ids
from penstock.catalog.writing.conflicts import Others, conflict
from penstock.catalog.writing.inlined_tables import InlinedTarget, create_tables, inlined_targets, register
from penstock.catalog.writing.numbering import Numbering
from penstock.catalog.writing.staging import Staging
from penstock.catalog.writing.table_statistics import grow_tables
from penstock.errors import ConflictError, PenstockError
from penstock.model.changes import Change, parse_changes, render_changes
from penstock.model.snapshots import Snapshot

_DATA_CHANGES = ("inserted_into_table", "deleted_from_table", "inlined_insert", "inlined_delete")


@dataclass(frozen=True)
class CommitInfo:
    author: str | None = None
    message: str | None = None
    extra_info: str | None = None


@dataclass(frozen=True)
class RetryPolicy:
    """How often, and after how long, a commit is tried again after another writer was faster."""

    max_retry_count: int = 10
    retry_wait_ms: int = 100
    retry_backoff: float = 1.5


class _MovedError(Exception):
    """Somebody committed between the preparation of an attempt and its transaction."""


def commit(database: Database, staging: Staging, info: CommitInfo, policy: RetryPolicy) -> Snapshot:
    """Make everything that is staged visible at once. A `ConflictError` means that nothing is."""
    wait = policy.retry_wait_ms / 1000
    for attempt in range(policy.max_retry_count + 1):
        try:
            return _attempt(database, staging, info)
        except Exception as error:
            if not (isinstance(error, _MovedError) or database.is_collision(error)):
                _check_outcome(database, staging, error)
                raise
            if attempt == policy.max_retry_count:
                raise ConflictError(
                    f"{database.location}: other writers committed first {attempt + 1} times in a row, and nothing was "
                    "committed; try again, or raise max_retry_count"
                ) from error
        time.sleep(wait)
        wait *= policy.retry_backoff
    raise AssertionError("unreachable")


def _attempt(database: Database, staging: Staging, info: CommitInfo) -> Snapshot:
    prepared = None if database.transactional_ddl else _prepared(database, staging)
    with database.transaction():
        latest = latest_snapshot(database)
        if latest.id > staging.base.id:
            _check_conflicts(database, staging)
        numbering = _numbering(latest, staging)
        if prepared not in (None, numbering):
            raise _MovedError
        return _write(database, staging, info, latest, numbering, create=prepared is None)


def _prepared(database: Database, staging: Staging) -> Numbering:
    """Where CREATE TABLE would end the transaction, the inlined tables are made before it."""
    numbering = _numbering(latest_snapshot(database), staging)
    create_tables(database, inlined_targets(database, staging, numbering).values())
    return numbering


def _numbering(latest: Snapshot, staging: Staging) -> Numbering:
    version = latest.schema_version + (1 if changes_schema(staging) else 0)
    return Numbering(staging.numbers, latest.id + 1, version, latest.next_catalog_id, latest.next_file_id)


def changes_schema(staging: Staging) -> bool:
    return any(change.kind not in _DATA_CHANGES for change in staging.changes)


def _write(
    database: Database, staging: Staging, info: CommitInfo, latest: Snapshot, numbering: Numbering, *, create: bool
) -> Snapshot:
    row_ids = first_row_ids(database, staging)
    targets = inlined_targets(database, staging, numbering)
    if create:
        create_tables(database, targets.values())
    apply(database, staging, numbering.real, row_ids)
    register(database, targets.values())
    _insert_inlined(database, staging, numbering, targets, row_ids)
    grow_tables(database, staging, numbering)
    snapshot = _snapshot(staging, info, latest, numbering)
    database.insert(
        "ducklake_snapshot",
        ("snapshot_id", "snapshot_time", "schema_version", "next_catalog_id", "next_file_id"),
        [(snapshot.id, snapshot.time, snapshot.schema_version, snapshot.next_catalog_id, snapshot.next_file_id)],
    )
    database.insert(
        "ducklake_snapshot_changes",
        ("snapshot_id", "changes_made", "author", "commit_message", "commit_extra_info"),
        [(snapshot.id, snapshot.changes_made, info.author, info.message, info.extra_info)],
    )
    return snapshot


def _insert_inlined(
    database: Database,
    staging: Staging,
    numbering: Numbering,
    targets: Mapping[int, InlinedTarget],
    row_ids: Mapping[int, int],
) -> None:
    for table_id, batches in staging.inlined.items():
        name = targets[table_id].name
        for batch in batches:
            first = row_ids[table_id] + batch.first_row
            insert_inlined(database, name, batch.columns, batch.rows, first, numbering.snapshot)


def _snapshot(staging: Staging, info: CommitInfo, latest: Snapshot, numbering: Numbering) -> Snapshot:
    changes = [Change(change.kind, _real_value(change.value, numbering)) for change in staging.changes]
    return Snapshot(
        numbering.snapshot,
        max(datetime.now(UTC), latest.time),
        numbering.schema_version,
        latest.next_catalog_id + staging.numbers.catalog_count,
        latest.next_file_id + staging.numbers.file_count,
        render_changes(changes),
        info.author,
        info.message,
        info.extra_info,
    )


def _real_value(value: str, numbering: Numbering) -> str:
    return str(numbering.real(int(value))) if value.isdigit() else value


def _check_conflicts(database: Database, staging: Staging) -> None:
    base = staging.base.id
    texts = database.query("SELECT changes_made FROM ducklake_snapshot_changes WHERE snapshot_id > ?", [base])
    others = Others.of(change for (text,) in texts for change in parse_changes(text))
    known = database.query("SELECT schema_id, schema_name FROM ducklake_schema WHERE begin_snapshot <= ?", [base])
    ids = {name.lower(): schema_id for schema_id, name in known}
    names = {schema_id: name.lower() for schema_id, name in known}
    reason = conflict(staging.changes, others, ids, names)
    if reason:
        raise ConflictError(
            f"{reason} since this transaction began at snapshot {base}; nothing was committed: "
            "read the lake again and repeat what you did"
        )


def _check_outcome(database: Database, staging: Staging, error: Exception) -> None:
    """A connection that broke during COMMIT does not say whether it happened: then the files must stay."""
    if isinstance(error, PenstockError):
        return
    try:
        latest_snapshot(database)
    except Exception:
        staging.files.clear()
        raise PenstockError(
            f"the connection to {database.location} broke while a transaction was committed, so whether it was is not "
            "known; attach again and look at lake.snapshots(). The files it wrote were left in place"
        ) from error
