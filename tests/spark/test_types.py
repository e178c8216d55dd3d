"""Conversions of values between what is read and what is shown."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from penstock.ducklake.reading.row_conversion import rounded_timestamp

EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"


@pytest.mark.parametrize("unit", [1000, 1_000_000])
def test_rounding_near_the_ends_of_time(spark: SparkSession, unit: int) -> None:
    """Halves are not added to numbers that have no room for them."""
    whole = (2**63 - 1) // unit * unit
    below = whole + unit // 2 - 1
    numbers = [below, -below, whole - unit // 2, unit // 2, -unit // 2, unit // 2 - 1, 2**63 - 1]
    given = spark.sql(f"SELECT explode(array({', '.join(f'{number}L' for number in numbers)})) AS n")
    times = given.selectExpr(f"{EPOCH} + n * INTERVAL '0.000001' SECOND AS t")
    rounded = times.select(F.expr(rounded_timestamp("t", unit)).alias("t"))
    found = rounded.selectExpr(f"timestampdiff(MICROSECOND, {EPOCH}, t)").collect()
    assert [row[0] for row in found] == [whole, -whole, whole, unit, -unit, 0, 2**63 - 1]
