"""Adopts what other programs have done to leaves that the namespace shows at a fixed version."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from penstock.errors import InvalidError
from penstock.lance.commits.leaf_history import leaf_history
from penstock.lance.commits.leaf_records import leaf_at_dataset
from penstock.lance.commits.namespace_commit import NamespaceCommit, begin_commit
from penstock.lance.commits.writer_lease import new_writer_id
from penstock.lance.format.dataset_store import DatasetStore
from penstock.lance.format.leaves import UNCHECKED, Leaf, missing_leaf_error
from penstock.lance.format.manifest import Manifest, ManifestEntry
from penstock.lance.reading.leaf_scan import LeafScan
from penstock.lance.reading.misplaced_rows import misplaced_rows

MissingLeaves = Literal["error", "drop"]
MisplacedCounts = Callable[[LeafScan], Mapping[str, int]]


@dataclass(frozen=True)
class ChangedLeaf:
    """A leaf as it is now, which is not as readers see it, and how many of its rows do not belong there."""

    leaf: Leaf
    misplaced: int = 0


def adopt_leaves(
    manifest: Manifest, scan: LeafScan, missing: MissingLeaves = "error", misplaced: MisplacedCounts = misplaced_rows
) -> int | None:
    """Show every leaf as it is now, without what writers of ours have left unfinished.

    Rows that others have written are checked by Spark's tasks. Leaves with some that do not belong there are shown too,
    but never left out of a read, and a warning tells of them. Leaves that are gone are an error, or dropped. Returns
    the namespace's new version, or None where no leaf has changed.
    """
    if missing not in ("error", "drop"):
        raise InvalidError(f"adopt(missing={missing!r}): leaves that are gone are an 'error', or to 'drop'")
    are_gone = scan.store.each(lambda leaf: _is_gone(scan.store, leaf), scan.leaves)
    gone = [leaf for leaf, is_gone in zip(scan.leaves, are_gone, strict=True) if is_gone]
    if gone and missing == "error":
        raise missing_leaf_error(gone[0], scan.store)
    present = [leaf for leaf in scan.leaves if leaf.version and leaf not in gone]
    changed = [one for one in scan.store.each(lambda leaf: _changed(scan, leaf), present) if one is not None]
    removed = {leaf.object_id for leaf in gone}
    if not changed and not removed:
        return None
    checked = _with_misplaced_rows(scan, changed, misplaced)
    with begin_commit(manifest, scan.name, scan.definition, new_writer_id()) as commit:
        entries = [entry for entry in (_adopted(commit, one) for one in checked) if entry is not None]
        summary = {"leaves": len(entries), "removed leaves": len(removed)}
        version = commit.publish(entries, removed, "adopt", **summary)
    _warn_of_misplaced_rows(checked)
    return version


def _is_gone(store: DatasetStore, leaf: Leaf) -> bool:
    """Whether a leaf's dataset was deleted."""
    present = leaf.is_empty or store.find(leaf.location) is not None
    return not present and not (leaf.version is None and store.is_declared(leaf.location))


def _changed(scan: LeafScan, leaf: Leaf) -> ChangedLeaf | None:
    """The leaf as it is now; None where readers see it so, and its rows are checked."""
    dataset = scan.store.dataset(leaf.location)
    if dataset.version == leaf.version and leaf.checked:
        return None
    return ChangedLeaf(leaf_at_dataset(scan.definition, scan.store, leaf, dataset))


def _with_misplaced_rows(
    scan: LeafScan, changed: Sequence[ChangedLeaf], misplaced: MisplacedCounts
) -> list[ChangedLeaf]:
    """The leaves with the rows counted that do not belong there, where others have written."""
    unchecked = [one.leaf for one in changed if not one.leaf.checked]
    counts = misplaced(scan.only(unchecked)) if unchecked else {}
    return [replace(one, misplaced=counts.get(one.leaf.object_id, 0)) for one in changed]


def _adopted(commit: NamespaceCommit, changed: ChangedLeaf) -> ManifestEntry | None:
    """The leaf's entry that shows its newest version; None for a leaf that was removed meanwhile."""
    leaf, entry = commit.leaf(changed.leaf.object_id), commit.state.entry(changed.leaf.object_id)
    base = None if leaf is None else commit.base_dataset(leaf)
    if entry is None or base is None:
        return None
    seen = changed.leaf.version or 0
    unseen = base.version > seen and any(step.may_misplace_rows for step in leaf_history(base, seen))
    adopted = commit.entry_at(entry, base)
    return adopted if changed.misplaced or unseen else adopted.with_properties({UNCHECKED: None})


def _warn_of_misplaced_rows(changed: Sequence[ChangedLeaf]) -> None:
    for one in changed:
        if one.misplaced:
            warnings.warn(
                f"{one.misplaced} rows that another program has put into leaf {one.leaf.object_id} do not belong there:"
                " they are shown, and the leaf is read by every query; align() moves them to their leaves",
                stacklevel=4,
            )
