"""Finds the versions of leaves and of the manifest that no kept version of a namespace needs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from penstock.lance.commits.leaf_history import leaf_history
from penstock.lance.format.dataset_store import DatasetStore
from penstock.lance.format.definition import ENABLED, NamespaceDefinition
from penstock.lance.format.kept_versions import cleaned_version, oldest_version
from penstock.lance.format.leaves import Leaf, leaf_from_entry
from penstock.lance.format.manifest import MANIFEST, Manifest, ManifestChange, ManifestEntry, ManifestState

if TYPE_CHECKING:
    from lance import LanceDataset

NAMESPACE, OPERATION = "penstock.namespace", "penstock.operation"


@dataclass(frozen=True)
class UnneededVersions:
    """Versions of one table, by its object id, that nobody needs.

    A leaf that is `dropped` is in no kept version: all that it holds can go.
    """

    table: str
    location: str
    versions: tuple[int, ...]
    dropped: bool = False


@dataclass(frozen=True)
class KeptLeaves:
    """What kept versions of a namespace need of each leaf: versions by location, and the leaves by their locations.

    `untouched` are the locations of tables that are not ours to clean up: another program made them, or they are shown
    elsewhere in the directory.
    """

    needed: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    object_ids: dict[str, str] = field(default_factory=dict)
    untouched: set[str] = field(default_factory=set)

    def add(self, leaf: Leaf) -> None:
        """Take note of a leaf as one of the versions shows it."""
        if not leaf.is_own or not leaf.version:
            self.untouched.add(leaf.location)
            return
        self.object_ids[leaf.location] = leaf.object_id
        self.needed[leaf.location] |= {leaf.version, *([leaf.notes_version] if leaf.notes_version else [])}


def oldest_kept(
    manifest: Manifest, state: ManifestState, name: str, moment: datetime | None, keep_last: int | None
) -> int | None:
    """The oldest version to keep: of those since a moment, or of the last few; the newest always stays.

    None where Penstock has made no version, so that none can be told from the others.
    """
    since = oldest_version(state.entry(name))
    own = [change for change in _published(manifest.changes(), name) if change.version >= since]
    if not own:
        return None
    if keep_last is not None:
        return own[-keep_last:][0].version
    assert moment is not None  # or there would be a number
    return next((change.version for change in own if change.timestamp >= moment), own[-1].version)


def unneeded_versions(
    manifest: Manifest, state: ManifestState, name: str, definition: NamespaceDefinition, oldest: int
) -> Iterator[UnneededVersions]:
    """The versions that can go when a namespace keeps those from `oldest` on: last, the manifest's."""
    versions, changes = manifest.versions(), manifest.changes()
    kept = KeptLeaves()
    for entry in manifest.entries(version for version in versions if version >= oldest):
        if entry.kind == "table" and entry.object_id.startswith(f"{name}$"):
            kept.add(leaf_from_entry(entry, name, definition.fields))
        elif entry.location is not None:
            kept.untouched.add(entry.location)
    before = [change.version for change in _published(changes, name) if change.version < oldest]
    dropped = _dropped_leaves(manifest.entries(before, missing_ok=True), name, definition, kept)
    for location, object_id in sorted(kept.object_ids.items()):
        dataset = None if location in kept.untouched else manifest.store.find(location)
        if dataset is not None:  # else it is another program's, or gone, which adopt() is for
            # Those between two needed ones stay: a writer that began with the older looks at what was done since.
            first, there = min(kept.needed[location]), _versions(dataset)
            if first in there:  # else another program has made it anew
                yield UnneededVersions(object_id, location, tuple(one for one in there if one < first))
    for leaf in dropped:
        yield from _of_dropped_leaf(manifest.store, leaf)
    first = min(_oldest_versions(changes, state, name, oldest))
    yield UnneededVersions(MANIFEST, MANIFEST, tuple(version for version in versions if version < first))


def _published(changes: Sequence[ManifestChange], name: str) -> list[ManifestChange]:
    return [change for change in changes if change.properties.get(NAMESPACE) == name]


def _dropped_leaves(
    entries: Iterable[ManifestEntry], name: str, definition: NamespaceDefinition, kept: KeptLeaves
) -> list[Leaf]:
    """Leaves of ours that only versions before the kept ones show, each as the newest of these does."""
    found: dict[str, Leaf] = {}
    for entry in entries:
        if entry.kind == "table" and entry.object_id.startswith(f"{name}$"):
            leaf = leaf_from_entry(entry, name, definition.fields)
            if not leaf.is_own or not leaf.version:
                kept.untouched.add(leaf.location)
            elif leaf.version > (found[leaf.location].version or 0 if leaf.location in found else 0):
                found[leaf.location] = leaf
    gone = sorted(found.keys() - kept.needed.keys() - kept.untouched)
    return [found[location] for location in gone]


def _of_dropped_leaf(store: DatasetStore, leaf: Leaf) -> Iterator[UnneededVersions]:
    """All versions of a leaf that is in none of the kept, unless another program has written to it since."""
    dataset = store.find(leaf.location)
    if dataset is None or any(step.is_foreign for step in leaf_history(dataset, leaf.version or 0)):
        return
    emptied = not dataset.get_fragments()
    versions = tuple(number for number in _versions(dataset) if not emptied or number < dataset.version)
    yield UnneededVersions(leaf.object_id, leaf.location, versions, dropped=not emptied)


def _versions(dataset: LanceDataset) -> list[int]:
    found: list[Any] = dataset.versions()
    return [item["version"] for item in found]


def _oldest_versions(changes: Sequence[ManifestChange], state: ManifestState, name: str, oldest: int) -> Iterator[int]:
    """The oldest kept version of each partitioned namespace of the directory: they share the manifest."""
    yield oldest
    created = {
        change.properties[NAMESPACE]: change.version
        for change in changes
        if change.properties.get(OPERATION) == "create"
    }
    for entry in state.entries():
        if entry.kind == "namespace" and entry.properties.get(ENABLED) == "true" and entry.object_id != name:
            yield cleaned_version(entry) or created.get(entry.object_id, 0)
