"""Counts the tasks that a session runs at once."""

from __future__ import annotations

from pyspark.sql import SparkSession

from penstock.spark.connect import plan_texts
from penstock.spark.connect.sessions import is_connect


def core_count(spark: SparkSession) -> int:
    """How many tasks run at once, as Spark counts them."""
    return plan_texts.core_count(spark) if is_connect(spark) else spark.sparkContext.defaultParallelism
