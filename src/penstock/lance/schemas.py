"""Schemas on their way between Spark, Arrow and the core's columns."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema, to_arrow_type

from penstock.errors import InvalidError, UnsupportedError
from penstock.lance.definition import field_id
from penstock.model.columns import Column
from penstock.spark.schemas import SchemaLike, columns_of, struct_of


def arrow_schema(schema: SchemaLike) -> pa.Schema:
    """A schema as Arrow's: Spark's DDL, a `StructType`, or one already."""
    if isinstance(schema, pa.Schema):
        return schema
    return to_arrow_schema(struct_of(schema), timezone="UTC")


def arrow_field(column: str | pa.Field) -> pa.Field:
    """A column to add: `note STRING`, or Arrow's field."""
    if isinstance(column, pa.Field):
        return column
    found = arrow_schema(column)
    if len(found) != 1:
        raise InvalidError(f"{column!r} defines {len(found)} columns; add one at a time")
    return found.field(0)


def arrow_type(kind: str | T.DataType | pa.DataType) -> pa.DataType:
    """A type as Arrow's: a Spark type or its name, or one already."""
    if isinstance(kind, pa.DataType):
        return kind
    return arrow_schema(f"c {kind}").field(0).type if isinstance(kind, str) else to_arrow_type(kind, timezone="UTC")


def columns_for(spark: SparkSession, schema: pa.Schema) -> tuple[Column, ...]:
    """The columns of a namespace's schema, with its ids; those of nested fields are negative."""
    _check_types(schema)
    below = count(1)
    plain = pa.schema([item.with_type(_without_halves(item.type)) for item in schema])
    found = columns_of(spark, plain, inlining=False)
    return tuple(
        replace(
            column,
            id=field_id(item),
            begin_snapshot=0,
            children=tuple(_numbered(child, below) for child in column.children),
        )
        for column, item in zip(found, schema, strict=True)
    )


def _check_types(schema: pa.Schema) -> None:
    """Refuse types that Lance does not have."""
    from lance.schema import LanceSchema

    for item in schema:
        try:
            LanceSchema.from_pyarrow(pa.schema([item.remove_metadata()]))
        except Exception:
            raise UnsupportedError(
                f"column {item.name!r} has the type {item.type}, which Lance does not have; choose another"
            ) from None


def _numbered(column: Column, numbers: count[int]) -> Column:
    return replace(column, id=-next(numbers), children=tuple(_numbered(child, numbers) for child in column.children))


def _without_halves(kind: pa.DataType) -> pa.DataType:
    """The type with float32 for float16, which Spark has not."""
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_struct(kind):
        return pa.struct([item.with_type(_without_halves(item.type)) for item in kind])
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_without_halves(kind.value_type), kind.list_size)
    if pa.types.is_list(kind):
        return pa.list_(_without_halves(kind.value_type))
    return kind
