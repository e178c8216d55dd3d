"""Computes the partition values of rows from the columns, or fields of structs, that they are made of."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from penstock.lance.format.definition import NamespaceDefinition
from penstock.lance.format.partition_fields import PartitionField, transform_type
from penstock.schema.types import Type

ColumnArrays = Mapping[str, pa.Array]  # of some rows, by name


def partition_texts(
    columns: ColumnArrays, definition: NamespaceDefinition, types: Mapping[int, Type]
) -> list[pa.StringArray]:
    """The partition values of rows as texts, an array for each partition field; `types` are the columns' by id."""
    return [field_texts(columns, definition, field, types) for field in definition.fields]


def field_texts(
    columns: ColumnArrays, definition: NamespaceDefinition, field: PartitionField, types: Mapping[int, Type]
) -> pa.StringArray:
    """The values of one partition field as texts."""
    arrays = [source_array(columns, definition, number) for number in field.sources]
    return field.values(arrays, [transform_type(types[number]) for number in field.sources])


def source_array(columns: ColumnArrays, definition: NamespaceDefinition, number: int) -> pa.Array:
    """The array of a column, or of a field of a struct, which is NULL wherever the struct is."""
    top, *inside = definition.source(number).path
    array = columns[top]
    for name in inside:
        array = pc.struct_field(array, name)
    return array
