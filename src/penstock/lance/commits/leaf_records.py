"""What the manifest says of a leaf at a version: its size, its columns, and whether its rows surely belong there."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING

from penstock.lance.commits.column_notes import current_column_notes
from penstock.lance.commits.recovery import LeafStep, is_overwrite, leaf_history
from penstock.lance.format.dataset_store import DatasetStore
from penstock.lance.format.definition import NamespaceDefinition
from penstock.lance.format.leaf_columns import (
    COLUMN_NOTES,
    ColumnNote,
    column_notes_text,
    leaf_columns,
    new_column_notes,
)
from penstock.lance.format.leaves import COLUMN_NOTES_VERSION, UNCHECKED, Leaf
from penstock.lance.format.manifest import READ_VERSION, ManifestEntry

if TYPE_CHECKING:
    from lance import LanceDataset

BYTES, ROWS = "lance.partitioning.bytes", "lance.partitioning.rows"


def leaf_at_dataset(definition: NamespaceDefinition, store: DatasetStore, leaf: Leaf, dataset: LanceDataset) -> Leaf:
    """A leaf at another version, with its columns there. What other programs have written since is not checked yet."""
    steps = leaf_history(dataset, leaf.version) if leaf.version else []
    known = current_column_notes(definition, leaf, dataset)
    if any(step.writer is None for step in steps):
        known = _columns_before(definition, store, leaf, known)
    columns = leaf_columns(definition, leaf.object_id, dataset, known, any(is_overwrite(step) for step in steps))
    kept = list(takewhile(lambda step: step.writer is None or not is_overwrite(step), steps))
    checked = (leaf.checked or len(kept) < len(steps)) and not any(may_misplace_rows(step) for step in kept)
    return replace(
        leaf,
        version=dataset.version,
        columns=new_column_notes(columns, dataset),
        checked=checked or not leaf.own,
        noted=None,
    )


def with_leaf_record(
    definition: NamespaceDefinition, entry: ManifestEntry, leaf: Leaf, dataset: LanceDataset
) -> ManifestEntry:
    """The entry of a leaf that shows this version of it."""
    fragments = [fragment.metadata for fragment in dataset.get_fragments()]
    size = sum(file.file_size_bytes or 0 for fragment in fragments for file in fragment.files)
    rows = sum(fragment.num_rows for fragment in fragments)
    return entry.with_properties(
        {
            READ_VERSION: str(dataset.version),
            COLUMN_NOTES: column_notes_text(leaf.columns, definition, dataset.schema),
            COLUMN_NOTES_VERSION: None,
            BYTES: str(size),
            ROWS: str(rows),
            UNCHECKED: None if leaf.checked else "true",
        }
    )


def may_misplace_rows(step: LeafStep) -> bool:
    """Whether another program may have put values into a leaf that do not belong there."""
    from lance import LanceOperation

    harmless = (LanceOperation.Rewrite, LanceOperation.CreateIndex, LanceOperation.Delete, LanceOperation.UpdateConfig)
    # pylance has no class for the few that touch no row: to reserve fragments, which a compaction does first
    nameless = type(step.operation) is LanceOperation.BaseOperation
    return step.writer is None and not nameless and not isinstance(step.operation, harmless)


def _columns_before(
    definition: NamespaceDefinition, store: DatasetStore, leaf: Leaf, known: tuple[ColumnNote, ...]
) -> tuple[ColumnNote, ...]:
    """All columns of a leaf at the version that it shows: its entry may tell of some alone."""
    before = store.find(leaf.location, leaf.version)
    if before is None:
        return known  # it was cleaned up
    return new_column_notes(leaf_columns(definition, leaf.object_id, before, known), before)
