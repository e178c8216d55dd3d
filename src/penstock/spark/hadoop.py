"""Reaches the Hadoop of a session: its settings and the secrets among them."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from penstock.spark.java_classes import java_class


def hadoop_of(spark: SparkSession) -> Any:
    """The settings of a session's Hadoop."""
    context: Any = spark.sparkContext._jsc
    return context.hadoopConfiguration()


def secret_of(spark: SparkSession, *names: str) -> str | None:
    """The first setting of these that there is, also where Hadoop keeps it in a store of credentials."""
    hadoop = hadoop_of(spark)
    for name in names:
        secret = hadoop.getPassword(name)
        if secret:
            return str(java_class(spark, "java.lang.String").valueOf(secret))
    return None


def is_class(spark: SparkSession, name: str) -> bool:
    """Whether the driver has a class."""
    return "JavaClass" in type(java_class(spark, name)).__name__
