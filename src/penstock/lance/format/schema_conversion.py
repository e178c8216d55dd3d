"""Converts schemas between Spark, Arrow and the core's columns."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812

from penstock.errors import InvalidError, UnsupportedError
from penstock.lance.format.field_ids import field_id, struct_field_ids
from penstock.schema.columns import Column
from penstock.spark.releases import arrow_schema_of, arrow_type_of
from penstock.spark.schemas import SchemaLike, columns_of, struct_of


def arrow_schema(schema: SchemaLike) -> pa.Schema:
    """The Arrow schema of Spark's DDL or `StructType`; an Arrow schema stays as it is."""
    if isinstance(schema, pa.Schema):
        return schema
    return arrow_schema_of(struct_of(schema))


def arrow_field(column: str | pa.Field) -> pa.Field:
    """The Arrow field of one column's DDL, `note STRING`; an Arrow field stays as it is."""
    if isinstance(column, pa.Field):
        return column
    found = arrow_schema(column)
    if len(found) != 1:
        raise InvalidError(f"{column!r} defines {len(found)} columns; add one at a time")
    return found.field(0)


def arrow_type(kind: str | T.DataType | pa.DataType) -> pa.DataType:
    """The Arrow type of a Spark type or its name; an Arrow type stays as it is."""
    if isinstance(kind, pa.DataType):
        return kind
    return arrow_schema(f"c {kind}").field(0).type if isinstance(kind, str) else arrow_type_of(kind)


def namespace_columns(spark: SparkSession, schema: pa.Schema) -> tuple[Column, ...]:
    """The core's columns of a namespace's schema, with its ids, and those of the fields of structs.

    Fields inside of lists and maps have negative ones: no partition is made of them.
    """
    _check_types(schema)
    below = count(1)
    taken = {field_id(item) for item in schema}
    plain = pa.schema([item.with_type(_without_float16(item.type)) for item in schema])
    found = columns_of(spark, plain)
    return tuple(
        replace(
            column,
            id=field_id(item),
            begin_snapshot=0,
            children=_numbered(column, item.type, field_id(item), taken, below),
        )
        for column, item in zip(found, schema, strict=True)
    )


def _check_types(schema: pa.Schema) -> None:
    """Raise UnsupportedError for types that Lance does not have."""
    from lance.schema import LanceSchema

    for item in schema:
        try:
            LanceSchema.from_pyarrow(pa.schema([item.remove_metadata()]))
        except Exception:
            raise UnsupportedError(
                f"column {item.name!r} has the type {item.type}, which Lance does not have; choose another"
            ) from None


def _numbered(
    parent: Column, kind: pa.DataType, number: int | None, taken: set[int], below: count[int]
) -> tuple[Column, ...]:
    """The fields inside of a column; of a column with no number of its own, they have none either."""
    inside: list[tuple[int | None, pa.DataType]] = [(None, pa.null())] * len(parent.children)
    if pa.types.is_struct(kind) and number is not None:
        inside = [(one if one not in taken else None, item.type) for one, item in struct_field_ids(kind, number)]
        taken.update(one for one, _ in inside if one is not None)
    return tuple(
        replace(
            child,
            id=-next(below) if one is None else one,
            children=_numbered(child, child_kind, one, taken, below),
        )
        for child, (one, child_kind) in zip(parent.children, inside, strict=True)
    )


def _without_float16(kind: pa.DataType) -> pa.DataType:
    """The type with float32 for float16, which Spark does not have."""
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_struct(kind):
        return pa.struct([item.with_type(_without_float16(item.type)) for item in kind])
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_without_float16(kind.value_type), kind.list_size)
    if pa.types.is_list(kind):
        return pa.list_(_without_float16(kind.value_type))
    return kind
