"""A lake that Spark SQL calls `sales`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock import Lake
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
