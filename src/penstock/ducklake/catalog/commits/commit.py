"""Commits a transaction as one snapshot, or not at all."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from time import sleep

from penstock.ducklake.catalog.commits.base_snapshot import newest_since
from penstock.ducklake.catalog.commits.committed_statistics import grow_tables
from penstock.ducklake.catalog.commits.conflicts import (
    COMPACTED,
    DELETED,
    INSERTED,
    Conflict,
    OtherChanges,
    find_conflict,
)
from penstock.ducklake.catalog.commits.inlined_tables import (
    History,
    InlinedTarget,
    changes_inlined_tables,
    create_tables,
    inlined_targets,
    known_targets,
    register_tables,
)
from penstock.ducklake.catalog.commits.provisional_ids import CommittedIds
from penstock.ducklake.catalog.commits.replaced_deletes import date_deletes, remove_replaced
from penstock.ducklake.catalog.commits.staged_statements import add_rows, end_rows, first_row_ids, table_totals
from penstock.ducklake.catalog.commits.staging import Staging
from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.catalog.inlined_storage import insert_inlined
from penstock.ducklake.catalog.objects import column_versions
from penstock.ducklake.catalog.snapshots import latest_snapshot
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.model.snapshot_changes import SnapshotChange, parse_changes, render_changes
from penstock.ducklake.model.snapshots import Snapshot
from penstock.errors import ConflictError, InvalidError
from penstock.storage.commit_log import log_retry

_COLUMNS = "ducklake_column"
_LONGEST_WAIT = 24 * 60 * 60.0
_DATA_CHANGES = (*INSERTED, *DELETED, *COMPACTED)


@dataclass(frozen=True)
class CommitInfo:
    """What a user says about a commit."""

    author: str | None = None
    message: str | None = None
    extra_info: str | None = None


@dataclass(frozen=True)
class RetryPolicy:
    """How often, and after how long, a commit is tried again after another writer was faster."""

    max_retry_count: int = 10
    retry_wait_ms: float = 100
    retry_backoff: float = 1.5

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 <= value < math.inf:
                raise InvalidError(f"{name} cannot be {value}; it takes a number from 0")

    def waits(self) -> Iterator[float]:
        """The seconds to wait before each attempt after the first."""
        for retry in range(self.max_retry_count):
            try:
                wait = self.retry_wait_ms / 1000 * self.retry_backoff**retry
            except OverflowError:
                wait = _LONGEST_WAIT
            yield min(wait, _LONGEST_WAIT)


class _MovedError(Exception):
    """Somebody committed between the preparation of an attempt and its transaction."""


def commit(database: Database, staging: Staging, info: CommitInfo, policy: RetryPolicy) -> Snapshot:
    """Make everything that is staged visible at once. A `ConflictError` means that nothing is.

    After any other error, and after an interrupt, `doubt.is_committed` tells.
    """
    waits = enumerate(policy.waits(), start=2)
    while True:
        try:
            return _attempt(database, staging, info)
        except BaseException as error:
            if not (isinstance(error, _MovedError) or database.is_collision(error)):
                raise
            staging.attempted = None
            attempt, wait = next(waits, (0, None))
            if wait is None:
                raise ConflictError(
                    f"{database.location}: other writers committed first {policy.max_retry_count + 1} times in a row, "
                    "and nothing was committed; try again, or attach with a greater max_retry_count"
                ) from error
            log_retry(str(database.location), str(error), attempt, wait * 1000)
        sleep(wait)


def _attempt(database: Database, staging: Staging, info: CommitInfo) -> Snapshot:
    with database.turn():
        prepared = None
        if not database.transactional_ddl:  # CREATE TABLE would end the transaction
            prepared = _planned(database, staging, newest_since(database, staging.base))
            create_tables(database, prepared.targets.values())
        if staging.replaced:  # while nobody has to wait for it
            date_deletes(staging, latest_snapshot(database).id + 1)
        with database.transaction():
            latest = newest_since(database, staging.base)
            if latest.id > staging.base.id:
                _check_conflicts(database, staging, latest)
            for sources in staging.sources:
                sources.check(database)
            if prepared and prepared.latest != latest:
                raise _MovedError("another writer committed while tables of inlined rows were made")
            staging.attempted = _write(database, staging, info, prepared or _planned(database, staging, latest))
        return staging.attempted


@dataclass(frozen=True)
class _Plan:
    """The numbers that an attempt gives on top of a snapshot, and the tables that its inlined rows go to."""

    latest: Snapshot
    ids: CommittedIds
    targets: Mapping[int, InlinedTarget]
    history: History


def _planned(database: Database, staging: Staging, latest: Snapshot) -> _Plan:
    history = _history(database, staging, latest)
    known = known_targets(database, staging, history)
    is_new_version = changes_schema(staging) or changes_inlined_tables(staging, known)
    version = latest.schema_version + (1 if is_new_version else 0)
    ids = CommittedIds(staging.ids, latest.id + 1, version, latest.next_catalog_id, latest.next_file_id)
    return _Plan(latest, ids, inlined_targets(database, staging, ids, known), history)


def changes_schema(staging: Staging) -> bool:
    """Whether a commit makes a new schema version: it does more than add and remove rows."""
    return any(change.kind not in _DATA_CHANGES for change in staging.changes)


def _history(database: Database, staging: Staging, latest: Snapshot) -> History:
    """Gives the versions of a table's columns: without a question, where they are those that the transaction found."""
    read = partial(column_versions, database)
    if _COLUMNS in staging.added or any(ending.table == _COLUMNS for ending in staging.endings):
        return read  # others before the staged rows are written than after
    if latest.schema_version != staging.base.schema_version:
        return cache(read)
    return lambda table_id: staging.histories.get(table_id) or read(table_id)


