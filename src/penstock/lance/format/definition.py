"""The definition of a partitioned namespace: its schema and partition fields, and the properties that carry them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from penstock.errors import InvalidError, NotFoundError
from penstock.lance.format.field_ids import NEXT_ID, PartitionSource, partition_sources, with_field_ids
from penstock.lance.format.manifest import Manifest, ManifestState
from penstock.lance.format.partition_fields import (
    PartitionField,
    field_from_json,
    field_to_json,
    new_partition_field,
)
from penstock.lance.format.schema_json import schema_from_json, schema_to_json
from penstock.schema.columns import Column

ENABLED = "lance.partitioning.enabled"
PARTITION_COLUMNS = "lance.partitioning.partition-columns"
SCHEMA = "lance.partitioning.schema"


@dataclass(frozen=True)
class NamespaceDefinition:
    """A namespace's schema, every field with its id in the metadata, and its partition fields."""

    schema: pa.Schema
    fields: tuple[PartitionField, ...]
    texts: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)  # the properties it was read from

    def source(self, number: int) -> PartitionSource:
        """The column, or field of a struct, with an id."""
        return partition_sources(self.schema)[number]

    @property
    def next_id(self) -> int:
        """The id that the next new column takes."""
        return int((self.schema.metadata or {})[NEXT_ID])

    def properties(self) -> dict[str, str]:
        """The properties that describe the namespace in the manifest."""
        sources = partition_sources(self.schema)
        columns = [field_to_json(field, sources) for field in self.fields]
        return {ENABLED: "true", PARTITION_COLUMNS: json.dumps(columns), SCHEMA: schema_to_json(self.schema)}


def new_definition(schema: pa.Schema, columns: Sequence[Column], partitioned_by: Sequence[str]) -> NamespaceDefinition:
    """The definition of a new namespace, partitioned by users' texts; `columns` are the schema's, with its ids."""
    if not partitioned_by:
        raise InvalidError("a partitioned namespace needs at least one partition field: partitioned_by=['country']")
    fields = tuple(new_partition_field(text, columns) for text in partitioned_by)
    twice = next((text for i, text in enumerate(partitioned_by) if fields[i] in fields[:i]), None)
    if twice is not None:
        raise InvalidError(f"partitioned by {', '.join(partitioned_by)}: {twice} is there twice; leave one out")
    return NamespaceDefinition(schema, fields)


def definition_in(manifest: Manifest, state: ManifestState, name: str) -> NamespaceDefinition:
    """The definition of a namespace at a state of the manifest. Raises NotFoundError where there is none."""
    root = state.entry(name)
    if root is None or root.kind != "namespace":
        raise NotFoundError(
            f"{manifest.store.root} has no namespace {name!r} at version {state.version}; make it with lance.create"
        )
    return read_definition(name, root.properties)


def read_definition(name: str, properties: Mapping[str, str]) -> NamespaceDefinition:
    """The definition that a namespace's properties carry. Raises InvalidError where they cannot be understood."""
    if properties.get(ENABLED) != "true":
        raise InvalidError(
            f"namespace {name!r} is not partitioned: its property {ENABLED} is not 'true'; make one with lance.create"
        )
    absent = next((key for key in (SCHEMA, PARTITION_COLUMNS) if key not in properties), None)
    if absent is not None:
        raise InvalidError(f"namespace {name!r} has no property {absent}: its writer did not finish, or left it out")
    own = schema_from_json(properties[SCHEMA])
    schema = with_field_ids(own)
    try:
        described = json.loads(properties[PARTITION_COLUMNS])
        if not described or not isinstance(described, list):
            raise ValueError("it is no list of at least one field")
        sources = partition_sources(schema)
        fields = tuple(field_from_json(item, sources, own is schema) for item in described)
        return NamespaceDefinition(schema, fields, {key: properties[key] for key in (SCHEMA, PARTITION_COLUMNS)})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InvalidError(f"namespace {name!r}: {PARTITION_COLUMNS} cannot be read ({error!r})") from None
