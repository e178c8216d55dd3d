"""The leaves of a partitioned namespace: which there are, and with which partition values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from penstock.errors import NotFoundError
from penstock.lance.format.dataset_store import Store
from penstock.lance.format.definition import PartitionField
from penstock.lance.format.leaf_columns import Known, known_columns
from penstock.lance.format.manifest import READ_VERSION, Entry, State
from penstock.lance.format.object_ids import encode, join, parts, split

VALUES = "lance.partitioning.values"
UNCHECKED = "lance.partitioning.unchecked"
NOTED_VERSION = "lance.partitioning.columns-version"
Values = tuple[str | None, ...]


@dataclass(frozen=True)
class Leaf:
    """A table of the namespace. Without `values` its name says nothing that could leave it out; without `version`
    it is another writer's, and read as it is now; at version 0 it was declared, and holds nothing.

    The values of a leaf that is not `own` are what its name tells: another writer may have meant something else. To one
    that is not `checked`, another program has added rows which may not belong there."""

    object_id: str
    location: str
    values: Values | None
    version: int | None
    own: bool = True
    columns: tuple[Known, ...] = ()  # as they were at that version, where a writer of ours has noted them
    checked: bool = True
    noted: int | None = None  # the version that the columns were noted at, where that is not the one to read

    @property
    def is_empty(self) -> bool:
        return self.version == 0

    @property
    def names(self) -> tuple[str, ...]:
        """What stands behind the `=` in the name of each level, letter for letter."""
        levels = parts(self.object_id)[-len(self.values) :] if self.values else []
        return tuple(level.partition("=")[2] for level in levels)


def leaves_of(state: State, name: str, fields: Sequence[PartitionField]) -> list[Leaf]:
    """All tables inside the namespace."""
    return [leaf_of(entry, name, fields) for entry in state.below(name) if entry.kind == "table"]


def leaf_of(entry: Entry, name: str, fields: Sequence[PartitionField]) -> Leaf:
    version, noted = (entry.properties.get(key) for key in (READ_VERSION, NOTED_VERSION))
    levels = parts(entry.object_id)[len(parts(name)) :]
    recorded = _recorded(entry.properties, len(fields))
    values = recorded or _named(levels, fields)
    assert entry.location is not None  # of a table
    return Leaf(
        entry.object_id,
        entry.location,
        values,
        int(version) if version else None,
        recorded is not None,
        known_columns(entry.properties),
        UNCHECKED not in entry.properties,
        int(noted) if noted else None,
    )


def missing_leaf(leaf: Leaf, store: Store) -> NotFoundError:
    """The error for a leaf that the manifest names and another program has deleted or cleaned up."""
    if store.find(leaf.location) is None:
        return NotFoundError(
            f"leaf {leaf.object_id} is gone: another program has deleted its dataset {store.uri(leaf.location)}; put it"
            ' back, or take the leaf out of the namespace with adopt(missing="drop")'
        )
    return NotFoundError(
        f"leaf {leaf.object_id} has no version {leaf.version} any more, which is the one to read: another program has"
        " cleaned it up; show the leaf as it is now with adopt()"
    )


def object_id(name: str, fields: Sequence[PartitionField], values: Values) -> str:
    """The id of the leaf of these partition values: `events$country=US$city_bucket=3`."""
    levels = [f"{field.key}={encode(value)}" for field, value in zip(fields, values, strict=True)]
    return join([name, *levels])


def entries_for(name: str, fields: Sequence[PartitionField], values: Values, location: str) -> Iterator[Entry]:
    """The entries of a new leaf and of the namespaces that it is in."""
    full = object_id(name, fields, values)
    levels = parts(full)
    for depth in range(1, len(values)):
        prefix = join(levels[: len(levels) - len(values) + depth])
        yield Entry(prefix, "namespace", None, {VALUES: json.dumps(values[:depth])})
    yield Entry(full, "table", location, {VALUES: json.dumps(values)})


def _recorded(properties: Mapping[str, str], length: int) -> Values | None:
    try:
        values = json.loads(properties.get(VALUES, "null"))
    except ValueError:
        return None
    plain = isinstance(values, list) and all(value is None or isinstance(value, str) for value in values)
    return tuple(values) if plain and len(values) == length else None


def _named(levels: Sequence[str], fields: Sequence[PartitionField]) -> Values | None:
    """The values that the names of another writer's leaf tell, if they can be understood."""
    if len(levels) != len(fields):
        return None
    values: list[str | None] = []
    for level, field in zip(levels, fields, strict=True):
        try:
            key, value = split(level)
        except ValueError:
            return None
        if key not in field.keys:
            return None
        values.append(value)
    return tuple(values)
