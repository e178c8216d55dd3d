"""Commits versions to Delta's log, after those of other writers where none of them is in the way."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypeVar

from penstock.delta.format.actions import (
    Action,
    AddFile,
    CommitInfo,
    Metadata,
    Protocol,
    RemoveFile,
    Txn,
)
from penstock.delta.format.features import check_may_remove, check_writable
from penstock.delta.format.properties import IN_COMMIT_TIMESTAMPS
from penstock.delta.format.times import from_milliseconds, to_milliseconds
from penstock.delta.log.conflicts import CommitIntent, ReadSet, conflicts, nothing_read
from penstock.delta.log.snapshot import LogSnapshot
from penstock.delta.log.table_log import TableLog
from penstock.errors import ConflictError, InvalidError, NotFoundError
from penstock.storage.commit_log import log_commit, log_retry
from penstock.storage.filesystems import create_file, make_directory
from penstock.version import __version__

_A = TypeVar("_A", Protocol, Metadata)
RETRIES = 1000


class Committed(NamedTuple):
    """The version of a commit. `skipped` says that its transaction was there already, and nothing was written."""

    version: int
    skipped: bool = False


def writable_snapshot(log: TableLog) -> LogSnapshot:
    """Returns the newest version of a table that Penstock may write to; an UnsupportedError says why it may not."""
    snapshot = log.snapshot()
    check_writable(snapshot.protocol, snapshot.metadata, log.path)
    return snapshot


def commit(
    log: TableLog,
    base: LogSnapshot | None,
    actions: Sequence[Action],
    operation: str,
    parameters: Mapping[str, object],
    *,
    read_set: ReadSet = nothing_read,
    metrics: Mapping[str, object] | None = None,
    retries: int = RETRIES,
) -> Committed:
    """Makes actions the next version: one file of the log, which appears whole or not at all.

    The writer has seen `base`, and of its files those in `read_set`; `base` is None where the table is to be created.
    What other writers committed since then is looked through: if the writer might have acted otherwise on it, that is a
    ConflictError, and nothing is committed. A commit whose `Txn` is not newer than the one that `base` has of the same
    application is skipped.
    """
    _check(log, base, actions)
    if base is not None and _is_done(base, actions):
        return Committed(base.version, skipped=True)
    attempt = _Attempt(log, base, actions, read_set)
    attempt.catch_up(log.listing().latest)
    if base is None:
        make_directory(log.directory)
    for number in range(retries + 1):
        content = attempt.content(_info(operation, parameters, metrics))
        if create_file(log.commit_path(attempt.version), content, single_writer=log.single_writer):
            log_commit(log.path, attempt.version, operation, ())
            return Committed(attempt.version)
        log_retry(log.path, f"another writer committed version {attempt.version} first", number + 2, 0)
        attempt.catch_up(attempt.version)
    raise ConflictError(
        f"Delta table {log.path} is too busy: other writers were first {retries + 1} times; run the write again"
    )


class _Attempt:
    """A commit that tries to become `version`; `last` is the time of the version before."""

    def __init__(self, log: TableLog, base: LogSnapshot | None, actions: Sequence[Action], read_set: ReadSet) -> None:
        self.log, self.base, self.actions, self.own = log, base, actions, CommitIntent.of(actions, read_set)
        self.version = 0 if base is None else base.version + 1
        self.last = None if base is None else base.timestamp

    def catch_up(self, latest: int) -> None:
        """Goes past all commits of other writers, at least to `latest`, if none of them is in the way."""
        while True:
            try:
                winner = self.log.actions(self.version)
            except NotFoundError as error:
                if self.version <= latest:
                    raise ConflictError(
                        f"Delta table {self.log.path} has gone on since this write began, and version {self.version} "
                        f"can no longer be compared with it: its commit is gone; run the write again"
                    ) from error
                return
            self._check(winner)
            self.last = _in_commit_time(winner) or self.last
            self.version += 1

    def content(self, info: Mapping[str, Any]) -> bytes:
        """Returns the content of the commit's file. `info` is completed by what only the attempt knows."""
        now, metadata = datetime.now(UTC), _only(Metadata, self.actions)
        told = {"timestamp": to_milliseconds(now), **info}
        if self.base is not None:
            told["readVersion"] = self.base.version
            metadata = metadata or self.base.metadata
        told["isBlindAppend"] = self.own.is_blind
        if metadata is not None and metadata.enables(IN_COMMIT_TIMESTAMPS):
            after = now if self.last is None else max(now, self.last + timedelta(milliseconds=1))
            told = {"inCommitTimestamp": to_milliseconds(after), **told}
        lines = (CommitInfo(told), *self.actions)
        return "".join(action.to_json() + "\n" for action in lines).encode()

    def _check(self, winner: Sequence[Action]) -> None:
        if self.base is None:
            raise ConflictError(f"a Delta table was created at {self.log.path} meanwhile; open it, or write to it")
        for conflict in conflicts(self.base, self.own, winner):
            raise ConflictError(
                f"nothing was committed to Delta table {self.log.path}: version {self.version}, which another writer "
                f"committed meanwhile, {conflict}; run the write again"
            )


def _check(log: TableLog, base: LogSnapshot | None, actions: Sequence[Action]) -> None:
    """Refuses a table that may not be written to, and actions that the protocol does not allow in one commit."""
    protocol, metadata = _only(Protocol, actions), _only(Metadata, actions)
    if base is not None:
        check_writable(base.protocol, base.metadata, log.path)
        check_may_remove(base.protocol, base.metadata, actions, log.path)
    elif protocol is None or metadata is None:
        raise InvalidError(f"the first commit of Delta table {log.path} lacks its protocol or metaData; add them")
    for kind in (AddFile, RemoveFile):
        paths = Counter(action.decoded_path for action in actions if isinstance(action, kind))
        twice = [path for path, times in paths.items() if times > 1]
        if twice:
            raise InvalidError(f"a commit to Delta table {log.path} has {twice[0]} twice; give every file its own name")


def _in_commit_time(actions: Sequence[Action]) -> datetime | None:
    told = (action.values.get("inCommitTimestamp") for action in actions if isinstance(action, CommitInfo))
    return next((from_milliseconds(time) for time in told if time is not None), None)


def _is_done(base: LogSnapshot, actions: Sequence[Action]) -> bool:
    txns = [action for action in actions if isinstance(action, Txn)]
    return any(action.version <= base.txns.get(action.app_id, action.version - 1) for action in txns)


def _only(kind: type[_A], actions: Sequence[Action]) -> _A | None:
    found = [action for action in actions if isinstance(action, kind)]
    if len(found) > 1:
        raise InvalidError(f"a commit has {len(found)} actions {kind.kind}; leave one")
    return found[0] if found else None


def _info(operation: str, parameters: Mapping[str, object], metrics: Mapping[str, object] | None) -> dict[str, Any]:
    told: dict[str, Any] = {
        "operation": operation,
        "operationParameters": {name: _text(value) for name, value in parameters.items()},
        "isolationLevel": "Serializable",
        "engineInfo": f"Penstock/{__version__}",
    }
    return told if metrics is None else {**told, "operationMetrics": {name: str(of) for name, of in metrics.items()}}


def _text(value: object) -> str:
    """Writes a parameter as Delta keeps it: as text, and whatever is not text as JSON in it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
