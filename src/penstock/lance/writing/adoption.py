"""What other programs did to leaves that Penstock reads at a fixed version."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

from penstock.errors import InvalidError
from penstock.lance.commits.leaf_records import brings_values, leaf_now
from penstock.lance.commits.namespace_commit import Turn, turn
from penstock.lance.commits.recovery import history
from penstock.lance.format.dataset_store import Store
from penstock.lance.format.leaves import UNCHECKED, Leaf, missing_leaf
from penstock.lance.format.manifest import Entry, Manifest
from penstock.lance.reading.leaf_checks import misplaced_rows
from penstock.lance.reading.leaf_scan import Scan
from penstock.lance.writing.fragment_write_job import new_write_id

Missing = Literal["error", "drop"]
Counting = Callable[[Scan], Mapping[str, int]]
_THREADS = 8


@dataclass(frozen=True)
class Moved:
    """A leaf as it is now, which is not as readers see it, and how many of its rows do not belong there."""

    leaf: Leaf
    misplaced: int = 0


def adopt(
    manifest: Manifest, scan: Scan, missing: Missing = "error", misplaced: Counting = misplaced_rows
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
            raise missing_leaf(lost[0], scan.store)
        there = [leaf for leaf in scan.leaves if leaf.version and leaf not in lost]
        moved = [one for one in pool.map(lambda leaf: _moved(scan, leaf), there) if one is not None]
    gone = {leaf.object_id for leaf in lost}
    if not moved and not gone:
        return None
    looked_at = _looked_at(scan, moved, misplaced)
    with turn(manifest, scan.name, scan.definition, new_write_id()) as mine:
        changed = [entry for entry in (_adopted(mine, one) for one in looked_at) if entry is not None]
        version = mine.publish(changed, gone, "adopt", leaves=len(changed), **{"removed leaves": len(gone)})
    _warn(looked_at)
    return version


def as_of(store: Store, leaf: Leaf, time: datetime) -> Leaf:
    """Another writer's leaf at the newest version that there was at a time; its first where there was none yet."""
    dataset = store.find(leaf.location)
    if dataset is None:
        return leaf
    versions: list[Any] = dataset.versions()
    before = [item["version"] for item in versions if item["timestamp"].astimezone(UTC) <= time]
    return replace(leaf, version=max(before, default=versions[0]["version"]))


def _gone(store: Store, leaf: Leaf) -> Leaf | None:
    """The leaf, if its dataset was deleted."""
    there = leaf.is_empty or store.find(leaf.location) is not None
    declared = leaf.version is None and store.is_declared(leaf.location)
    return None if there or declared else leaf


def _moved(scan: Scan, leaf: Leaf) -> Moved | None:
    dataset = scan.store.dataset(leaf.location)
    if dataset.version == leaf.version and leaf.checked:
        return None
    return Moved(leaf_now(scan.definition, scan.store, leaf, dataset))


def _looked_at(scan: Scan, moved: Sequence[Moved], misplaced: Counting) -> list[Moved]:
    """The same, with the rows that do not belong counted where others have written."""
    doubtful = [one.leaf for one in moved if not one.leaf.checked]
    counts = misplaced(scan.only(doubtful)) if doubtful else {}
    return [replace(one, misplaced=counts.get(one.leaf.object_id, 0)) for one in moved]


def _adopted(mine: Turn, moved: Moved) -> Entry | None:
    leaf, entry = mine.leaf(moved.leaf.object_id), mine.state.entry(moved.leaf.object_id)
    base = None if leaf is None else mine.base(leaf)
    if entry is None or base is None:
        return None
    seen = moved.leaf.version or 0
    unseen = base.version > seen and any(brings_values(step) for step in history(base, seen))
    shown = mine.shown(entry, base)
    return shown if moved.misplaced or unseen else shown.with_properties({UNCHECKED: None})


def _warn(moved: Sequence[Moved]) -> None:
    for one in moved:
        if one.misplaced:
            warnings.warn(
                f"{one.misplaced} rows that another program has put into leaf {one.leaf.object_id} do not belong there:"
                " they are shown, and the leaf is read by every query; align() moves them to their leaves",
                stacklevel=4,
            )
