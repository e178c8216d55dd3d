"""Where rows are is told by the JVM in bitmaps that Python reads."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64
from pyspark.errors import ArithmeticException
from pyspark.sql import SparkSession

from penstock.spark.found_rows import found_rows

PLACES = st.tuples(
    st.sampled_from([None, 0, 1, -7, 2**62]),
    st.integers(0, 300_000) | st.integers(2**32 - 3, 2**32 + 3) | st.integers(0, 2**63 - 1),
)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(PLACES, max_size=300), tasks=st.integers(1, 4))
def test_all_rows_are_found(spark: SparkSession, rows: list[tuple[int | None, int]], tasks: int) -> None:
    """Of files and of none, in any order, also twice, in few tasks or many."""
    frame = spark.createDataFrame(rows, "file BIGINT, position BIGINT").repartition(tasks)
    found: dict[int | None, set[int]] = {}
    for file, packed in found_rows(frame):
        found.setdefault(file, set()).update(BitMap64.deserialize(packed))
    expected: dict[int | None, set[int]] = {}
    for file, position in rows:
        expected.setdefault(file, set()).add(position)
    assert found == expected


@pytest.mark.compiled
def test_many_rows_take_little(spark: SparkSession) -> None:
    ((file, packed),) = found_rows(spark.range(0, 3_000_000, 1, 1).selectExpr("7L AS file", "id AS position"))
    assert (file, len(BitMap64.deserialize(packed))) == (7, 3_000_000)
    assert len(packed) < 2000


def test_errors_of_conditions_are_sparks_own(spark: SparkSession) -> None:
    rows = spark.range(0, 10, 1, 2).where("1 / (id - 7) > 0").selectExpr("1L AS file", "id AS position")
    with pytest.raises(ArithmeticException, match="DIVIDE_BY_ZERO"):
        found_rows(rows)
