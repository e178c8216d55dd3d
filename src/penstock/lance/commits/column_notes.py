"""What is noted of the columns of other programs' leaves, which carry no ids and are read as they are now.

Before the namespace's names change their meaning, the manifest tells which of its columns each of theirs is. A leaf
that is made anew after that goes by the names of that time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import InvalidError
from penstock.lance.commits.recovery import leaf_history
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
    return leaf.is_empty or (leaf.version is not None and leaf.noted is None and COLUMN_NOTES in entry.properties)


def with_column_notes(
    definition: NamespaceDefinition, store: DatasetStore, entry: ManifestEntry, leaf: Leaf
) -> ManifestEntry:
    """The entry of a leaf that tells what its columns are now."""
    dataset = store.find(leaf.location, leaf.version)
    if dataset is None:
        return entry  # only declared, or gone
    columns = leaf_columns(definition, leaf.object_id, dataset, current_column_notes(definition, leaf, dataset))
    text = column_notes_text(new_column_notes(columns, dataset), definition, dataset.schema)
    version = str(dataset.version) if leaf.version is None else None
    return entry.with_properties({COLUMN_NOTES: text, COLUMN_NOTES_VERSION: version})


def current_column_notes(definition: NamespaceDefinition, leaf: Leaf, dataset: LanceDataset) -> tuple[ColumnNote, ...]:
    """What is known of a leaf's columns: nothing any more of one that was made anew since they were noted."""
    from lance import LanceOperation

    if leaf.noted is None or dataset.version <= leaf.noted:
        return leaf.columns
    by_name = match_columns(definition, dataset.schema)
    if match_columns(definition, dataset.schema, leaf.columns, lance_field_ids(dataset)) == by_name:
        return ()  # the names say the same: no need to look at what was done to it
    steps = leaf_history(dataset, leaf.noted)
    if any(isinstance(step.operation, LanceOperation.Overwrite) for step in steps):
        return ()
    if any(step.done is None for step in steps):
        raise InvalidError(
            f"leaf {leaf.object_id}: nobody can tell any more which of the namespace's columns its {_named(leaf)} are,"
            " for another program has changed it and cleaned up how; write it anew with pylance (mode='overwrite'),"
            " with the names that the namespace's columns have now"
        )
    return leaf.columns


def _named(leaf: Leaf) -> str:
    return ", ".join(repr(one.name) for one in leaf.columns)
