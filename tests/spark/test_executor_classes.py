"""Classes of ours on executors."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from penstock.spark.executor_classes import add_to_executors
from penstock.spark.stores import KNOWN_FILES


def jars(spark: SparkSession) -> list[str]:
    context: Any = spark.sparkContext._jsc
    return [jar for jar in context.sc().listJars().mkString("\n").splitlines() if "/jars/penstock-" in jar]


def test_they_are_sent_once(spark: SparkSession) -> None:
    add_to_executors(spark, *KNOWN_FILES)
    sent = jars(spark)
    add_to_executors(spark, *KNOWN_FILES)
    assert jars(spark) == sent
    assert len(sent) >= 1


def test_hadoop_finds_them(spark: SparkSession) -> None:
    add_to_executors(spark, *KNOWN_FILES)
    hadoop: Any = spark.sparkContext._jsc
    found = hadoop.hadoopConfiguration().getClassByName("penstock.RangeFileSystem")
    assert found.getName() == "penstock.RangeFileSystem"
