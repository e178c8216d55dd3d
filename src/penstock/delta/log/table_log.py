"""Delta's transaction log as it is read: checkpoints and commits, and the table that they add up to."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.delta.format.actions import (
    Action,
    AddFile,
    DomainMetadata,
    FileKey,
    Metadata,
    Protocol,
    RemoveFile,
    Txn,
    from_object,
)
from penstock.delta.format.features import check_readable
from penstock.delta.format.properties import IN_COMMIT_TIMESTAMPS
from penstock.delta.format.times import from_milliseconds
from penstock.errors import NotFoundError, PenstockError, UnsupportedError
from penstock.storage.filesystems import Listed, list_directory, open_file, read_bytes
from penstock.storage.paths import absolute, folder

_IN_COMMIT_SINCE = "delta.inCommitTimestampEnablementVersion"
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(
    r"(\d{20})\.checkpoint(?:\.(?P<part>\d{10})\.(?P<parts>\d{10})|\.(?P<id>[0-9a-fA-F-]{36}))?\.(?P<form>parquet|json)"
)
_ROW_FIELDS = [  # of a checkpoint; the parsed partition values and statistics repeat what their texts say
    *("protocol", "metaData", "txn", "domainMetadata", "sidecar.path"),
    *("add.path", "add.partitionValues", "add.size", "add.modificationTime", "add.dataChange", "add.stats", "add.tags"),
    *("add.deletionVector", "add.baseRowId", "add.defaultRowCommitVersion", "add.clusteringProvider"),
]
_REMOVAL_FIELDS = ["remove.path", "remove.deletionTimestamp", "remove.dataChange", "sidecar.path"]
_BATCH = 4096


@dataclass(frozen=True)
class LogSnapshot:
    """The table at one version. `timestamp` is that of the version's commit."""

    version: int
    timestamp: datetime
    protocol: Protocol
    metadata: Metadata
    files: Mapping[FileKey, AddFile]
    txns: Mapping[str, int]
    domains: Mapping[str, DomainMetadata]


class HistoryEntry(NamedTuple):
    """An entry of the history; `info` is empty where the writer told nothing."""

    version: int
    timestamp: datetime
    info: Mapping[str, Any]


@dataclass(frozen=True)
class LogListing:
    """What is in the log's directory: when each commit was written, and the files of each complete checkpoint."""

    commits: Mapping[int, int]
    checkpoints: Mapping[int, Sequence[Listed]]

    @property
    def latest(self) -> int:
        return max((*self.commits, *self.checkpoints), default=-1)

    @cached_property
    def earliest(self) -> int:
        """The first version from which on the table is known."""
        return 0 if 0 in self.commits else min(self.checkpoints, default=-1)

    @cached_property
    def modified(self) -> Mapping[int, int]:
        """The time of each commit by its file, in milliseconds, each after the one before as Delta has it."""
        times: dict[int, int] = {}
        last = -1
        for version in sorted(self.commits):
            last = times[version] = max(self.commits[version], last + 1)
        return times


