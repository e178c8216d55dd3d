"""Reads expressions as users write them, SQL text or columns, and quotes names for Spark's SQL."""

from __future__ import annotations

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from penstock.spark.jvm import query_execution


def as_column(expression: str | SparkColumn) -> SparkColumn:
    """SQL text or a column expression, as a column expression."""
    return F.expr(expression) if isinstance(expression, str) else expression


def spark_quoted(name: str) -> str:
    """A name as Spark's SQL quotes it."""
    return "`" + name.replace("`", "``") + "`"


def has_subquery(frame: DataFrame) -> bool:
    """Whether a query has subqueries."""
    return not query_execution(frame).analyzed().subqueriesAll().isEmpty()


def is_repeatable(frame: DataFrame) -> bool:
    """Whether what a query computes depends on its rows alone: not on chance, nor on where a row is read from."""
    return bool(query_execution(frame).analyzed().deterministic())
