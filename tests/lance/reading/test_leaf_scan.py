"""Scans of leaves: columns and filters reach Lance, and rows of other writers are found."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import penstock.lance
from support.lance_foreign import foreign_leaf, rows_where


@pytest.fixture
def namespace(spark: SparkSession, tmp_path: Path) -> penstock.lance.Namespace:
    columns = "id BIGINT, country STRING, city STRING, amount DECIMAL(38,2)"
    return penstock.lance.create(str(tmp_path), "events", columns, partitioned_by=["country"], spark=spark)


def test_columns_and_filters_reach_lance(spark: SparkSession, namespace: penstock.lance.Namespace) -> None:
    rows = spark.range(60).selectExpr(
        "id",
        "if(id % 2 = 0, 'US', 'FR') AS country",
        "concat('city', id % 5) AS city",
        "cast(id AS DECIMAL(38,2)) AS amount",
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


def test_small_fragments_of_a_leaf_are_read_together(spark: SparkSession, namespace: penstock.lance.Namespace) -> None:
    """Also where rows of some were deleted; what a condition finds is deleted in the right ones."""
    for number in range(40):
        namespace.append(spark.range(4 * number, 4 * number + 4).selectExpr("id", "'FR' AS country").coalesce(1))
    namespace.delete("id % 4 = 1")
    namespace.delete("id BETWEEN 60 AND 67 OR id = 158")
    left = [n for n in range(160) if n % 4 != 1 and not 60 <= n <= 67 and n != 158]
    assert sorted(row.id for row in namespace.read().select("id").collect()) == left
    assert namespace.read().where("id > 100").count() == len([n for n in left if n > 100])
    numbers = [json.loads(row.fragments) for row in _planned(namespace.read())]
    assert sum(map(len, numbers)) == 38  # two have lost all rows
    assert len(numbers) == 2


def _planned(query: DataFrame) -> list[Any]:
    """What the tasks of a query are told to read: the rows below the map."""
    plan: Any = query._jdf.queryExecution().optimizedPlan()  # type: ignore[operator]
    while plan.getClass().getSimpleName() != "MapInArrow":
        plan = plan.children().apply(0)
    below = plan.children().apply(0)
    spark = query.sparkSession
    jvm: Any = spark._jvm
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, below), spark).collect()


def test_years_from_1970_are_found_and_survive_deletes_of_old_years(spark: SparkSession, tmp_path: Path) -> None:
    namespace = penstock.lance.create(
        str(tmp_path), "n", "id INT, ts TIMESTAMP", partitioned_by=["year(ts)"], spark=spark
    )
    moment = datetime(2025, 12, 10, tzinfo=UTC)
    rows = pa.table({"id": pa.array([1], pa.int32()), "ts": pa.array([moment], pa.timestamp("us", "UTC"))})
    foreign_leaf(tmp_path, ["ts_year=55"], rows)
    namespace.append(spark.sql("SELECT 2 AS id, timestamp'0055-06-01 00:00:00' AS ts"))  # in a leaf of its own
    assert [row[0] for row in rows_where(namespace, "ts >= '2025-01-01' AND ts < '2026-01-01'")] == [1]
    assert [row[0] for row in rows_where(namespace, "year(ts) = 55")] == [2]
    assert namespace.explain("ts >= '2026-01-01'").kept == 0
    assert namespace.delete("ts < '1000-01-01'") is not None
    assert [row[0] for row in rows_where(namespace)] == [1]
    assert namespace.delete("ts < '1000-01-01'") is None


def test_rows_of_a_leaf_that_lacks_its_partition_column(spark: SparkSession, tmp_path: Path) -> None:
    """They read as NULL, so a filter for the leaf's value must not delete them with it, nor one for NULL lose them."""
    namespace = penstock.lance.create(
        str(tmp_path), "n", "id INT, region STRING", partitioned_by=["region"], spark=spark
    )
    foreign_leaf(tmp_path, ["region=EU"], pa.table({"id": pa.array([1], pa.int32())}))
    assert rows_where(namespace, "region IS NULL") == [(1, None)]
    assert namespace.delete("region = 'EU'") is None
    assert rows_where(namespace) == [(1, None)]
