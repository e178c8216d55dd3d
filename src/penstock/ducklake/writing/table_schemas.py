"""Reads what users define tables by: the columns of a new table, a column to add, a type to change to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812

from penstock.ducklake.model.column_defaults import NO_DEFAULT, with_default
from penstock.ducklake.model.schema_evolution import check_names, parse_path
from penstock.ducklake.writing.insert_defaults import default_of
from penstock.errors import InvalidError
from penstock.schema.columns import Column
from penstock.spark.schemas import DUCKLAKE_TYPE, ColumnBuilder, SchemaLike

_LEADING_PATH = re.compile(r'\s*((?:(?:"(?:[^"]|"")*"|`(?:[^`]|``)*`|\w+)\s*\.\s*)*)', re.UNICODE)


@dataclass(frozen=True)
class NewTable:
    """New columns, with ids counted from 1 through nested fields, and comments by column id."""

    columns: tuple[Column, ...]
    comments: Mapping[int, str]


@dataclass(frozen=True)
class NewColumn:
    """A column to add: the path of the struct that it becomes a field of, () for the table."""

    parent: tuple[str, ...]
    column: Column
    comment: str | None


def new_table(spark: SparkSession, schema: SchemaLike, *, inlining: bool = True) -> NewTable:
    """The columns of a new table. `begin_snapshot` is 0 until the table is committed.

    - DDL text is Spark's: `id BIGINT NOT NULL, note STRING DEFAULT 'none' COMMENT 'x', s STRUCT<a: INT>`. Where Spark
      has no type, at any depth, stands DuckLake's name of it: `UUID`, `JSON`, `UINT8` to `UINT128`, `INT128`,
      `INTERVAL`, `TIMESTAMP_S`, `_MS` and `_NS`, `TIMETZ`, `GEOMETRY`. As in Spark, `TIMESTAMP` is an instant
      (DuckLake's timestamptz) and `TIMESTAMP_NTZ` is DuckLake's timestamp.
    - A field of a `StructType` may say its type in that language in its metadata: `{"ducklake.type": "ARRAY<UUID>"}`;
      `comment` and Spark's own `CURRENT_DEFAULT` are read there too.
    - NOT NULL holds for columns. DuckLake has none for the fields of structs: DDL text that asks for it is refused,
      other schemas' nested nullability is not kept.
    - `inlining` is False for a lake that keeps no rows in its catalog, where DuckLake reserves no names.
    """
    builder = _builder(spark)
    columns = builder.columns(schema)
    check_names(columns, inlining=inlining)
    return NewTable(columns, builder.comments)


def new_column(spark: SparkSession, text: str) -> NewColumn:
    """Read a column as `ADD COLUMN` has it: `note STRING DEFAULT 'none'`, or a field: `s.a INT`, `l.element.x UUID`."""
    match = _LEADING_PATH.match(text)
    dotted = match[1] if match else ""
    parent = parse_path(dotted.strip().removesuffix(".")) if dotted else ()
    builder = _builder(spark, existing_rows=True)
    fields = builder.parsed(text.removeprefix(match[0]) if match else text)
    if len(fields) != 1:
        raise InvalidError(f"{text!r} defines {len(fields)} columns; add one at a time")
    column = builder.spark_column(fields[0])
    check_names((column,), inlining=False)
    return NewColumn(tuple(name.strip() for name in parent), column, builder.comments.get(column.id))


def type_of(spark: SparkSession, kind: str | T.DataType | pa.DataType) -> Column:
    """Read a type that a column is to have, as a column whose name and ids mean nothing."""
    builder = _builder(spark)
    if isinstance(kind, pa.DataType):
        return builder.arrow_column(pa.field("type", kind))
    if isinstance(kind, str):
        return builder.spark_column(T.StructField("type", T.NullType(), True, {DUCKLAKE_TYPE: kind}))
    return builder.spark_column(T.StructField("type", kind))


def _builder(spark: SparkSession, *, existing_rows: bool = False) -> ColumnBuilder:
    """Makes columns with the defaults that the catalog keeps; `existing_rows` need a value of those."""

    def defaulted(column: Column, sql: str | None) -> Column:
        plain = without_default(column)
        if sql is None:
            return plain
        return with_default(plain, default_of(spark, plain, sql, existing_rows=existing_rows))

    return ColumnBuilder(spark, defaulted)


def without_default(column: Column) -> Column:
    """The column and all fields inside of it as the catalog keeps them without a default."""
    children = tuple(without_default(child) for child in column.children)
    return with_default(replace(column, children=children), NO_DEFAULT)