def _write(database: Database, staging: Staging, info: CommitInfo, plan: _Plan) -> Snapshot:
    """The rows of a snapshot."""
    committed_ids, targets = plan.ids, plan.targets
    snapshot = _snapshot(staging, info, max(_now(database), plan.latest.time), plan.latest, committed_ids)
    # First of all, as DuckDB does it: the later of two writers waits here, with no lock that the other one needs.
    database.insert(
        "ducklake_snapshot",
        ("snapshot_id", "snapshot_time", "schema_version", "next_catalog_id", "next_file_id"),
        [(snapshot.id, snapshot.time, snapshot.schema_version, snapshot.next_catalog_id, snapshot.next_file_id)],
    )
    date_deletes(staging, snapshot.id)  # nobody else can get the number any more
    totals = table_totals(database, staging)
    row_ids = first_row_ids(staging, totals)
    if database.transactional_ddl:
        create_tables(database, targets.values())
    end_rows(database, staging, committed_ids.real)
    remove_replaced(database, staging, snapshot.id)
    for rows in staging.removed:
        rows.remove(database)
    for table in staging.added:
        add_rows(database, staging, table, committed_ids.real, row_ids)
    register_tables(database, targets.values())
    _insert_inlined(database, staging, committed_ids, targets, row_ids)
    grow_tables(database, staging, committed_ids, totals, plan.history)
    database.insert(
        "ducklake_snapshot_changes",
        ("snapshot_id", "changes_made", "author", "commit_message", "commit_extra_info"),
        [(snapshot.id, snapshot.changes_made, info.author, info.message, info.extra_info)],
    )
    return snapshot


def _insert_inlined(
    database: Database,
    staging: Staging,
    committed_ids: CommittedIds,
    targets: Mapping[int, InlinedTarget],
    row_ids: Mapping[int, int],
) -> None:
    for table_id, batches in staging.inlined.items():
        name = targets[table_id].name
        for batch in batches:
            ids = batch.row_ids(row_ids[table_id])
            insert_inlined(database, name, batch.columns, batch.rows, ids, committed_ids.snapshot)


