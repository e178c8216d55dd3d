"""What other programs did to leaves that Penstock reads at a fixed version."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

from penstock.errors import InvalidError
from penstock.lance.commits.leaf_records import leaf_at_dataset, may_misplace_rows
from penstock.lance.commits.namespace_commit import NamespaceCommit, namespace_commit
from penstock.lance.commits.recovery import leaf_history
from penstock.lance.format.dataset_store import DatasetStore
from penstock.lance.format.leaves import UNCHECKED, Leaf, missing_leaf_error
from penstock.lance.format.manifest import Manifest, ManifestEntry
from penstock.lance.reading.leaf_checks import misplaced_rows
from penstock.lance.reading.leaf_scan import LeafScan
from penstock.lance.writing.fragment_write_job import new_write_id

MissingLeaves = Literal["error", "drop"]
MisplacedCounts = Callable[[LeafScan], Mapping[str, int]]
_THREADS = 8


@dataclass(frozen=True)
class ChangedLeaf:
    """A leaf as it is now, which is not as readers see it, and how many of its rows do not belong there."""

    leaf: Leaf
    misplaced: int = 0


def adopt_leaves(
    manifest: Manifest, scan: LeafScan, missing: MissingLeaves = "error", misplaced: MisplacedCounts = misplaced_rows
) -> int | None:
    """Show every leaf as it is now, without what writers of ours have left unfinished; None if none has moved.

    Rows that others have written are looked at by Spark's tasks. Leaves with some that do not belong there are shown
    too, but never left out of a read, and a warning tells of them. Leaves that are gone are an error, or dropped.
    """
    if missing not in ("error", "drop"):
        raise InvalidError(f"adopt(missing={missing!r}): leaves that are gone are an 'error', or to 'drop'")
    with ThreadPoolExecutor(_THREADS) as pool:
        lost = [leaf for leaf in pool.map(lambda leaf: _gone(scan.store, leaf), scan.leaves) if leaf is not None]
        if lost and missing == "error":
            raise missing_leaf_error(lost[0], scan.store)
        there = [leaf for leaf in scan.leaves if leaf.version and leaf not in lost]
        moved = [one for one in pool.map(lambda leaf: _moved(scan, leaf), there) if one is not None]
    gone = {leaf.object_id for leaf in lost}
    if not moved and not gone:
        return None
    looked_at = _looked_at(scan, moved, misplaced)
    with namespace_commit(manifest, scan.name, scan.definition, new_write_id()) as mine:
        changed = [entry for entry in (_adopted(mine, one) for one in looked_at) if entry is not None]
        version = mine.publish(changed, gone, "adopt", leaves=len(changed), **{"removed leaves": len(gone)})
    _warn(looked_at)
    return version


def leaf_at_time(store: DatasetStore, leaf: Leaf, time: datetime) -> Leaf:
    """Another writer's leaf at the newest version that there was at a time; its first where there was none yet."""
    dataset = store.find(leaf.location)
    if dataset is None:
        return leaf
    versions: list[Any] = dataset.versions()
    before = [item["version"] for item in versions if item["timestamp"].astimezone(UTC) <= time]
    return replace(leaf, version=max(before, default=versions[0]["version"]))


def _gone(store: DatasetStore, leaf: Leaf) -> Leaf | None:
    """The leaf, if its dataset was deleted."""
    there = leaf.is_empty or store.find(leaf.location) is not None
    declared = leaf.version is None and store.is_declared(leaf.location)
    return None if there or declared else leaf


def _moved(scan: LeafScan, leaf: Leaf) -> ChangedLeaf | None:
    dataset = scan.store.dataset(leaf.location)
    if dataset.version == leaf.version and leaf.checked:
        return None
    return ChangedLeaf(leaf_at_dataset(scan.definition, scan.store, leaf, dataset))


def _looked_at(scan: LeafScan, moved: Sequence[ChangedLeaf], misplaced: MisplacedCounts) -> list[ChangedLeaf]:
    """The same, with the rows that do not belong counted where others have written."""
    doubtful = [one.leaf for one in moved if not one.leaf.checked]
    counts = misplaced(scan.only(doubtful)) if doubtful else {}
    return [replace(one, misplaced=counts.get(one.leaf.object_id, 0)) for one in moved]


def _adopted(mine: NamespaceCommit, moved: ChangedLeaf) -> ManifestEntry | None:
    leaf, entry = mine.leaf(moved.leaf.object_id), mine.state.entry(moved.leaf.object_id)
    base = None if leaf is None else mine.base(leaf)
    if entry is None or base is None:
        return None
    seen = moved.leaf.version or 0
    unseen = base.version > seen and any(may_misplace_rows(step) for step in leaf_history(base, seen))
    shown = mine.shown(entry, base)
    return shown if moved.misplaced or unseen else shown.with_properties({UNCHECKED: None})


def _warn(moved: Sequence[ChangedLeaf]) -> None:
    for one in moved:
        if one.misplaced:
            warnings.warn(
                f"{one.misplaced} rows that another program has put into leaf {one.leaf.object_id} do not belong there:"
                " they are shown, and the leaf is read by every query; align() moves them to their leaves",
                stacklevel=4,
            )
