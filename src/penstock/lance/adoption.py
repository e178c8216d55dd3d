"""What other programs did to leaves that Penstock reads at a fixed version."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from penstock.lance.commit import Turn, turn
from penstock.lance.leaves import Leaf
from penstock.lance.manifest import Entry, Manifest
from penstock.lance.scan import Scan
from penstock.lance.store import Store
from penstock.lance.writing import new_write_id


def adopt(manifest: Manifest, scan: Scan) -> int | None:
    """Show every leaf as it is now, without what writers of ours have left unfinished; None if none has moved."""
    moved = [leaf for leaf in scan.leaves if leaf.version and _latest(scan.store, leaf) != leaf.version]
    if not moved:
        return None
    with turn(manifest, scan.name, scan.definition, new_write_id()) as mine:
        changed = [entry for entry in (_adopted(mine, leaf) for leaf in moved) if entry is not None]
        return mine.publish(changed, [], "adopt", leaves=len(changed))


def as_of(store: Store, leaf: Leaf, time: datetime) -> Leaf:
    """Another writer's leaf at the newest version that there was at a time; its first where there was none yet."""
    dataset = store.latest(leaf.location)
    if dataset is None:
        return leaf
    versions: list[Any] = dataset.versions()
    before = [item["version"] for item in versions if item["timestamp"].astimezone(UTC) <= time]
    return replace(leaf, version=max(before, default=versions[0]["version"]))


def _latest(store: Store, leaf: Leaf) -> int:
    return int(store.dataset(leaf.location).latest_version)


def _adopted(mine: Turn, moved: Leaf) -> Entry | None:
    leaf, entry = mine.leaf(moved.object_id), mine.state.entry(moved.object_id)
    base = None if leaf is None else mine.base(leaf)
    return None if entry is None or base is None else mine.shown(entry, base)
