"""Settings of a Spark session that a test changes for a while."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession


@contextmanager
def configured(spark: SparkSession, chosen: Mapping[str, str]) -> Iterator[None]:
    """The session with some settings, which are as before afterwards."""
    before = {name: spark.conf.get(name) for name in chosen}
    try:
        for name, value in chosen.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, str(value))
