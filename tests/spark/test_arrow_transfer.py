"""Batches on their way to Python: of few enough bytes, and weighed only where they must be."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import penstock
from penstock.spark.arrow_transfer import in_batches_of, run_in_batches
from penstock.spark.file_tasks import original_errors

MEGABYTE = 2**20
WIDE = {
    "string": "if(id = 1, repeat('x', 70000), NULL)",
    "bytes": "if(id = 1, CAST(repeat('x', 70000) AS BINARY), X'')",
    "parts that are narrow alone": "struct(repeat('x', 6000 * id) AS a, repeat('é', 6000) AS b, 1 AS c)",
    "array": "if(id = 1, sequence(1, 5000), NULL)",
    "map": "map_from_arrays(sequence(0L, 3000 * id), sequence(0L, 3000 * id))",
}
NARROW = {
    "numbers": "CAST(id AS DECIMAL(38, 2))",
    "texts": "struct(repeat('x', 15000) AS a, array(id) AS b, CAST(NULL AS BINARY) AS c)",
    "nothing": "NULL",
}
UNKNOWN = {"texts in a list": "array('a', 'b')", "variant": "parse_json('[1]')"}


def _sizes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"rows": [batch.num_rows], "bytes": [batch.nbytes]})


def batches(frame: DataFrame) -> tuple[list[tuple[int, int]], list[DataFrame]]:
    """Rows and bytes of the batches that came to Python, and the attempts that were made."""
    attempts: list[DataFrame] = []

    def attempt(rows: DataFrame) -> list[tuple[int, int]]:
        attempts.append(rows)
        with original_errors():
            return [tuple(row) for row in rows.mapInArrow(_sizes, "rows bigint, bytes bigint").collect()]

    return run_in_batches(frame, attempt), attempts


@pytest.mark.parametrize(
    ("expression", "expected"), [*((e, 2) for e in WIDE.values()), *((e, 1) for e in NARROW.values())]
)
def test_rows_are_counted_unless_one_is_wide(spark: SparkSession, expression: str, expected: int) -> None:
    frame = spark.range(0, 2, 1, 1).selectExpr("id", f"{expression} AS v")
    found, attempts = batches(frame)
    assert sum(rows for rows, _ in found) == 2
    assert len(attempts) == expected
    assert attempts[0] is not frame


@pytest.mark.parametrize("expression", UNKNOWN.values())
def test_values_of_unknown_size_are_weighed(spark: SparkSession, expression: str) -> None:
    frame = spark.range(2).selectExpr(f"{expression} AS v")
    _, attempts = batches(frame)
    assert attempts == [frame]


def test_batches_have_a_size(spark: SparkSession) -> None:
    narrow, _ = batches(spark.range(0, 10000, 1, 1).selectExpr("id", "repeat('x', 16000) AS s"))
    wide, _ = batches(spark.range(0, 1500, 1, 1).selectExpr("id", "repeat('x', 100000) AS s"))
    assert sum(rows for rows, _ in narrow) == 10000
    assert sum(rows for rows, _ in wide) == 1500
    assert max(size for _, size in narrow) < 140 * MEGABYTE
    assert max(size for _, size in wide) < 80 * MEGABYTE


def test_a_size_that_the_user_set_holds(spark: SparkSession) -> None:
    own = spark.newSession()
    own.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", "1m")
    found, attempts = batches(own.range(0, 100, 1, 1).selectExpr("repeat('x', 60000) AS s"))
    assert len(attempts) == 1
    assert max(size for _, size in found) < 2 * MEGABYTE


def test_wide_batches_are_not_put_together() -> None:
    batch = pa.RecordBatch.from_pydict({"s": ["x" * MEGABYTE] * 20})
    together = list(in_batches_of(65536, iter([batch] * 10)))
    assert sum(one.num_rows for one in together) == 200
    assert max(one.nbytes for one in together) < 100 * MEGABYTE
    few = pa.RecordBatch.from_pydict({"s": ["x"] * 20})
    assert [one.num_rows for one in in_batches_of(40, iter([few] * 5))] == [40, 40, 20]


def _same(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def test_queries_that_belong_to_their_session_stay_in_it(spark: SparkSession) -> None:
    """Whoever observes one is told by its own session; and batches of the user's Python are not to grow with ours."""
    python = spark.range(2).mapInArrow(_same, "id bigint").selectExpr("id + 1 AS id")
    observed = spark.range(2).observe(Observation("a"), F.count(F.lit(1)).alias("n"))
    for frame in (python, observed):
        _, attempts = batches(frame)
        assert attempts == [frame]


def test_observations_and_interrupts_reach_a_write(tmp_path: Path, spark: SparkSession) -> None:
    with penstock.attach(f"ducklake:{tmp_path}/lake.ducklake", spark=spark, data_inlining_row_limit=0) as lake:
        table = lake.create_table("t", "id BIGINT, s STRING")
        observation = Observation("rows")
        table.append(spark.sql("SELECT id, 'x' FROM range(10)").observe(observation, F.count(F.lit(1)).alias("n")))
        told: list[dict[str, Any]] = []
        reader = threading.Thread(target=lambda: told.append(observation.get), daemon=True)
        reader.start()
        reader.join(60)
        assert told == [{"n": 10}]

        slow = "SELECT id, java_method('java.lang.Thread', 'sleep', 100L) FROM range(0, 1000, 1, 2)"
        interrupted: list[str] = []

        def interrupt() -> None:
            end = time.monotonic() + 60
            while not interrupted and time.monotonic() < end:
                time.sleep(0.5)
                interrupted.extend(spark.interruptAll())

        waiting = threading.Thread(target=interrupt)
        waiting.start()
        with pytest.raises((PySparkException, Py4JJavaError)):
            table.append(spark.sql(slow))
        waiting.join()
        assert interrupted
        assert table.read().count() == 10
    assert len(list(tmp_path.rglob("*.parquet"))) <= 2
