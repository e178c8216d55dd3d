"""Commits a write to a namespace: to each leaf first, and then to all readers at once by one change of the manifest.

The manifest tells readers which version of each leaf to read, so they do not see what a writer commits to leaves before
it sets all of those versions at once. A writer that stops in between leaves versions that nobody reads; the next one
that needs such a leaf recovers it. One writer commits at a time: it holds the namespace's lease.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.errors import ConflictError
from penstock.lance.commits.leaf_history import WRITER_ID, leaf_history
from penstock.lance.commits.leaf_records import leaf_at_dataset, with_leaf_record
from penstock.lance.commits.recovery import without_unfinished_writes, without_write
from penstock.lance.commits.writer_lease import WRITER, WriterLease, acquire_lease
from penstock.lance.format.dataset_store import DATASETS_AT_ONCE, DatasetStore
from penstock.lance.format.definition import NamespaceDefinition
from penstock.lance.format.leaves import Leaf, leaf_from_entry, missing_leaf_error
from penstock.lance.format.manifest import READ_VERSION, Manifest, ManifestEntry, ManifestState
from penstock.lance.format.object_ids import join_object_id, object_id_parts
from penstock.storage.commit_log import log_commit

if TYPE_CHECKING:
    from lance import LanceDataset

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass
class NamespaceCommit:
    """One commit on its way, from the moment its writer holds the lease until `publish` gives it back."""

    lease: WriterLease
    definition: NamespaceDefinition
    _touched: list[Leaf] = field(default_factory=list)
    _pinned: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._begun = self.state

    @property
    def name(self) -> str:
        """The namespace's name."""
        return self.lease.name

    @property
    def state(self) -> ManifestState:
        """The manifest as this writer last saw it."""
        return self.lease.state

    @property
    def store(self) -> DatasetStore:
        """Where the leaves are."""
        return self.lease.manifest.store

    def leaf(self, object_id: str) -> Leaf | None:
        """A leaf as the manifest has it now; None where there is none."""
        entry = self.state.entry(object_id)
        return None if entry is None else leaf_from_entry(entry, self.name, self.definition.fields)

    def leaves(self) -> list[tuple[ManifestEntry, Leaf]]:
        """All leaves as the manifest has them now, with their entries."""
        tables = [entry for entry in self.state.below(self.name) if entry.kind == "table"]
        return [(entry, leaf_from_entry(entry, self.name, self.definition.fields)) for entry in tables]

    def for_each(self, items: Sequence[_Item], act: Callable[[_Item], _Result]) -> list[_Result]:
        """Act on many leaves at once, and renew the lease meanwhile; the results are in the order of the items."""
        with ThreadPoolExecutor(DATASETS_AT_ONCE) as pool:
            running = [pool.submit(act, item) for item in items]
            try:
                for one in as_completed(running):
                    one.result()
                    self.lease.renew()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        return [one.result() for one in running]

    def pin_versions(self, object_ids: Iterable[str]) -> None:
        """Let readers see leaves of other programs, which have no version to read, as they are before we commit."""
        leaves = [leaf for leaf in map(self.leaf, object_ids) if leaf is not None and leaf.version is None]
        datasets = {leaf.object_id: self.store.find(leaf.location) for leaf in leaves}
        versions = {one: str(dataset.version if dataset else 0) for one, dataset in datasets.items()}
        if versions:
            self.lease.change_manifest(lambda root: ([root, *self._with_property(READ_VERSION, versions)], []))
            self._pinned = list(versions)
            self.lease.state = self._begun = self.lease.manifest.state()

    def base_dataset(self, leaf: Leaf) -> LanceDataset | None:
        """The dataset to commit upon: what readers see, and what other programs have added to it since."""
        latest = self.store.find(leaf.location)
        if leaf.is_empty and latest is not None and any(step.is_foreign for step in leaf_history(latest, 0)):
            raise ConflictError(f"leaf {leaf.object_id} was written to by another program meanwhile; run again")
        if latest is None and leaf.version:
            raise missing_leaf_error(leaf, self.store)
        if latest is None or not leaf.version:
            return latest
        self._touched.append(leaf)
        return latest if latest.version == leaf.version else without_unfinished_writes(self.store, leaf, latest)

    def is_unchanged(self, leaf: Leaf, base: LanceDataset, version: int) -> bool:
        """Whether a leaf's base holds just what the leaf held at a version."""
        return leaf.version == version and not any(step.is_foreign for step in leaf_history(base, version))

    def check_adopted(self, leaf: Leaf) -> None:
        """Refuse to remove a leaf with rows of other programs that the namespace does not show yet."""
        latest = self.store.find(leaf.location) if leaf.version else None
        if latest is None or not leaf.version:
            return
        if any(step.may_misplace_rows for step in leaf_history(latest, leaf.version)):
            raise ConflictError(
                f"leaf {leaf.object_id} has rows of another program that the namespace does not show yet; adopt() them"
                " and run again"
            )

    def commit_leaf(
        self, location: str, base: LanceDataset | None, operation: Any, read_version: int | None = None
    ) -> LanceDataset:
        """Commit an operation to a leaf's dataset, which no reader of the namespace sees yet."""
        from lance import LanceDataset, Transaction
        from lance.commit import CommitConflictError

        version = read_version if read_version is not None else 0 if base is None else base.version
        transaction = Transaction(version, operation, transaction_properties={WRITER_ID: self.lease.writer_id})
        options = dict(self.store.options) or None
        try:
            done = LanceDataset.commit(base or self.store.uri(location), transaction, storage_options=options)
        except CommitConflictError as error:
            raise ConflictError(
                f"{self.store.uri(location)} was changed by another writer meanwhile; run again, or let the namespace"
                f" adopt() it first if that was another program ({str(error).splitlines()[0]})"
            ) from None
        except OSError as error:
            if "not found" not in str(error).lower():
                raise
            raise ConflictError(
                f"version {version} of {self.store.uri(location)}, which this write began with, was cleaned up"
                " meanwhile; run again"
            ) from None
        if base is not None:
            self.check_no_other_write(base.version, done)
        return done

    def check_no_other_write(self, version: int, done: LanceDataset) -> None:
        """Refuse a commit that came after one of another writer of ours, which was taken for dead."""
        others = done.version > version + 1 and [
            step for step in leaf_history(done, version) if step.writer_id not in (None, self.lease.writer_id)
        ]
        if others:
            raise ConflictError(f"{done.uri}: a writer that was silent for long came back meanwhile; run again")

    def entry_at(self, entry: ManifestEntry, dataset: LanceDataset) -> ManifestEntry:
        """A leaf's entry that shows this version of it, with what other programs have done to it since the last."""
        leaf = leaf_from_entry(entry, self.name, self.definition.fields)
        now = leaf_at_dataset(self.definition, self.store, leaf, dataset)
        return with_leaf_record(self.definition, entry, now, dataset)

    def publish(
        self, changed: Sequence[ManifestEntry], removed: Iterable[str], operation: str, **summary: object
    ) -> int:
        """Show all changes to readers at once, and give the lease back. Returns the namespace's new version."""
        gone = set(removed)

        def edit(root: ManifestEntry) -> tuple[list[ManifestEntry], list[str]]:
            own = next((entry for entry in changed if entry.object_id == self.name), root)
            others = [entry for entry in changed if entry.object_id != self.name and self._is_new(entry)]
            emptied = _emptied_namespaces(self.state, self.name, gone, others)
            return [own.with_properties({WRITER: None}), *others], [*gone, *emptied]

        properties = {
            "penstock.namespace": self.name,
            "penstock.operation": operation,
            "penstock.summary": json.dumps(summary),
        }
        version = self.lease.change_manifest(edit, properties)
        log_commit(self.store.uri(""), version, operation, [self.name])
        return version

    def roll_back(self) -> None:
        """Undo what was committed to leaves, and give the lease back. The next writer recovers what remains."""
        clean = set(self._pinned)
        for leaf in self._touched:
            try:
                without_write(self.store, leaf, self.store.dataset(leaf.location), self.lease.writer_id)
            except Exception:
                clean.discard(leaf.object_id)

        def edit(root: ManifestEntry) -> tuple[list[ManifestEntry], list[str]]:
            unpinned = self._with_property(READ_VERSION, dict.fromkeys(clean))
            return [root.with_properties({WRITER: None}), *unpinned], []

        with suppress(Exception):
            self.lease.change_manifest(edit)

    def _with_property(self, key: str, values: Mapping[str, str | None]) -> list[ManifestEntry]:
        """The entries of objects, with one property of each set to its value."""
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


