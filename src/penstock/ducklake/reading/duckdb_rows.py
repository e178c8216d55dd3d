"""Brings rows that DuckDB has read into Spark, as Arrow, and shows them as a table's columns."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812

from penstock.ducklake.reading.row_conversion import FROM_ARROW, Reading
from penstock.schema.columns import Column
from penstock.spark.local_rows import arrow_frame
from penstock.spark.projection import SqlColumn
from penstock.spark.releases import arrow_schema_of


def transfer_schema(columns: Sequence[Column], nanoseconds: bool, others: Sequence[str] = ()) -> T.StructType:
    """The Spark schema in which rows cross: `v0, v1, ...` for the columns, then other columns, which are longs."""
    reading = Reading(nanoseconds, FROM_ARROW)
    schema = T.StructType([T.StructField(f"v{i}", reading.read_type(column)) for i, column in enumerate(columns)])
    for name in others:
        schema.add(name, T.LongType())
    return schema


def shown_columns(columns: Sequence[Column], nanoseconds: bool) -> list[SqlColumn]:
    """The columns that crossed, under the table's names and in the types that users see."""
    reading = Reading(nanoseconds, FROM_ARROW)
    return [SqlColumn(column.name, reading.shown(column, f"`v{i}`")) for i, column in enumerate(columns)]


def to_frame(spark: SparkSession, rows: pa.Table, schema: T.StructType) -> DataFrame:
    """Rows that crossed, as a DataFrame."""
    return arrow_frame(spark, in_spark_arrow_types(rows, schema), schema)


def in_spark_arrow_types(rows: pa.Table, schema: T.StructType) -> pa.Table:
    """The same rows in the Arrow types that Spark uses for a schema."""
    return rows.select(schema.names).cast(arrow_schema_of(schema))
