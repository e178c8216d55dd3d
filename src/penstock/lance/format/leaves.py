"""The leaves of a partitioned namespace: read from manifest entries, with their partition values and versions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from penstock.errors import NotFoundError
from penstock.lance.format.dataset_store import DatasetStore
from penstock.lance.format.leaf_columns import ColumnNote, read_column_notes
from penstock.lance.format.manifest import READ_VERSION, ManifestEntry, ManifestState
from penstock.lance.format.object_ids import encode_value, join_object_id, object_id_parts, split_level
from penstock.lance.format.partition_fields import PartitionField

VALUES = "lance.partitioning.values"
UNCHECKED = "lance.partitioning.unchecked"
COLUMN_NOTES_VERSION = "lance.partitioning.columns-version"
PartitionValues = tuple[str | None, ...]


@dataclass(frozen=True)
class Leaf:
    """A table of the namespace: the rows of one combination of partition values.

    Without `values` its name says nothing that could leave it out of a read. Without `version` it is another writer's,
    and read as it is now; at version 0 it was declared, and holds nothing. The values of a leaf that is not `is_own`
    are what its name tells: another writer may have meant something else. To one that is not `checked`, another program
    has added rows which may not belong there.
    """

    object_id: str
    location: str
    values: PartitionValues | None
    version: int | None
    is_own: bool = True
    column_notes: tuple[ColumnNote, ...] = ()  # of the columns at that version, where a writer of ours has made any
    checked: bool = True
    notes_version: int | None = None  # the version that the notes are of, where that is not the one to read

    @property
    def is_empty(self) -> bool:
        """Whether the leaf was only declared."""
        return self.version == 0

    @property
    def raw_values(self) -> tuple[str, ...]:
        """What stands behind the `=` in the name of each level, with escapes as they are."""
        levels = object_id_parts(self.object_id)[-len(self.values) :] if self.values else []
        return tuple(level.partition("=")[2] for level in levels)


def leaves_in(state: ManifestState, name: str, fields: Sequence[PartitionField]) -> list[Leaf]:
    """All leaves of a namespace at a state of the manifest."""
    return [leaf_from_entry(entry, name, fields) for entry in state.below(name) if entry.kind == "table"]


def leaf_from_entry(entry: ManifestEntry, name: str, fields: Sequence[PartitionField]) -> Leaf:
    """The leaf that a table's manifest entry describes."""
    version, notes_version = (entry.properties.get(key) for key in (READ_VERSION, COLUMN_NOTES_VERSION))
    levels = object_id_parts(entry.object_id)[len(object_id_parts(name)) :]
    recorded = _recorded_values(entry.properties, len(fields))
    values = recorded or _values_by_name(levels, fields)
    assert entry.location is not None  # of a table
    return Leaf(
        entry.object_id,
        entry.location,
        values,
        int(version) if version else None,
        recorded is not None,
        read_column_notes(entry.properties),
        UNCHECKED not in entry.properties,
        int(notes_version) if notes_version else None,
    )


def missing_leaf_error(leaf: Leaf, store: DatasetStore) -> NotFoundError:
    """The error for a leaf that the manifest names and another program has deleted or cleaned up."""
    if store.find(leaf.location) is None:
        return NotFoundError(
            f"leaf {leaf.object_id} is gone: another program has deleted its dataset {store.uri(leaf.location)}; put it"
            ' back, or take the leaf out of the namespace with adopt(missing="drop")'
        )
    return NotFoundError(
        f"leaf {leaf.object_id} has no version {leaf.version} any more, which is the one to read: it was cleaned up;"
        " read a newer version of the namespace, or show the leaf as it is now with adopt()"
    )


def leaf_object_id(name: str, fields: Sequence[PartitionField], values: PartitionValues) -> str:
    """The object id of the leaf of these partition values: `events$country=US$city_bucket=3`."""
    levels = [f"{field.key}={encode_value(value)}" for field, value in zip(fields, values, strict=True)]
    return join_object_id([name, *levels])


def new_leaf_entries(
    name: str, fields: Sequence[PartitionField], values: PartitionValues, location: str
) -> Iterator[ManifestEntry]:
    """The manifest entries of a new leaf, the last, and of the namespaces that it is in."""
    full = leaf_object_id(name, fields, values)
    levels = object_id_parts(full)
    for depth in range(1, len(values)):
        prefix = join_object_id(levels[: len(levels) - len(values) + depth])
        yield ManifestEntry(prefix, "namespace", None, {VALUES: json.dumps(values[:depth])})
    yield ManifestEntry(full, "table", location, {VALUES: json.dumps(values)})


def _recorded_values(properties: Mapping[str, str], length: int) -> PartitionValues | None:
    """The values that a writer of ours has recorded in the leaf's entry, if they can be understood."""
    try:
        values = json.loads(properties.get(VALUES, "null"))
    except ValueError:
        return None
    plain = isinstance(values, list) and all(value is None or isinstance(value, str) for value in values)
    return tuple(values) if plain and len(values) == length else None


def _values_by_name(levels: Sequence[str], fields: Sequence[PartitionField]) -> PartitionValues | None:
    """The values that the names of another writer's leaf tell, if they can be understood."""
    if len(levels) != len(fields):
        return None
    values: list[str | None] = []
    for level, field in zip(levels, fields, strict=True):
        try:
            key, value = split_level(level)
        except ValueError:
            return None
        if key not in field.keys:
            return None
        values.append(value)
    return tuple(values)
