"""Reaches the Hadoop of a session: its version, its settings and the secrets among them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyspark
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


def hadoop_version() -> str:
    """The version of the Hadoop that the installed PySpark has."""
    for jar in Path(pyspark.__file__).parent.glob("jars/hadoop-client-api-*.jar"):
        found = re.search(r"hadoop-client-api-([\d.]+)\.jar", jar.name)
        if found:
            return found[1]
    return "of an unknown version"
