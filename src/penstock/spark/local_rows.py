"""Makes DataFrames of a few rows that the driver holds. To read them takes no job, and no Python in the workers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812

from penstock.spark.jvm import frames
from penstock.spark.releases import arrow_schema_of

_MOST_IN_A_CALL = 1 << 20  # bytes; PySpark writes rows to a file for the JVM


def local_frame(spark: SparkSession, rows: Sequence[Sequence[Any]], schema: str) -> DataFrame:
    """A DataFrame of rows; the schema is Spark's DDL."""
    kind = _struct(schema)
    if not rows:
        return empty_frame(spark, kind)
    arrow = arrow_schema_of(kind)
    arrays = [
        pa.array([_given(value) for value in column], field.type)
        for column, field in zip(zip(*rows, strict=True), arrow, strict=True)
    ]
    return arrow_frame(spark, pa.Table.from_arrays(arrays, schema=arrow), kind)


def arrow_frame(spark: SparkSession, rows: pa.Table, schema: T.StructType) -> DataFrame:
    """A DataFrame of rows in the Arrow types that Spark uses for a schema. Few go to the JVM in one call."""
    made = _in_one_call(spark, rows, schema) if rows.nbytes <= _MOST_IN_A_CALL else None
    return spark.createDataFrame(rows, schema) if made is None else DataFrame(made, spark)


def _in_one_call(spark: SparkSession, rows: pa.Table, schema: T.StructType) -> Any:
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, rows.schema) as writer:
        writer.write_table(rows)
    told = bytearray(stream.getvalue())  # which py4j knows for an array of bytes
    return frames(spark).local(spark._jsparkSession, told, schema.json())


def empty_frame(spark: SparkSession, schema: T.StructType) -> DataFrame:
    """A DataFrame without rows."""
    return DataFrame(frames(spark).empty(spark._jsparkSession, schema.json()), spark)


def unread_frame(spark: SparkSession, schema: T.StructType) -> DataFrame:
    """A DataFrame without rows, whose queries Spark optimizes as if it had some."""
    return DataFrame(frames(spark).unread(spark._jsparkSession, schema.json()), spark)


@cache
def _struct(schema: str) -> T.StructType:
    kind = T.StructType.fromDDL(schema)
    assert isinstance(kind, T.StructType)
    return kind


def _given(value: Any) -> Any:
    """A value as Arrow takes it: a map's pairs, and moments in UTC."""
    if isinstance(value, dict):
        return list(value.items())
    return value.astimezone(UTC) if isinstance(value, datetime) else value
