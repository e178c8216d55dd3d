"""What the manifest says of a leaf at a version: its size, its columns, and whether its rows surely belong there."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING

from penstock.lance.commits.column_notes import known_now
from penstock.lance.commits.recovery import Step, history, overwrites
from penstock.lance.format.dataset_store import Store
from penstock.lance.format.definition import Definition
from penstock.lance.format.leaf_columns import COLUMNS, Known, columns_text, leaf_columns, noted_columns
from penstock.lance.format.leaves import NOTED_VERSION, UNCHECKED, Leaf
from penstock.lance.format.manifest import READ_VERSION, Entry

if TYPE_CHECKING:
    from lance import LanceDataset

BYTES, ROWS = "lance.partitioning.bytes", "lance.partitioning.rows"


def leaf_now(definition: Definition, store: Store, leaf: Leaf, dataset: LanceDataset) -> Leaf:
    """A leaf at another version, with its columns there. What other programs have written since is not checked yet."""
    steps = history(dataset, leaf.version) if leaf.version else []
    known = known_now(definition, leaf, dataset)
    if any(step.writer is None for step in steps):
        known = _columns_before(definition, store, leaf, known)
    columns = leaf_columns(definition, leaf.object_id, dataset, known, any(overwrites(step) for step in steps))
    kept = list(takewhile(lambda step: step.writer is None or not overwrites(step), steps))
    checked = (leaf.checked or len(kept) < len(steps)) and not any(brings_values(step) for step in kept)
    return replace(
        leaf,
        version=dataset.version,
        columns=noted_columns(columns, dataset),
        checked=checked or not leaf.own,
        noted=None,
    )


def entry_showing(definition: Definition, entry: Entry, leaf: Leaf, dataset: LanceDataset) -> Entry:
    """The entry of a leaf that shows this version of it."""
    fragments = [fragment.metadata for fragment in dataset.get_fragments()]
    size = sum(file.file_size_bytes or 0 for fragment in fragments for file in fragment.files)
    rows = sum(fragment.num_rows for fragment in fragments)
    return entry.with_properties(
        {
            READ_VERSION: str(dataset.version),
            COLUMNS: columns_text(leaf.columns, definition, dataset.schema),
            NOTED_VERSION: None,
            BYTES: str(size),
            ROWS: str(rows),
            UNCHECKED: None if leaf.checked else "true",
        }
    )


def brings_values(step: Step) -> bool:
    """Whether another program may have put values into a leaf that do not belong there."""
    from lance import LanceOperation

    harmless = (LanceOperation.Rewrite, LanceOperation.CreateIndex, LanceOperation.Delete, LanceOperation.UpdateConfig)
    # pylance has no class for the few that touch no row: to reserve fragments, which a compaction does first
    nameless = type(step.operation) is LanceOperation.BaseOperation
    return step.writer is None and not nameless and not isinstance(step.operation, harmless)


def _columns_before(definition: Definition, store: Store, leaf: Leaf, known: tuple[Known, ...]) -> tuple[Known, ...]:
    """All columns of a leaf at the version that it shows: its entry may tell of some alone."""
    before = store.find(leaf.location, leaf.version)
    if before is None:
        return known  # it was cleaned up
    return noted_columns(leaf_columns(definition, leaf.object_id, before, known), before)