def _now(database: Database) -> datetime:
    now = datetime.now(UTC)
    return now if database.fractional_seconds else now.replace(microsecond=0)


def _snapshot(
    staging: Staging, info: CommitInfo, time: datetime, latest: Snapshot, committed_ids: CommittedIds
) -> Snapshot:
    changes = [SnapshotChange(change.kind, _real_value(change.value, committed_ids)) for change in staging.changes]
    return Snapshot(
        committed_ids.snapshot,
        time,
        committed_ids.schema_version,
        latest.next_catalog_id + staging.ids.catalog_count,
        latest.next_file_id + staging.ids.file_count,
        render_changes(changes),
        info.author,
        info.message,
        info.extra_info,
    )


def _real_value(value: str, committed_ids: CommittedIds) -> str:
    return str(committed_ids.real(int(value))) if value.isdigit() else value


def _check_conflicts(database: Database, staging: Staging, latest: Snapshot) -> None:
    base = staging.base.id
    sql = "SELECT snapshot_id, changes_made FROM ducklake_snapshot_changes WHERE snapshot_id >= ?"
    texts: dict[int, str | None] = dict(database.query(sql, [base]))
    is_expired = base not in texts
    texts.pop(base, None)
    if len(texts) < latest.id - base:
        raise _conflict_error("what other writers did is not known, because their snapshots were expired", base)
    if staging.stream is not None:
        staging.stream.check_still_known(database)
    others = OtherChanges.of(change for text in texts.values() for change in parse_changes(text))
    sql = f"SELECT schema_id, schema_name FROM ducklake_schema WHERE {At(base).visible()}"
    schemas: dict[int, str] = dict(database.query(sql))
    if is_expired and not others.values.get("dropped_schema", frozenset()) <= set(map(str, schemas)):
        raise _conflict_error("another writer dropped a schema, whose name was expired with its snapshots,", base)
    found = find_conflict((*staging.changes, *staging.unlogged), others, schemas)
    found = found or next(_broken_reliances(database, staging, others), None)
    if found:
        raise _conflict_error(f"{found.thing} {_name(database, found, base)} {found.event}", base)
    for path in _linked_twice(database, staging):
        raise _conflict_error(f"{path} was linked into the same table by another writer", base)


def _broken_reliances(database: Database, staging: Staging, others: OtherChanges) -> Iterator[Conflict]:
    for reliance in staging.reliances:
        table = str(reliance.table_id)
        if others.did(table, *INSERTED) and reliance.is_broken(database, staging.base):
            yield Conflict("table", table, "got rows by another writer that a merge might have matched")


def _linked_twice(database: Database, staging: Staging) -> Iterator[str]:
    """Files that this transaction links, and somebody else has linked since it began."""
    rows = staging.added.get("ducklake_data_file", ())
    own = {(row["table_id"], row["path"]) for row in rows if not row["path_is_relative"]}
    if own:
        tables = ", ".join(str(table_id) for table_id in {table_id for table_id, _ in own})
        sql = f"""SELECT table_id, path FROM ducklake_data_file WHERE table_id IN ({tables}) AND path_is_relative = ?
                  AND begin_snapshot > ? AND end_snapshot IS NULL"""
        yield from sorted(
            path for _, path in own.intersection(map(tuple, database.query(sql, [False, staging.base.id])))
        )


def _conflict_error(reason: str, base: int) -> ConflictError:
    return ConflictError(
        f"{reason} since this transaction began at snapshot {base}; nothing was committed: "
        "read the lake again and repeat what you did"
    )


def _name(database: Database, found: Conflict, base: int) -> str:
    if not found.value.isdigit():
        return found.value
    kind = found.thing.rpartition(" ")[2]
    sql = f"SELECT {kind}_name FROM ducklake_{kind} WHERE {kind}_id = ? AND {At(base).visible()}"
    return str(database.value(sql, [int(found.value)]) or found.value)  # the name may have been expired
