"""Gives a namespace's columns ids, kept in their metadata, and counts the fields inside of them as Lance does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

FIELD_ID = b"lance.partitioning.field-id"
NEXT_ID = b"lance.partitioning.next-field-id"


@dataclass(frozen=True)
class PartitionSource:
    """A column, or a field of a struct, that partitions can be made of: the path of names to it, and its type."""

    path: tuple[str, ...]
    type: pa.DataType

    @property
    def name(self) -> str:
        """`city`, or `address.city`: no name in Lance has a dot of its own."""
        return ".".join(self.path)


def field_id(item: pa.Field) -> int:
    """The id of a column, from its metadata."""
    return int(item.metadata[FIELD_ID])


def with_field_id(item: pa.Field, number: int) -> pa.Field:
    """The column with an id in its metadata."""
    return item.with_metadata({**(item.metadata or {}), FIELD_ID: str(number).encode()})


def with_next_field_id(schema: pa.Schema, number: int) -> pa.Schema:
    """The schema with the id that the next new column takes in its metadata."""
    return schema.with_metadata({**(schema.metadata or {}), NEXT_ID: str(number).encode()})


def with_field_ids(schema: pa.Schema) -> pa.Schema:
    """The schema with ids for its columns, as Lance counts fields: from 0, parents before children. Given ids stay."""
    if all(FIELD_ID in (item.metadata or {}) for item in schema) and NEXT_ID in (schema.metadata or {}):
        return schema
    numbers = list(_numbers(schema))
    items = [with_field_id(item, number) for item, number in zip(schema, numbers[:-1], strict=True)]
    return with_next_field_id(pa.schema(items, metadata=schema.metadata), numbers[-1])


def fields_in_schema(schema: pa.Schema) -> int:
    """The number of fields that a schema has in Lance, nested ones included."""
    return list(_numbers(schema))[-1]


def fields_in_type(kind: pa.DataType) -> int:
    """The number of fields that a column of this type has in Lance, itself included."""
    if pa.types.is_map(kind):
        return 2 + fields_in_type(kind.key_type) + fields_in_type(kind.item_type)
    if pa.types.is_struct(kind):
        return 1 + sum(fields_in_type(item.type) for item in kind)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return 1 + fields_in_type(kind.value_type)
    return 1


def struct_field_ids(kind: pa.StructType, parent: int) -> Iterator[tuple[int, pa.Field]]:
    """The fields of a struct with their ids, which follow the id of the struct."""
    number = parent + 1
    for item in kind:
        yield number, item
        number += fields_in_type(item.type)


def partition_sources(schema: pa.Schema) -> dict[int, PartitionSource]:
    """The columns and the fields of structs, by id. A column keeps an id that counting gives to a field too."""
    found = {field_id(item): PartitionSource((item.name,), item.type) for item in schema}
    for item in schema:
        for number, source in _fields_inside(PartitionSource((item.name,), item.type), field_id(item)):
            found.setdefault(number, source)
    return found


def _fields_inside(parent: PartitionSource, parent_id: int) -> Iterator[tuple[int, PartitionSource]]:
    if pa.types.is_struct(parent.type):
        for number, item in struct_field_ids(parent.type, parent_id):
            source = PartitionSource((*parent.path, item.name), item.type)
            yield number, source
            yield from _fields_inside(source, number)


def _numbers(schema: pa.Schema) -> Iterator[int]:
    """The number of each column, and last the one that comes next."""
    number = 0
    for item in schema:
        yield number
        number += fields_in_type(item.type)
    yield number
