"""What Spark's plan asks of leaves: columns and filters reach Lance."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import penstock
import penstock.lance


@pytest.fixture
def namespace(spark: SparkSession, tmp_path: Path) -> penstock.lance.Namespace:
    columns = "id BIGINT, country STRING, city STRING, amount DECIMAL(38,2)"
    return penstock.lance.create(str(tmp_path), "events", columns, partitioned_by=["country"], spark=spark)


def test_columns_and_filters_reach_lance(spark: SparkSession, namespace: penstock.lance.Namespace) -> None:
    rows = spark.range(60).selectExpr(
        "id", "if(id % 2 = 0, 'US', 'FR') AS country", "concat('city', id % 5) AS city", "id / 2 AS amount"
    )
    namespace.append(rows)
    query = namespace.read().where("id > 30 AND country = 'US'").select("amount")
    asked = [json.loads(row.columns) for row in _planned(query)]
    assert asked
    assert {tuple(sorted(columns.values())) for columns in asked} == {("amount", "country", "id")}
    assert all("`id` >= 31" in row["filter"] and "`country` >= 'US'" in row["filter"] for row in _planned(query))
    assert {row.columns for row in _planned(namespace.read().groupBy().count())} == {"{}"}
    assert {tuple(json.loads(row.columns).values()) for row in _planned(namespace.read().groupBy("city").count())} == {
        ("city",)
    }


def _planned(query: DataFrame) -> list[Any]:
    """What the tasks of a query are told to read: the rows below the map."""
    plan: Any = query._jdf.queryExecution().optimizedPlan()  # type: ignore[operator]
    while plan.getClass().getSimpleName() != "MapInArrow":
        plan = plan.children().apply(0)
    below = plan.children().apply(0)
    spark = query.sparkSession
    jvm: Any = spark._jvm
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, below), spark).collect()