@contextmanager
def begin_commit(
    manifest: Manifest, name: str, definition: NamespaceDefinition, writer_id: str
) -> Iterator[NamespaceCommit]:
    """Wait for the other writers of a namespace, then commit. What fails leaves everything as it was."""
    commit = NamespaceCommit(acquire_lease(manifest, name, definition, writer_id), definition)
    try:
        yield commit
    except BaseException:
        commit.roll_back()
        raise


def _emptied_namespaces(
    state: ManifestState, name: str, removed: set[str], added: Sequence[ManifestEntry]
) -> list[str]:
    """The namespaces between the root and leaves that nothing is in any more."""
    inside = {entry.object_id: entry for entry in state.below(name) if entry.object_id not in removed}
    inside |= {entry.object_id: entry for entry in added}
    tables = [object_id for object_id, entry in inside.items() if entry.kind == "table"]
    used = {namespace for object_id in tables for namespace in _namespaces_around(object_id)}
    above = {namespace for object_id in removed for namespace in _namespaces_around(object_id)} - {name}
    return [
        object_id
        for object_id, entry in inside.items()
        if entry.kind == "namespace" and object_id in above and object_id not in used
    ]


def _namespaces_around(object_id: str) -> list[str]:
    parts = object_id_parts(object_id)
    return [join_object_id(parts[:depth]) for depth in range(1, len(parts))]
