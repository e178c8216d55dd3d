"""Makes DataFrames of a few rows that the driver holds. To read them takes no job, and no Python in the workers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812

from penstock.spark.java_classes import java_class
from penstock.spark.jvm import java_type
from penstock.spark.releases import arrow_schema_of


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
    return spark.createDataFrame(pa.Table.from_arrays(arrays, schema=arrow), kind)


def empty_frame(spark: SparkSession, schema: T.StructType) -> DataFrame:
    """A DataFrame without rows."""
    session: Any = spark._jsparkSession
    no_rows = java_class(spark, "java.util.ArrayList")()
    return DataFrame(session.createDataFrame(no_rows, java_type(spark, schema)), spark)


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
