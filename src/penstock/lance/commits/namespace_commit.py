"""How a write becomes visible: leaves are committed by one writer at a time, and shown by one change of the manifest.

A writer first puts its name into the root's entry, which is its turn. Then it commits to the leaves: readers do not see
that, for the manifest tells them which version of each leaf to read. Last it sets all of those versions at once, and
takes its name out. A writer that stops in between leaves versions that nobody reads; the next one to need such a leaf
heals it. Whether a writer still lives is told by a beat that it renews: no clock of another machine is asked.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.errors import ConflictError, NotFoundError
from penstock.lance.commits.leaf_records import leaf_at_dataset, may_misplace_rows, with_leaf_record
from penstock.lance.commits.recovery import WRITE_ID, leaf_history, without_unfinished_writes, without_write
from penstock.lance.format.dataset_store import DatasetStore
from penstock.lance.format.definition import NamespaceDefinition
from penstock.lance.format.leaves import Leaf, leaf_from_entry, missing_leaf_error
from penstock.lance.format.manifest import READ_VERSION, Manifest, ManifestChangedError, ManifestEntry, ManifestState
from penstock.lance.format.object_ids import join_object_id, object_id_parts

if TYPE_CHECKING:
    from lance import LanceDataset

WRITER = "lance.partitioning.writer"
_LEASE = 15.0  # seconds without a beat, after which a writer is taken for dead
_PAUSE = 0.05


@dataclass
class NamespaceCommit:
    """The right to commit, until `publish`."""

    manifest: Manifest
    name: str
    definition: NamespaceDefinition
    write_id: str
    state: ManifestState
    beats: int = 0
    _renewed: float = field(default_factory=time.monotonic)
    _touched: list[Leaf] = field(default_factory=list)
    _pinned: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._begun = self.state

    @property
    def store(self) -> DatasetStore:
        return self.manifest.store

    def leaf(self, object_id: str) -> Leaf | None:
        """A leaf as the manifest has it now."""
        entry = self.state.entry(object_id)
        return None if entry is None else leaf_from_entry(entry, self.name, self.definition.fields)

    def pin(self, object_ids: Iterable[str]) -> None:
        """Let readers see leaves of other programs, which have no version to read, as they are before we commit."""
        leaves = [leaf for leaf in map(self.leaf, object_ids) if leaf is not None and leaf.version is None]
        datasets = {leaf.object_id: self.store.find(leaf.location) for leaf in leaves}
        versions = {one: str(dataset.version if dataset else 0) for one, dataset in datasets.items()}
        if versions:
            self._change(lambda root: ([root, *self._set(READ_VERSION, versions)], []))
            self._pinned = list(versions)
            self.state = self._begun = self.manifest.state()

    def base(self, leaf: Leaf) -> LanceDataset | None:
        """The dataset to commit upon: what readers see, and what others than us have added to it since."""
        latest = self.store.find(leaf.location)
        if leaf.is_empty and latest is not None and any(step.writer is None for step in leaf_history(latest, 0)):
            raise ConflictError(f"leaf {leaf.object_id} was written to by another program meanwhile; run again")
        if latest is None and leaf.version:
            raise missing_leaf_error(leaf, self.store)
        if latest is None or not leaf.version:
            return latest
        self._touched.append(leaf)
        return latest if latest.version == leaf.version else without_unfinished_writes(self.store, leaf, latest)

    def unchanged(self, leaf: Leaf, base: LanceDataset, version: int) -> bool:
        """Whether a leaf's base holds just what the leaf held at a version."""
        return leaf.version == version and all(step.writer is not None for step in leaf_history(base, version))

    def check_adopted(self, leaf: Leaf) -> None:
        """Refuse to remove a leaf with rows of other programs that nobody has seen yet."""
        latest = self.store.find(leaf.location) if leaf.version else None
        if latest is not None and leaf.version and any(map(may_misplace_rows, leaf_history(latest, leaf.version))):
            raise ConflictError(
                f"leaf {leaf.object_id} has rows of another program that the namespace does not show yet; adopt() them"
                " and run again"
            )

    def commit(
        self, location: str, base: LanceDataset | None, operation: Any, read_version: int | None = None
    ) -> LanceDataset:
        """Commit an operation to a leaf; nobody reads it yet."""
        from lance import LanceDataset, Transaction
        from lance.commit import CommitConflictError

        version = read_version if read_version is not None else 0 if base is None else base.version
        transaction = Transaction(version, operation, transaction_properties={WRITE_ID: self.write_id})
        options = dict(self.store.options) or None
        try:
            done = LanceDataset.commit(base or self.store.uri(location), transaction, storage_options=options)
        except CommitConflictError as error:
            raise ConflictError(
                f"{self.store.uri(location)} was changed by another writer meanwhile; run again, or let the namespace"
                f" adopt() it first if that was another program ({str(error).splitlines()[0]})"
            ) from None
        if base is not None:
            self.check_alone(base.version, done)
        return done

    def check_alone(self, version: int, done: LanceDataset) -> None:
        """Refuse a commit that came after one of another writer of ours: one that was taken for dead."""
        others = done.version > version + 1 and [
            step for step in leaf_history(done, version) if step.writer not in (None, self.write_id)
        ]
        if others:
            raise ConflictError(f"{done.uri}: a writer that was silent for long came back meanwhile; run again")

    def shown(self, entry: ManifestEntry, dataset: LanceDataset) -> ManifestEntry:
        """A leaf's entry that shows this version of it: what others have done since the last one is adopted."""
        leaf = leaf_from_entry(entry, self.name, self.definition.fields)
        return with_leaf_record(
            self.definition, entry, leaf_at_dataset(self.definition, self.store, leaf, dataset), dataset
        )

    def beat(self) -> None:
        """Show that this writer lives, if it has not done so for a while."""
        if time.monotonic() - self._renewed > _LEASE / 4:
            self.beats += 1
            self._change(lambda root: ([root.with_properties({WRITER: self._sign()})], []))

    def publish(
        self, changed: Sequence[ManifestEntry], removed: Iterable[str], operation: str, **summary: object
    ) -> int:
        """Show all of it at once. The new version of the namespace."""
        gone = set(removed)

        def final(root: ManifestEntry) -> tuple[list[ManifestEntry], list[str]]:
            own = next((entry for entry in changed if entry.object_id == self.name), root)
            others = [entry for entry in changed if entry.object_id != self.name and self._is_new(entry)]
            emptied = _emptied(self.state, self.name, gone, others)
            return [own.with_properties({WRITER: None}), *others], [*gone, *emptied]

        told = {
            "penstock.namespace": self.name,
            "penstock.operation": operation,
            "penstock.summary": json.dumps(summary),
        }
        return self._change(final, told)

    def give_up(self) -> None:
        """Undo what was committed to leaves, and let the next writer have its turn. It heals what remains."""
        clean = set(self._pinned)
        for leaf in self._touched:
            try:
                without_write(self.store, leaf, self.store.dataset(leaf.location), self.write_id)
            except Exception:
                clean.discard(leaf.object_id)
        with suppress(Exception):
            unpinned = dict.fromkeys(clean)
            self._change(lambda root: ([root.with_properties({WRITER: None}), *self._set(READ_VERSION, unpinned)], []))

    def _set(self, key: str, values: Mapping[str, str | None]) -> list[ManifestEntry]:
        """The entries of objects with a property of each set."""
        found = ((self.state.entry(object_id), value) for object_id, value in values.items())
        return [entry.with_properties({key: value}) for entry, value in found if entry is not None]

    def _is_new(self, entry: ManifestEntry) -> bool:
        """Whether an entry has to be written: not for a namespace that another program made meanwhile."""
        now = self.state.entry(entry.object_id)
        if entry.kind == "namespace":
            return now is None
        if now != self._begun.entry(entry.object_id):
            raise ConflictError(f"leaf {entry.object_id} was changed by another program meanwhile; run again")
        return True

    def _sign(self) -> str:
        return f"{self.write_id}/{self.beats}"

    def _change(self, make: Any, properties: Mapping[str, str] = {}) -> int:
        while True:
            self.state = self.manifest.state()
            root = self.state.entry(self.name)
            writer = (root.properties.get(WRITER) or "") if root else ""
            if root is None or writer.partition("/")[0] != self.write_id:
                raise ConflictError(
                    f"namespace {self.name!r}: this writer was silent for {_LEASE:.0f} seconds and another one went on;"
                    " nothing of this write is visible: run it again"
                )
            changed, removed = make(root)
            with suppress(ManifestChangedError):
                version = self.manifest.commit(self.state, changed, removed, properties)
                self._renewed = time.monotonic()
                return version


