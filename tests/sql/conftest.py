"""A lake that Spark SQL calls `sales`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from penstock import Lake
from penstock.errors import UnsupportedError
from penstock.spark.releases import has_views_of_catalogs
from support.catalogs import Catalog
from support.writing import attached

Sql = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture
def lake(file_catalog: Catalog, spark: SparkSession) -> Iterator[Lake]:
    with attached(file_catalog, spark, name="sales") as made:
        yield made


@pytest.fixture
def sql(spark: SparkSession) -> Sql:
    """The rows of a statement, in order of their texts where it has no order."""

    def rows(statement: str) -> list[tuple[Any, ...]]:
        found = [tuple(row) for row in spark.sql(statement).collect()]
        return found if "ORDER BY" in statement or statement.startswith("SHOW") else sorted(found, key=repr)

    return rows


def create_view(lake: Lake, name: str, query: str) -> None:
    """Make a view of the lake `sales`: by a statement, or by the lake where Spark has no statement for it."""
    if has_views_of_catalogs(lake.spark.version):
        lake.spark.sql(f"CREATE VIEW sales.{name} AS {query}")
    else:
        lake.create_view(name, query, dialect="spark")


def view_statements_are_refused(lake: Lake) -> bool:
    """Whether Spark has no statements for a catalog's views, which is then an error that changes nothing."""
    if has_views_of_catalogs(lake.spark.version):
        return False
    before = lake.current_snapshot()
    for statement in ("CREATE OR REPLACE VIEW sales.v AS SELECT 1 AS a", "DROP VIEW IF EXISTS sales.v"):
        with pytest.raises(UnsupportedError, match=r"use lake\.create_view\(\.\.\.\) and lake\.drop_view"):
            lake.spark.sql(statement)
    assert lake.current_snapshot() == before
    return True


@contextmanager
def functions_in_from(spark: SparkSession) -> Iterator[str]:
    """What stands before the names of the functions of `sales`: in Spark 4.1 nothing may, so it is made current."""
    if has_views_of_catalogs(spark.version):
        yield "sales."
        return
    with pytest.raises(ParseException, match="INVALID_TABLE_VALUED_FUNC_NAME"):
        spark.sql("SELECT * FROM sales.snapshots()")
    spark.sql("USE sales")
    try:
        yield ""
    finally:
        spark.sql("USE spark_catalog")


def evolving_insert(spark: SparkSession, query: str) -> str:
    """A statement that adds rows to `sales.t`, and the columns that are new: Spark 4.1 has it for MERGE alone."""
    if has_views_of_catalogs(spark.version):
        return f"INSERT WITH SCHEMA EVOLUTION INTO sales.t BY NAME {query}"
    return f"MERGE WITH SCHEMA EVOLUTION INTO sales.t USING ({query}) s ON false WHEN NOT MATCHED THEN INSERT *"
