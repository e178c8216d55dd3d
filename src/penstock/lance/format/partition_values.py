"""The partition values of rows: the columns and fields of structs that they are made of, and their texts."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from penstock.lance.format.definition import NamespaceDefinition, PartitionField, transform_type
from penstock.schema.types import Type

ColumnArrays = Mapping[str, pa.Array]  # of some rows, by name


def partition_texts(
    columns: ColumnArrays, definition: NamespaceDefinition, types: Mapping[int, Type]
) -> list[pa.StringArray]:
    """The values of each partition field; `types` are those of the columns by id."""
    return [field_texts(columns, definition, field, types) for field in definition.fields]


def field_texts(
    columns: ColumnArrays, definition: NamespaceDefinition, field: PartitionField, types: Mapping[int, Type]
) -> pa.StringArray:
    """The values of one field."""
    arrays = [source_array(columns, definition, number) for number in field.sources]
    return field.values(arrays, [transform_type(types[number]) for number in field.sources])


def source_array(columns: ColumnArrays, definition: NamespaceDefinition, number: int) -> pa.Array:
    """A column, or a field of a struct, which is NULL wherever the struct is."""
    top, *inside = definition.source(number).path
    array = columns[top]
    for name in inside:
        array = pc.struct_field(array, name)
    return array