@contextmanager
def namespace_commit(
    manifest: Manifest, name: str, definition: NamespaceDefinition, write_id: str
) -> Iterator[NamespaceCommit]:
    """Wait for the other writers of a namespace, then commit. What fails leaves everything as it was."""
    mine = NamespaceCommit(manifest, name, definition, write_id, _acquired(manifest, name, definition, write_id))
    try:
        yield mine
    except BaseException:
        mine.give_up()
        raise


def _acquired(manifest: Manifest, name: str, definition: NamespaceDefinition, write_id: str) -> ManifestState:
    seen, since = "", time.monotonic()
    while True:
        state = manifest.state()
        root = state.entry(name)
        if root is None:
            raise NotFoundError(f"there is no namespace {name!r} in {manifest.store.root} any more")
        _check_unchanged(name, definition, root)
        writer = root.properties.get(WRITER, "")
        if writer != seen:
            seen, since = writer, time.monotonic()
        if writer and time.monotonic() - since < _LEASE:
            time.sleep(_PAUSE)
            continue
        with suppress(ManifestChangedError):
            manifest.commit(state, [root.with_properties({WRITER: f"{write_id}/0"})])
            return manifest.state()


def _check_unchanged(name: str, definition: NamespaceDefinition, root: ManifestEntry) -> None:
    if any(root.properties.get(key) != text for key, text in definition.texts.items()):
        raise ConflictError(f"namespace {name!r} was changed by another writer meanwhile; open it and run again")


def _emptied(state: ManifestState, name: str, removed: set[str], added: Sequence[ManifestEntry]) -> list[str]:
    """The namespaces between the root and leaves that nothing is in any more."""
    inside = {entry.object_id: entry for entry in state.below(name) if entry.object_id not in removed}
    inside |= {entry.object_id: entry for entry in added}
    used = {
        join_object_id(object_id_parts(object_id)[:depth])
        for object_id, entry in inside.items()
        if entry.kind == "table"
        for depth in range(1, len(object_id_parts(object_id)))
    }
    above = {
        join_object_id(object_id_parts(gone)[:depth])
        for gone in removed
        for depth in range(1, len(object_id_parts(gone)))
    } - {name}
    return [
        object_id
        for object_id, entry in inside.items()
        if entry.kind == "namespace" and object_id in above and object_id not in used
    ]
