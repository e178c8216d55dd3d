"""Schemas on their way between Spark, Arrow and the core's columns."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema, to_arrow_type

from penstock.errors import InvalidError, UnsupportedError
from penstock.lance.format.field_ids import children_ids, field_id
from penstock.schema.columns import Column
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
    """The columns of a namespace's schema, with its ids, and those of the fields of structs.

    Fields inside of lists and maps have negative ones: no partition is made of them.
    """
    _check_types(schema)
    below = count(1)
    taken = {field_id(item) for item in schema}
    plain = pa.schema([item.with_type(_without_halves(item.type)) for item in schema])
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
    """Refuse types that Lance does not have."""
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
        inside = [(one if one not in taken else None, item.type) for one, item in children_ids(kind, number)]
        taken.update(one for one, _ in inside if one is not None)
    return tuple(
        replace(
            child,
            id=-next(below) if one is None else one,
            children=_numbered(child, child_kind, one, taken, below),
        )
        for child, (one, child_kind) in zip(parent.children, inside, strict=True)
    )


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
