"""Records in the manifest what a leaf is at a version: its size, its columns, and whether its rows were checked."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING

from penstock.lance.commits.column_notes import current_column_notes
from penstock.lance.commits.leaf_history import leaf_history
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
    """The leaf at a version of its dataset, with its columns there. What other programs have written is not checked."""
    steps = leaf_history(dataset, leaf.version) if leaf.version else []
    notes = current_column_notes(definition, leaf, dataset)
    if any(step.is_foreign for step in steps):
        notes = _notes_of_all_columns(definition, store, leaf, notes)
    overwritten = any(step.is_overwrite for step in steps)
    columns = leaf_columns(definition, leaf.object_id, dataset, notes, overwritten)
    kept = list(takewhile(lambda step: step.is_foreign or not step.is_overwrite, steps))
    checked = (leaf.checked or len(kept) < len(steps)) and not any(step.may_misplace_rows for step in kept)
    return replace(
        leaf,
        version=dataset.version,
        column_notes=new_column_notes(columns, dataset),
        checked=checked or not leaf.is_own,
        notes_version=None,
    )


def with_leaf_record(
    definition: NamespaceDefinition, entry: ManifestEntry, leaf: Leaf, dataset: LanceDataset
) -> ManifestEntry:
    """The leaf's entry with this version of it as the one to read, and what is known of the leaf there."""
    fragments = [fragment.metadata for fragment in dataset.get_fragments()]
    size = sum(file.file_size_bytes or 0 for fragment in fragments for file in fragment.files)
    rows = sum(fragment.num_rows for fragment in fragments)
    return entry.with_properties(
        {
            READ_VERSION: str(dataset.version),
            COLUMN_NOTES: column_notes_text(leaf.column_notes, definition, dataset.schema),
            COLUMN_NOTES_VERSION: None,
            BYTES: str(size),
            ROWS: str(rows),
            UNCHECKED: None if leaf.checked else "true",
        }
    )


def _notes_of_all_columns(
    definition: NamespaceDefinition, store: DatasetStore, leaf: Leaf, notes: tuple[ColumnNote, ...]
) -> tuple[ColumnNote, ...]:
    """Notes of all columns of a leaf at the version that readers see: its entry may have those of some alone."""
    before = store.find(leaf.location, leaf.version)
    if before is None:
        return notes  # it was cleaned up
    return new_column_notes(leaf_columns(definition, leaf.object_id, before, notes), before)
