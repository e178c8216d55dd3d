"""Aggregates with and without the rule that answers them from the catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

from support.plans import files_read

RULE = "penstock.CatalogAggregates"
_EXCLUDED = "spark.sql.optimizer.excludedRules"


@contextmanager
def without_rule(spark: SparkSession) -> Iterator[None]:
    """Every aggregate is computed from rows."""
    before = spark.conf.get(_EXCLUDED, None)
    spark.conf.set(_EXCLUDED, RULE)
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(_EXCLUDED)
        else:
            spark.conf.set(_EXCLUDED, before)


def answered(rows: DataFrame, expressions: str) -> tuple[tuple[Any, ...], int]:
    """Aggregates over rows, and how many data files were read for them; they are what the rows themselves give."""
    return answered_query(rows.sparkSession, lambda: rows.selectExpr(*expressions.split(", ")))


def answered_query(spark: SparkSession, query: Callable[[], DataFrame]) -> tuple[tuple[Any, ...], int]:
    """The same of a query of one row."""
    fast = query()
    [row] = fast.collect()
    read = sum(count for name, count in files_read(query()).items() if name != "ducklake delete files")
    with without_rule(spark):
        slow = query()
        assert _told(slow.collect()) == _told([row]), fast._jdf.queryExecution().optimizedPlan().toString()
        for part in ("analyzed", "optimizedPlan", "executedPlan"):
            mine, rows = (getattr(frame._jdf.queryExecution(), part)().schema().json() for frame in (fast, slow))
            assert mine == rows
    return tuple(row), read


def _told(rows: list[Row]) -> str:
    """NaN is what it is, and zero has no sign: of both, Spark gives the one that it meets."""
    return repr(rows).replace("-0.0", "0.0")