@dataclass(frozen=True)
class TableLog:
    """The log of the table at a path. Nothing is kept between calls: each one sees the log as it is now.

    `single_writer` says that no one else writes to the table, which is the only safe way on an object store.
    """

    path: str
    single_writer: bool = False

    @cached_property
    def root(self) -> str:
        """The table's directory; it ends in a slash."""
        return folder(absolute(self.path))

    @property
    def directory(self) -> str:
        return self.root + "_delta_log/"

    def commit_path(self, version: int) -> str:
        return f"{self.directory}{version:020}.json"

    def exists(self) -> bool:
        """Whether there is a Delta table."""
        return self.listing().latest >= 0

    def latest_version(self) -> int:
        return self._found().latest

    def snapshot(self, version: int | None = None) -> LogSnapshot:
        """The table as it is, or was at a version."""
        listing = self._found()
        wanted = listing.latest if version is None else version
        if not listing.earliest <= wanted <= listing.latest or listing.earliest < 0:
            raise NotFoundError(
                f"Delta table {self.path} has no version {wanted}: {_available(listing)}; ask for one of those"
            )
        start = max((made for made in listing.checkpoints if made <= wanted), default=-1)
        replay = _Replay()
        if start >= 0:
            replay.apply(self._checkpoint(listing.checkpoints[start]))
        for step in range(start + 1, wanted + 1):
            replay.apply(self.actions(step))
        return self._made(replay, wanted, listing)

    def removals(self) -> Iterator[RemoveFile]:
        """All removals of files that the latest checkpoint and the commits after it tell of; one of a checkpoint has
        its path and its time only."""
        listing = self._found()
        start = max(listing.checkpoints, default=-1)
        for action in self._checkpoint(listing.checkpoints.get(start, ()), _REMOVAL_FIELDS):
            if isinstance(action, RemoveFile):
                yield action
        for version in range(start + 1, listing.latest + 1):
            yield from (action for action in self.actions(version) if isinstance(action, RemoveFile))

    def actions(self, version: int) -> list[Action]:
        """The actions of one commit; a NotFoundError where it is missing."""
        return list(_known(self._lines(version), self.commit_path(version)))

    def info(self, version: int) -> Mapping[str, Any]:
        """What a commit tells about itself; empty where its writer told nothing."""
        return next((line["commitInfo"] for line in self._lines(version) if "commitInfo" in line), {})

    def version_at(self, time: datetime) -> int:
        """The newest version that is not younger than a time; one without a zone is of UTC."""
        listing, metadata = self._found(), self.snapshot().metadata
        versions = range(max(listing.earliest, 0), listing.latest + 1)
        known = [version for version in versions if version in listing.commits]
        found = bisect_right(known, _aware(time), key=lambda version: self._time(version, metadata, listing))
        if found == 0:
            first = (
                f"its first one is of {self._time(known[0], metadata, listing)}" if known else "its commits are gone"
            )
            raise NotFoundError(f"Delta table {self.path} has no version of {_aware(time)} or before: {first}")
        return known[found - 1]

    def history(self, limit: int | None = None) -> list[HistoryEntry]:
        """The commits that are still there, the newest first."""
        listing, metadata = self._found(), self.snapshot().metadata
        versions = sorted(listing.commits, reverse=True)[:limit]
        return [
            HistoryEntry(version, self._time(version, metadata, listing), self.info(version)) for version in versions
        ]

    def listing(self) -> LogListing:
        """What is in the log's directory now; files of other kinds, such as compacted commits, are left out."""
        commits: dict[int, int] = {}
        checkpoints: dict[tuple[int, str], list[Listed]] = defaultdict(list)
        for file in list_directory(self.directory):
            if commit := _COMMIT.fullmatch(file.name):
                commits[int(commit[1])] = file.modified
            elif checkpoint := _CHECKPOINT.fullmatch(file.name):
                made_of = checkpoint["parts"] or checkpoint["id"] or ""
                checkpoints[int(checkpoint[1]), made_of].append(file)
        complete = {
            version: sorted(files)
            for (version, made_of), files in sorted(checkpoints.items(), reverse=True)
            if not made_of.isdigit() or len(files) == int(made_of)
        }
        return LogListing(commits, complete)

    def _found(self) -> LogListing:
        listing = self.listing()
        if listing.latest < 0:
            raise NotFoundError(
                f"there is no Delta table at {self.path}: {self.directory} has no commit; create it first"
            )
        return listing

    def _lines(self, version: int) -> Iterator[Mapping[str, Any]]:
        path = self.commit_path(version)
        try:
            content = read_bytes(path)
        except FileNotFoundError as error:
            raise NotFoundError(
                f"Delta table {self.path} is damaged: the commit of version {version} is missing; restore {path}"
            ) from error
        return _json_rows(content, path)

    def _checkpoint(self, files: Iterable[Listed], fields: Sequence[str] = _ROW_FIELDS) -> Iterator[Action]:
        for file in files:
            path = self.directory + file.name
            for row in self._rows(path, fields):
                if row.get("sidecar"):
                    beside = self.directory + "_sidecars/" + unquote(row["sidecar"]["path"]).rpartition("/")[2]
                    yield from _known(self._sidecar(beside, fields), beside)
                else:
                    yield from _known([row], path)

    def _sidecar(self, path: str, fields: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        try:
            yield from _parquet_rows(path, fields)
        except FileNotFoundError as error:
            raise NotFoundError(
                f"Delta table {self.path} is damaged: a sidecar of a checkpoint is missing; restore {path}"
            ) from error

    def _rows(self, path: str, fields: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        return _parquet_rows(path, fields) if path.endswith(".parquet") else _json_rows(read_bytes(path), path)

    def _made(self, replay: _Replay, version: int, listing: LogListing) -> LogSnapshot:
        protocol, metadata = replay.protocol, replay.metadata
        if protocol is None or metadata is None:
            raise PenstockError(
                f"Delta table {self.path} is damaged: version {version} has no protocol or no metaData; restore its log"
            )
        check_readable(protocol, self.path)
        if metadata.format.provider != "parquet":
            raise UnsupportedError(
                f"Delta table {self.path} is stored as {metadata.format.provider}; convert it to parquet"
            )
        time = self._time(version, metadata, listing)
        return LogSnapshot(version, time, protocol, metadata, replay.files, replay.txns, replay.domains)

    def _time(self, version: int, metadata: Metadata, listing: LogListing) -> datetime:
        since = int(metadata.configuration.get(_IN_COMMIT_SINCE, 0))
        if metadata.enables(IN_COMMIT_TIMESTAMPS) and version >= since and version in listing.commits:
            told = self.info(version).get("inCommitTimestamp")
            if told is not None:
                return from_milliseconds(told)
        if version in listing.modified:
            return from_milliseconds(listing.modified[version])
        if version in listing.checkpoints:
            return from_milliseconds(max(file.modified for file in listing.checkpoints[version]))
        return from_milliseconds(
            max((time for before, time in listing.modified.items() if before < version), default=0)
        )


@dataclass
class _Replay:
    """What the actions so far add up to."""

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    files: dict[FileKey, AddFile] = field(default_factory=dict)
    txns: dict[str, int] = field(default_factory=dict)
    domains: dict[str, DomainMetadata] = field(default_factory=dict)

    def apply(self, actions: Iterable[Action]) -> None:
        """Add one commit, whose actions have no order among each other, or a checkpoint."""
        added: dict[FileKey, AddFile] = {}
        for action in actions:
            match action:
                case AddFile():
                    added[action.key] = action
                case RemoveFile():
                    self.files.pop(action.key, None)
                case Protocol():
                    self.protocol = action
                case Metadata():
                    self.metadata = action
                case Txn():
                    self.txns[action.app_id] = action.version
                case DomainMetadata(removed=True):
                    self.domains.pop(action.domain, None)
                case DomainMetadata():
                    self.domains[action.domain] = action
        self.files.update(added)


def _parquet_rows(path: str, fields: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    with open_file(path) as source, pq.ParquetFile(source) as file:
        for batch in file.iter_batches(_BATCH, columns=list(fields)):
            for kind, structs in zip(batch.schema.names, batch.columns, strict=True):
                yield from ({kind: values} for values in _records(structs.drop_null()))


def _records(structs: pa.StructArray) -> Iterator[dict[str, Any]]:
    """The structs without the fields that none of them has: Arrow is slow at making nested Python values."""
    parts = zip(structs.type, structs.flatten(), strict=True)
    columns = {part.name: values for part, values in parts if values.null_count < len(values)}
    rows = zip(*(values.to_pylist(maps_as_pydicts="strict") for values in columns.values()), strict=True)
    return (dict(zip(columns, row, strict=True)) for row in rows)


def _json_rows(content: bytes, path: str) -> Iterator[Mapping[str, Any]]:
    for line in content.split(b"\n"):
        if line.strip():
            try:
                yield json.loads(line)
            except ValueError as error:
                raise PenstockError(f"{path} is damaged: {error} in {line[:80]!r}; restore it") from error


def _known(rows: Iterable[Mapping[str, Any]], path: str) -> Iterator[Action]:
    for row in rows:
        try:
            action = from_object(row)
        except (TypeError, AttributeError, ValueError) as error:
            raise PenstockError(f"{path} is damaged: {error} in {str(row)[:80]}; restore it") from error
        if action is not None:
            yield action


def _available(listing: LogListing) -> str:
    if listing.earliest < 0:
        return "its first commit and all checkpoints are gone"
    return f"there are the versions {listing.earliest} to {listing.latest}"


def _aware(time: datetime) -> datetime:
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time
