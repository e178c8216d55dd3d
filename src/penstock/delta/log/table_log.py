"""Reads Delta's transaction log: its versions, their actions and times."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import unquote

from penstock.delta.format.actions import Action, Metadata, RemoveFile
from penstock.delta.format.features import check_readable
from penstock.delta.format.properties import IN_COMMIT_TIMESTAMPS
from penstock.delta.format.times import from_milliseconds
from penstock.delta.log.log_files import CHECKPOINT_FIELDS, json_rows, known_actions, parquet_rows
from penstock.delta.log.snapshot import LogReplay, LogSnapshot
from penstock.errors import NotFoundError, PenstockError, UnsupportedError
from penstock.storage.filesystems import Listed, list_directory, read_bytes
from penstock.storage.paths import absolute, folder

_IN_COMMIT_SINCE = "delta.inCommitTimestampEnablementVersion"
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(
    r"(\d{20})\.checkpoint(?:\.(?P<part>\d{10})\.(?P<parts>\d{10})|\.(?P<id>[0-9a-fA-F-]{36}))?\.(?P<form>parquet|json)"
)
_REMOVAL_FIELDS = ["remove.path", "remove.deletionTimestamp", "remove.dataChange", "sidecar.path"]


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
        """The newest version; -1 where there is none."""
        return max((*self.commits, *self.checkpoints), default=-1)

    @cached_property
    def earliest(self) -> int:
        """The first version from which on the table is known; -1 where there is none."""
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
    """Reads the log of the table at a path. Nothing is kept between calls: each one sees the log as it is now.

    `single_writer` says that no one else writes to the table, which is the only safe way on object stores but S3.
    """

    path: str
    single_writer: bool = False

    @cached_property
    def root(self) -> str:
        """The table's directory; it ends in a slash."""
        return folder(absolute(self.path))

    @property
    def directory(self) -> str:
        """The log's directory; it ends in a slash."""
        return self.root + "_delta_log/"

    def commit_path(self, version: int) -> str:
        """Returns the path of a version's commit."""
        return f"{self.directory}{version:020}.json"

    def exists(self) -> bool:
        """Tells whether there is a Delta table."""
        return self.listing().latest >= 0

    def latest_version(self) -> int:
        """Returns the newest version; a NotFoundError where there is no table."""
        return self._found().latest

    def snapshot(self, version: int | None = None) -> LogSnapshot:
        """Returns the table as it is, or was at a version; a NotFoundError where there is no such."""
        listing = self._found()
        wanted = listing.latest if version is None else version
        if not listing.earliest <= wanted <= listing.latest or listing.earliest < 0:
            raise NotFoundError(
                f"Delta table {self.path} has no version {wanted}: {_available(listing)}; ask for one of those"
            )
        start = max((made for made in listing.checkpoints if made <= wanted), default=-1)
        replay = LogReplay()
        if start >= 0:
            replay.apply(self._checkpoint(listing.checkpoints[start]))
        for step in range(start + 1, wanted + 1):
            replay.apply(self.actions(step))
        return self._made(replay, wanted, listing)

    def removals(self) -> Iterator[RemoveFile]:
        """Yields all removals of files that the latest checkpoint and the commits after it tell of.

        One of a checkpoint has its path and its time only.
        """
        listing = self._found()
        start = max(listing.checkpoints, default=-1)
        for action in self._checkpoint(listing.checkpoints.get(start, ()), _REMOVAL_FIELDS):
            if isinstance(action, RemoveFile):
                yield action
        for version in range(start + 1, listing.latest + 1):
            yield from (action for action in self.actions(version) if isinstance(action, RemoveFile))

    def actions(self, version: int) -> list[Action]:
        """Returns the actions of one commit; a NotFoundError where it is missing."""
        return list(known_actions(self._lines(version), self.commit_path(version)))

    def info(self, version: int) -> Mapping[str, Any]:
        """Returns what a commit tells about itself; empty where its writer told nothing."""
        return next((line["commitInfo"] for line in self._lines(version) if "commitInfo" in line), {})

    def version_at(self, time: datetime) -> int:
        """Returns the newest version that is not younger than a time; one without a zone is of UTC."""
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
        """Returns the commits that are still there, the newest first."""
        listing, metadata = self._found(), self.snapshot().metadata
        versions = sorted(listing.commits, reverse=True)[:limit]
        return [
            HistoryEntry(version, self._time(version, metadata, listing), self.info(version)) for version in versions
        ]

    def listing(self) -> LogListing:
        """Lists what is in the log's directory now; files of other kinds, such as compacted commits, are left out."""
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
        return json_rows(content, path)

    def _checkpoint(self, files: Iterable[Listed], fields: Sequence[str] = CHECKPOINT_FIELDS) -> Iterator[Action]:
        for file in files:
            path = self.directory + file.name
            for row in self._rows(path, fields):
                if row.get("sidecar"):
                    beside = self.directory + "_sidecars/" + unquote(row["sidecar"]["path"]).rpartition("/")[2]
                    yield from known_actions(self._sidecar(beside, fields), beside)
                else:
                    yield from known_actions([row], path)

    def _sidecar(self, path: str, fields: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        try:
            yield from parquet_rows(path, fields)
        except FileNotFoundError as error:
            raise NotFoundError(
                f"Delta table {self.path} is damaged: a sidecar of a checkpoint is missing; restore {path}"
            ) from error

    def _rows(self, path: str, fields: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        return parquet_rows(path, fields) if path.endswith(".parquet") else json_rows(read_bytes(path), path)

    def _made(self, replay: LogReplay, version: int, listing: LogListing) -> LogSnapshot:
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


def _available(listing: LogListing) -> str:
    if listing.earliest < 0:
        return "its first commit and all checkpoints are gone"
    return f"there are the versions {listing.earliest} to {listing.latest}"


def _aware(time: datetime) -> datetime:
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time
