"""Commits to Delta's log: one file that appears whole or not at all, and what to do when another writer was first."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypeAlias, TypeVar

from penstock.delta.format.actions import (
    Action,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    Txn,
)
from penstock.delta.format.features import check_may_remove, check_writable, materializes
from penstock.delta.format.properties import IN_COMMIT_TIMESTAMPS
from penstock.delta.log.links import without_links
from penstock.delta.log.table_log import LogSnapshot, TableLog, moment
from penstock.errors import ConflictError, InvalidError, NotFoundError
from penstock.storage.filesystems import create_file, make_directory
from penstock.version import __version__

ReadSet: TypeAlias = Callable[[AddFile], bool]
_A = TypeVar("_A", Protocol, Metadata)
RETRIES = 1000


def nothing_read(file: AddFile) -> bool:
    """What a blind append has read."""
    return False


def everything_read(file: AddFile) -> bool:
    """What a writer has read that has read the whole table."""
    return True


class Committed(NamedTuple):
    """The version of a commit. `skipped` says that its transaction was there already, and nothing was written."""

    version: int
    skipped: bool = False


def commit(
    log: TableLog,
    base: LogSnapshot | None,
    actions: Sequence[Action],
    operation: str,
    parameters: Mapping[str, object],
    *,
    read: ReadSet = nothing_read,
    metrics: Mapping[str, object] | None = None,
    retries: int = RETRIES,
) -> Committed:
    """Make the actions of a writer that has seen `base`, and of its files those that `read` picks, the next version.

    `base` is None where the table is to be created. What other writers committed since then is looked through: if the
    writer might have acted otherwise on it, that is a ConflictError, and nothing is committed. A commit whose `Txn`
    is not newer than the one that `base` has of the same application is skipped.
    """
    _check(log, base, actions)
    if base is not None and _is_done(base, actions):
        return Committed(base.version, skipped=True)
    attempt = _Attempt(log, base, actions, read)
    attempt.catch_up(log.listing().latest)
    if base is None:
        make_directory(log.directory)
    for _ in range(retries + 1):
        content = attempt.content(_info(operation, parameters, metrics))
        if create_file(log.commit_path(attempt.version), content, single_writer=log.single_writer):
            return Committed(attempt.version)
        attempt.catch_up(attempt.version)
    raise ConflictError(
        f"Delta table {log.path} is too busy: other writers were first {retries + 1} times; run the write again"
    )


class _Attempt:
    """A commit on its way: `version` is the one it tries to become, `last` the time of the version before."""

    def __init__(self, log: TableLog, base: LogSnapshot | None, actions: Sequence[Action], read: ReadSet) -> None:
        self.log, self.base, self.actions, self.own = log, base, actions, _Intent.of(actions, read)
        self.version = 0 if base is None else base.version + 1
        self.last = None if base is None else base.timestamp

    def catch_up(self, latest: int) -> None:
        """Go past all commits of other writers, at least to `latest`, if none of them is in the way."""
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
        """The file of the commit. `info` is completed by what only the attempt knows."""
        now, metadata = datetime.now(UTC), _only(Metadata, self.actions)
        told = {"timestamp": _milliseconds(now), **info}
        if self.base is not None:
            told["readVersion"] = self.base.version
            metadata = metadata or self.base.metadata
        told["isBlindAppend"] = self.own.is_blind
        if metadata is not None and metadata.enables(IN_COMMIT_TIMESTAMPS):
            after = now if self.last is None else max(now, self.last + timedelta(milliseconds=1))
            told = {"inCommitTimestamp": _milliseconds(after), **told}
        lines = (CommitInfo(told), *self.actions)
        return "".join(action.to_json() + "\n" for action in lines).encode()

    def _check(self, winner: Sequence[Action]) -> None:
        if self.base is None:
            raise ConflictError(f"a Delta table was created at {self.log.path} meanwhile; open it, or write to it")
        for conflict in _conflicts(self.base, self.own, winner):
            raise ConflictError(
                f"nothing was committed to Delta table {self.log.path}: version {self.version}, which another writer "
                f"committed meanwhile, {conflict}; run the write again"
            )


@dataclass(frozen=True)
class _Intent:
    """What of a writer's actions may stand against those of others."""

    read: ReadSet
    paths: frozenset[str]
    apps: frozenset[str]
    domains: frozenset[str]
    is_blind: bool
    rearranges: bool  # who only moves rows needs not know of new ones
    metadata: bool  # whether it is changed

    @classmethod
    def of(cls, actions: Sequence[Action], read: ReadSet) -> _Intent:
        files = [action for action in actions if isinstance(action, AddFile | RemoveFile)]
        return cls(
            read,
            frozenset(action.decoded_path for action in files),
            frozenset(action.app_id for action in actions if isinstance(action, Txn)),
            frozenset(action.domain for action in actions if isinstance(action, DomainMetadata)),
            is_blind=read is nothing_read and not any(isinstance(action, RemoveFile) for action in files),
            rearranges=bool(files) and not any(action.data_change for action in files),
            metadata=any(isinstance(action, Metadata) for action in actions),
        )

    def is_changed_by(self, old: Metadata, new: Metadata) -> bool:
        """Whether new metadata stand against the writer; notes of links only do if it would write over them."""
        return old != new if self.metadata else without_links(old) != without_links(new)


def _conflicts(base: LogSnapshot, own: _Intent, winner: Sequence[Action]) -> Iterator[str]:
    """What another writer's commit did that stands against the intent of a writer who has seen `base`."""
    for action in winner:
        match action:
            case Protocol() if action != base.protocol:
                yield _protocol_change(base.protocol, action)
            case Metadata() if own.is_changed_by(base.metadata, action):
                yield "changed the table's metadata"
            case AddFile() if not own.rearranges and own.read(action):
                yield f"added {action.decoded_path} to what this write has read"
            case RemoveFile() if action.decoded_path in own.paths:
                yield f"removed {action.decoded_path}, which this write removes or adds too"
            case RemoveFile() if action.key in base.files and own.read(base.files[action.key]):
                yield f"removed {action.decoded_path}, which this write has read"
            case Txn() if action.app_id in own.apps:
                yield f"is of the same application {action.app_id}"
            case DomainMetadata() if action.domain in own.domains:
                yield f"changed the same domain {action.domain}"


def _protocol_change(old: Protocol, new: Protocol) -> str:
    if materializes(new) and not materializes(old):
        return "switched on materializePartitionColumns, and the files of this write may lack those columns"
    return "changed the table's protocol"


def _check(log: TableLog, base: LogSnapshot | None, actions: Sequence[Action]) -> None:
    """That the table may be written to, and the actions are a commit as the protocol has it."""
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
    return next((moment(time) for time in told if time is not None), None)


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
    """Delta keeps parameters as text, and whatever is not text as JSON in it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _milliseconds(time: datetime) -> int:
    return (time - moment(0)) // timedelta(milliseconds=1)
