"""Reads expressions as users write them, SQL text or columns, and quotes names for Spark's SQL."""

from __future__ import annotations

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from penstock.spark.connect.sessions import is_connect
from penstock.spark.jvm import query_execution


def as_column(expression: str | SparkColumn) -> SparkColumn:
    """SQL text or a column expression, as a column expression."""
    return F.expr(expression) if isinstance(expression, str) else expression


def spark_quoted(name: str) -> str:
    """A name as Spark's SQL quotes it."""
    return "`" + name.replace("`", "``") + "`"


def check_expressions(frame: DataFrame) -> None:
    """Let Spark say now what is wrong with the names and types in a query: Spark Connect waits until it is run."""
    if is_connect(frame):
        _ = frame.schema


def has_subquery(frame: DataFrame) -> bool:
    """Whether a query has subqueries; on Spark Connect, which does not tell, it is said of none."""
    return not is_connect(frame) and not query_execution(frame).analyzed().subqueriesAll().isEmpty()


def is_repeatable(frame: DataFrame) -> bool:
    """Whether what a query computes depends on its rows alone: not on chance, nor on where a row is read from.

    Spark Connect does not tell.
    """
    return not is_connect(frame) and bool(query_execution(frame).analyzed().deterministic())
