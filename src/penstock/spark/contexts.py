"""Finds the Spark context of this process."""

from __future__ import annotations

from typing import Any


def running_context() -> Any | None:
    """The context that runs in this process; None without one, as on a client of Spark Connect."""
    try:
        from pyspark import SparkContext
    except ImportError:  # of pyspark-client
        return None
    return SparkContext._active_spark_context
