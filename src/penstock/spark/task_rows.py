"""Makes DataFrames of rows that stand for work, each in a task of its choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from penstock.spark.connect import file_lists
from penstock.spark.connect.sessions import is_connect


def rows_in_tasks(spark: SparkSession, rows: Sequence[tuple[Any, ...]], schema: str, tasks: int) -> DataFrame:
    """Rows that are shared out among so many tasks."""
    if is_connect(spark):
        return file_lists.rows_in_tasks(spark, rows, schema, tasks)
    return spark.createDataFrame(spark.sparkContext.parallelize(rows, tasks), schema)
