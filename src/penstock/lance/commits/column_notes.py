"""Notes in the manifest which of the namespace's columns those of other programs' leaves are.

Such columns carry no ids, and are read as they are now. So before the namespace's names change their meaning, the
leaf's entry tells which of its columns each of the leaf's is. A leaf that is overwritten after that goes by the names
of that time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import InvalidError
from penstock.lance.commits.leaf_history import leaf_history
from penstock.lance.format.dataset_store import DatasetStore
from penstock.lance.format.definition import NamespaceDefinition
from penstock.lance.format.leaf_columns import (
    COLUMN_NOTES,
    ColumnNote,
    column_notes_text,
    lance_field_ids,
    leaf_columns,
    match_columns,
    new_column_notes,
)
from penstock.lance.format.leaves import COLUMN_NOTES_VERSION, Leaf
from penstock.lance.format.manifest import ManifestEntry

if TYPE_CHECKING:
    from lance import LanceDataset


def has_column_notes(entry: ManifestEntry, leaf: Leaf) -> bool:
    """Whether a leaf's entry surely tells what its columns are at the version that is read."""
    return leaf.is_empty or (
        leaf.version is not None and leaf.notes_version is None and COLUMN_NOTES in entry.properties
    )


def with_column_notes(
    definition: NamespaceDefinition, store: DatasetStore, entry: ManifestEntry, leaf: Leaf
) -> ManifestEntry:
    """The leaf's entry with notes of what its columns are now."""
    dataset = store.find(leaf.location, leaf.version)
    if dataset is None:
        return entry  # only declared, or gone
    notes = current_column_notes(definition, leaf, dataset)
    columns = leaf_columns(definition, leaf.object_id, dataset, notes)
    text = column_notes_text(new_column_notes(columns, dataset), definition, dataset.schema)
    version = str(dataset.version) if leaf.version is None else None
    return entry.with_properties({COLUMN_NOTES: text, COLUMN_NOTES_VERSION: version})


def current_column_notes(definition: NamespaceDefinition, leaf: Leaf, dataset: LanceDataset) -> tuple[ColumnNote, ...]:
    """The notes that still hold for a leaf's columns: none for a leaf that was overwritten since they were made."""
    from lance import LanceOperation

    if leaf.notes_version is None or dataset.version <= leaf.notes_version:
        return leaf.column_notes
    by_name = match_columns(definition, dataset.schema)
    if match_columns(definition, dataset.schema, leaf.column_notes, lance_field_ids(dataset)) == by_name:
        return ()  # the names say the same: no need to look at what was done to it
    steps = leaf_history(dataset, leaf.notes_version)
    if any(isinstance(step.operation, LanceOperation.Overwrite) for step in steps):
        return ()
    if any(step.transaction is None for step in steps):
        names = ", ".join(repr(note.name) for note in leaf.column_notes)
        raise InvalidError(
            f"leaf {leaf.object_id}: nobody can tell any more which of the namespace's columns its {names} are,"
            " for another program has changed it and cleaned up how; write it anew with pylance (mode='overwrite'),"
            " with the names that the namespace's columns have now"
        )
    return leaf.column_notes
