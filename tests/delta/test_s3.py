"""Delta tables on S3: commits are put where none is, so that two writers lose nothing; delta-rs writes too."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import deltalake
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import penstock.delta
from support.s3_server import S3Server

pytestmark = pytest.mark.s3
SCHEMA = "id BIGINT, p STRING"


def numbers(spark: SparkSession, path: str, options: dict[str, str]) -> list[int]:
    return sorted(row.id for row in penstock.delta.open(path, storage_options=options, spark=spark).read().collect())


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
@pytest.mark.slow
def test_both_ways(spark: SparkSession, s3: S3Server, scheme: str) -> None:
    options, path = s3.options(aws_allow_http="true"), f"{scheme}://{s3.bucket()}/a table"
    materialized = scheme == "s3a"  # which delta-rs reads, and refuses to write
    table = penstock.delta.create(
        path,
        SCHEMA,
        partitioned_by=["p"],
        materialize_partition_columns=materialized,
        storage_options=options,
        spark=spark,
    )
    table.append(spark.sql("SELECT id, concat('a/é=%2F ', id % 2) AS p FROM range(10)"))
    table.delete("id = 3")
    expected = [0, 1, 2, *range(4, 10)]
    judge = deltalake.DeltaTable(path, storage_options=options)
    assert sorted(judge.to_pyarrow_table()["id"].to_pylist()) == expected
    if not materialized:
        rows = pa.table({"id": [100], "p": ["new"]})
        deltalake.write_deltalake(judge, rows, mode="append", storage_options=options)
        expected.append(100)
    assert numbers(spark, path, options) == expected
    table.append(spark.sql("SELECT id, concat('a/é=%2F ', id % 2) AS p FROM range(200, 204)"))
    assert table.compact() > 0
    assert table.vacuum(retention=timedelta(0))
    assert numbers(spark, path, options) == [*expected, *range(200, 204)]


def test_two_writers_lose_nothing(spark: SparkSession, s3: S3Server) -> None:
    options, path = s3.options(aws_allow_http="true"), f"s3://{s3.bucket()}/t"
    penstock.delta.create(path, SCHEMA, storage_options=options, spark=spark)

    def write(number: int) -> None:
        if number % 2:
            penstock.delta.open(path, storage_options=options, spark=spark).append(
                spark.range(number, number + 1).selectExpr("id", "'x' AS p")
            )
        else:
            rows = pa.table({"id": [number], "p": ["y"]})
            deltalake.write_deltalake(path, rows, mode="append", storage_options=options)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(12)))
    assert numbers(spark, path, options) == list(range(12))
