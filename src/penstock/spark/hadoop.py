"""Reaches the Hadoop of a session: its version, its settings and the secrets among them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import SparkSession

from penstock.spark.connect.sessions import is_connect
from penstock.spark.java_classes import java_class


@dataclass(frozen=True)
class _ServersHadoop:
    """The settings of Hadoop that the settings of a Spark Connect server tell of."""

    spark: SparkSession

    def get(self, name: str) -> str | None:
        return self.spark.conf.get(f"spark.hadoop.{name}", None)


def hadoop_of(spark: SparkSession) -> Any:
    """The settings of a session's Hadoop."""
    if is_connect(spark):
        return _ServersHadoop(spark)
    context: Any = spark.sparkContext._jsc
    return context.hadoopConfiguration()


def secret_of(spark: SparkSession, *names: str) -> str | None:
    """The first setting of these that there is, also where Hadoop keeps it in a store of credentials."""
    hadoop = hadoop_of(spark)
    if isinstance(hadoop, _ServersHadoop):
        return next(filter(None, map(hadoop.get, names)), None)
    for name in names:
        secret = hadoop.getPassword(name)
        if secret:
            return str(java_class(spark, "java.lang.String").valueOf(secret))
    return None


def is_class(spark: SparkSession, name: str) -> bool:
    """Whether the driver has a class; the one of a Spark Connect server may, and says when it does not."""
    return is_connect(spark) or "JavaClass" in type(java_class(spark, name)).__name__


def hadoop_version() -> str:
    """The version of the Hadoop that the installed PySpark has."""
    for jar in Path(pyspark.__file__).parent.glob("jars/hadoop-client-api-*.jar"):
        found = re.search(r"hadoop-client-api-([\d.]+)\.jar", jar.name)
        if found:
            return found[1]
    return "of an unknown version"
