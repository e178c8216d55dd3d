"""The leaves of a partitioned namespace: which there are, with which partition values, and how their columns match."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.lance.definition import Definition, PartitionField
from penstock.lance.field_ids import FIELD_ID, field_id
from penstock.lance.manifest import Entry, State
from penstock.lance.names import encode, join, parts, split

VALUES = "lance.partitioning.values"
READ_VERSION = "lance.partitioning.read-version"
Values = tuple[str | None, ...]


@dataclass(frozen=True)
class Leaf:
    """A table of the namespace. Without `values` its name says nothing that could leave it out; without `version`
    it is another writer's, and read as it is now; at version 0 it was declared, and holds nothing.

    The values of a leaf that is not `own` are what its name tells: another writer may have meant something else."""

    object_id: str
    location: str
    values: Values | None
    version: int | None
    own: bool = True

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
    version = entry.properties.get(READ_VERSION)
    levels = parts(entry.object_id)[len(parts(name)) :]
    recorded = _recorded(entry.properties, len(fields))
    values = recorded or _named(levels, fields)
    assert entry.location is not None  # of a table
    return Leaf(entry.object_id, entry.location, values, int(version) if version else None, recorded is not None)


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


def matches(definition: Definition, leaf: pa.Schema) -> dict[int, str]:
    """The leaf's column for each of the namespace's that it has, by the id of the latter.

    Leaves of ours carry the ids; in others the names decide: a column's own, in any case, of those without an id.
    """
    by_id = {field_id(item): item.name for item in leaf if FIELD_ID in (item.metadata or {})}
    anonymous = [item.name for item in leaf if FIELD_ID not in (item.metadata or {})]
    present = {item.name.lower() for item in definition.schema}
    found: dict[int, str] = {}
    for item in definition.schema:
        number = field_id(item)
        former = [name for name in former_names(item) if name.lower() not in present]
        name = by_id.get(number) or _same_name(anonymous, [item.name, *former])
        if name is not None:
            found[number] = name
    return found


_FORMER_NAMES = b"lance.partitioning.former-names"


def former_names(item: pa.Field) -> list[str]:
    """What a column was called before."""
    return list(json.loads((item.metadata or {}).get(_FORMER_NAMES, b"[]")))


def renamed(item: pa.Field, name: str) -> pa.Field:
    names = json.dumps([item.name, *former_names(item)]).encode()
    return item.with_name(name).with_metadata({**(item.metadata or {}), _FORMER_NAMES: names})


def same_shape(definition: Definition, leaf: pa.Schema) -> bool:
    """Whether a leaf's columns are just the namespace's: none missing, none more, in the same types."""
    columns = matches(definition, leaf)
    return len(leaf) == len(columns) == len(definition.schema) and all(
        leaf.field(columns[field_id(item)]).type == item.type and columns[field_id(item)] == item.name
        for item in definition.schema
    )


def leaf_schema(definition: Definition) -> pa.Schema:
    """The schema of a new leaf: the namespace's, without what only concerns the namespace."""
    return pa.schema(
        [
            item.with_metadata({key: value for key, value in item.metadata.items() if key != _FORMER_NAMES})
            for item in definition.schema
        ]
    )


def _same_name(names: Sequence[str], wanted: Sequence[str]) -> str | None:
    for name in wanted:
        if name in names:
            return name
        folded = next((other for other in names if other.lower() == name.lower()), None)
        if folded is not None:
            return folded
    return None


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
