"""Reads and commits the manifest of a directory namespace: a Lance table with a row for each namespace and table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import NotFoundError
from penstock.lance.format.dataset_store import DatasetStore
from penstock.storage.filesystems import delete_file

if TYPE_CHECKING:
    from lance import LanceDataset

MANIFEST = "__manifest"
_ENTRY = ["object_id", "object_type", "location", "metadata"]
READ_VERSION = "lance.partitioning.read-version"  # of a table: the one that readers see


@dataclass(frozen=True)
class ManifestEntry:
    """The manifest's row of a namespace or a table; `location` is where the table's dataset is, below the root."""

    object_id: str
    kind: str
    location: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)

    def with_properties(self, changes: Mapping[str, str | None]) -> ManifestEntry:
        """The entry with some properties set, or removed by None."""
        merged = {**self.properties, **changes}
        return replace(self, properties={key: value for key, value in merged.items() if value is not None})


@dataclass(frozen=True)
class ManifestState:
    """The manifest at one version."""

    version: int
    rows: pa.Table = field(repr=False)

    def entry(self, object_id: str) -> ManifestEntry | None:
        """The entry of an object; None where there is none."""
        found = self.rows.filter(pc.equal(self.rows["object_id"], object_id)).to_pylist()
        return _entry(found[0]) if found else None

    def entries(self) -> list[ManifestEntry]:
        """The entries of everything."""
        return [_entry(row) for row in self.rows.to_pylist()]

    def below(self, object_id: str) -> list[ManifestEntry]:
        """The entries of everything inside a namespace, at any depth."""
        inside = pc.starts_with(self.rows["object_id"], object_id + "$")
        return [_entry(row) for row in self.rows.filter(inside).sort_by("object_id").to_pylist()]


@dataclass(frozen=True)
class ManifestChange:
    """A version of the manifest as one of our writers made it."""

    version: int
    timestamp: datetime
    properties: Mapping[str, str]


class ManifestChangedError(Exception):
    """Another writer changed the manifest first."""


@dataclass(frozen=True)
class Manifest:
    """The manifest of one root directory, at all its versions."""

    store: DatasetStore

    def state(self, version: int | None = None) -> ManifestState:
        """The manifest as it is now, or at a version. Raises NotFoundError without one."""
        dataset = self._dataset(version)
        return ManifestState(dataset.version, _distinct(dataset.to_table()))

    def time_of(self, version: int) -> datetime:
        """When a version was made."""
        return _times(self._dataset())[version]

    def versions(self) -> list[int]:
        """All versions that there are, whoever made them, the oldest first."""
        return sorted(_times(self._dataset()))

    def entries(self, versions: Iterable[int], *, missing_ok: bool = False) -> list[ManifestEntry]:
        """The different entries that objects have in some versions; some may have been cleaned up meanwhile."""
        found: pa.Table | None = None
        for version in versions:
            try:
                rows = self.state(version).rows.select(_ENTRY)
            except NotFoundError:
                if not missing_ok:
                    raise
                continue
            together = rows if found is None else pa.concat_tables([found, rows])
            found = together.group_by(_ENTRY).aggregate([])
        return [] if found is None else [_entry(row) for row in found.to_pylist()]

    def version_at(self, time: datetime, since: int = 0) -> int:
        """The newest version at or before a time, of those since one. Raises NotFoundError where there is none."""
        times = {version: made for version, made in _times(self._dataset()).items() if version >= since}
        found = [version for version, made in times.items() if made <= time]
        if not found:
            first = min(times.values())
            raise NotFoundError(f"no version at or before {time}; the oldest of {self.store.root} is of {first}")
        return max(found)

    def changes(self) -> list[ManifestChange]:
        """The versions that our writers made, the oldest first."""
        dataset = self._dataset()
        times = _times(dataset)
        newest_first = dataset.get_transactions(dataset.version)
        found = [
            ManifestChange(done.read_version + 1, times[done.read_version + 1], done.transaction_properties)
            for done in newest_first
            if done is not None and done.transaction_properties and done.read_version + 1 in times
        ]
        return found[::-1]

    def commit(
        self,
        state: ManifestState,
        changed: Iterable[ManifestEntry],
        removed: Iterable[str] = (),
        properties: Mapping[str, str] = {},
    ) -> int:
        """Put entries in place of those of the same id, and remove others, if nothing has changed since `state`.

        Returns the new version; raises ManifestChangedError where another writer was first.
        """
        from lance import LanceDataset, LanceOperation, Transaction
        from lance.commit import CommitConflictError
        from lance.fragment import write_fragments

        rows = _replaced(state.rows, {entry.object_id: entry for entry in changed}, removed)
        uri, options = self.store.uri(MANIFEST), dict(self.store.options) or None
        fragments = write_fragments(rows, uri, schema=rows.schema, mode="overwrite", storage_options=options)
        operation = LanceOperation.Overwrite(rows.schema, fragments)
        transaction = Transaction(state.version, operation, transaction_properties=dict(properties))
        try:
            base = self.store.dataset(MANIFEST, state.version)
            return int(LanceDataset.commit(base, transaction, max_retries=0, storage_options=options).version)
        except (CommitConflictError, ValueError, OSError) as error:
            if not isinstance(error, CommitConflictError) and state.version in self.versions():
                raise
            # Another writer was first; or, if the version that this one began with is gone, also cleaned up since.
            for file in (file for fragment in fragments for file in fragment.files):
                delete_file(f"{uri}/data/{file.path}")
            raise ManifestChangedError(str(error)) from None

    def _dataset(self, version: int | None = None) -> LanceDataset:
        try:
            return self.store.dataset(MANIFEST, version)
        except (ValueError, OSError) as error:
            wanted = "is no Lance namespace with a manifest" if version is None else f"has no version {version}"
            raise NotFoundError(f"{self.store.root} {wanted} ({str(error).splitlines()[0][:200]})") from None


def _entry(row: Mapping[str, Any]) -> ManifestEntry:
    return ManifestEntry(row["object_id"], row["object_type"], row["location"], json.loads(row["metadata"] or "{}"))


def _distinct(rows: pa.Table) -> pa.Table:
    """One row for each object: Lance's client refuses to change a manifest that has two.

    Of a table that is the row that shows its newest version. Of others nothing tells which is newer, and it is the
    first: a client that makes again what is there adds its row behind, without our properties.
    """
    ids = rows["object_id"].to_pylist()
    if len(set(ids)) == len(ids):
        return rows
    chosen: dict[str, tuple[int, ManifestEntry]] = {}
    for place, entry in enumerate(map(_entry, rows.to_pylist())):
        _, other = chosen.get(entry.object_id, (place, None))
        if other is None or (entry.location == other.location and _read_version(entry) > _read_version(other)):
            chosen[entry.object_id] = place, entry
    return rows.take(pa.array(sorted(place for place, _ in chosen.values())))


def _read_version(entry: ManifestEntry) -> int:
    return int(entry.properties.get(READ_VERSION, -1))


def _replaced(rows: pa.Table, changed: Mapping[str, ManifestEntry], removed: Iterable[str]) -> pa.Table:
    gone = pa.array([*changed, *removed], pa.string())
    kept = rows.filter(pc.invert(pc.is_in(rows["object_id"], value_set=gone)))
    old = {row["object_id"]: row for row in rows.filter(pc.is_in(rows["object_id"], value_set=gone)).to_pylist()}
    new = [
        {
            **old.get(entry.object_id, {}),  # what else a client keeps there
            "object_id": entry.object_id,
            "object_type": entry.kind,
            "location": entry.location,
            "metadata": json.dumps(dict(entry.properties)) if entry.properties else None,
        }
        for entry in changed.values()
    ]
    return pa.concat_tables([kept, pa.Table.from_pylist(new, schema=rows.schema)])


def _times(dataset: LanceDataset) -> dict[int, datetime]:
    """When each version was made. Lance gives local times without a zone."""
    versions: list[Any] = dataset.versions()
    return {item["version"]: item["timestamp"].astimezone(UTC) for item in versions}
