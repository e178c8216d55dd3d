"""Statements for a cluster's driver, that take long enough for a test to kill something while they run."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

import penstock
from penstock import Lake
from penstock.ducklake.changing import delete_job, deletes, row_places

PARTITIONS, APPENDS, ROWS = 4, 3, 20_000
BEFORE, ADDED = APPENDS * ROWS, 40_000  # the rows of the table, and those that statements add
_TASKS = 4
STRAGGLING = 600.0  # seconds
BATCH_ROWS = 1000  # that a worker gets at once
_BATCHES = ADDED // _TASKS // BATCH_ROWS  # of a task
_COLUMNS = "id BIGINT, p BIGINT, s STRING"
_VALUES = ("id", f"id % {PARTITIONS} AS p", "'old' AS s")
# A value of rows, `new`, that is a while in coming.
_SLOWLY = "left(concat('new', IF(id % 100 = 0, reflect('java.lang.Thread', 'sleep', 30L), '')), 3)"


@dataclass(frozen=True)
class Place:
    """Where a lake is, and what reaches it."""

    uri: str
    data_path: str
    options: dict[str, str] = field(default_factory=dict)

    def attached(self, spark: SparkSession) -> AbstractContextManager[Lake]:
        return penstock.attach(self.uri, data_path=self.data_path, storage_options=self.options or None, spark=spark)


def prepare(spark: SparkSession, place: Place) -> None:
    """Make the table: several small files in each partition."""
    with place.attached(spark) as lake:
        lake.set_option("data_inlining_row_limit", 0)
        lake.set_option("parquet_row_group_size", 250)
        table = lake.create_table("t", _COLUMNS, partitioned_by=["p"])
        for first in range(0, BEFORE, ROWS):
            table.append(spark.range(first, first + ROWS, 1, 1).selectExpr(*_VALUES))


def append(spark: SparkSession, place: Place) -> None:
    with place.attached(spark) as lake:
        lake.table("t").append(slow_rows(spark, BEFORE, BEFORE + ADDED), distribution="none")


def merge(spark: SparkSession, place: Place) -> None:
    with place.attached(spark) as lake:
        source = spark.range(BEFORE - ADDED // 2, BEFORE + ADDED // 2, 1, _TASKS).selectExpr(*_VALUES)
        merge = lake.table("t").merge(source, "id")
        merge.when_matched_update({"s": _SLOWLY.replace("id", "target.id")}).when_not_matched_insert().execute()


def update(spark: SparkSession, place: Place) -> None:
    with place.attached(spark) as lake:
        lake.table("t").update({"s": _SLOWLY}, "id % 4 < 2")


def delete(spark: SparkSession, place: Place) -> None:
    """Delete so that tasks write the delete files, although they are few."""
    few, delete_job.FEW_FILES = delete_job.FEW_FILES, 0
    try:
        with place.attached(spark) as lake:
            lake.table("t").delete("id % 8 < 4 AND id > 0")
    finally:
        delete_job.FEW_FILES = few


def delete_in_two_steps(spark: SparkSession, place: Place, waits: str) -> None:
    """Delete as above, but wait between the two passes for as long as a file, which is made then, is there."""
    real, at_hand = deletes.write_delete_files, row_places.MOST_ROWS_AT_HAND

    def later(*arguments: Any) -> Any:
        Path(waits).touch()
        while Path(waits).exists():
            time.sleep(0.01)
        return real(*arguments)

    deletes.write_delete_files, row_places.MOST_ROWS_AT_HAND = later, 0
    try:
        delete(spark, place)
    finally:
        deletes.write_delete_files, row_places.MOST_ROWS_AT_HAND = real, at_hand


def compact(spark: SparkSession, place: Place) -> None:
    with place.attached(spark) as lake:
        lake.table("t").merge_adjacent_files()


def inline(spark: SparkSession, place: Place) -> None:
    """Delete few rows of every file, and add a few, all in the catalog."""
    with place.attached(spark) as lake:
        lake.set_option("data_inlining_row_limit", 1000)
        lake.table("t").delete("id % 1000 < 4")
        lake.table("t").append(spark.range(BEFORE, BEFORE + 100, 1, 1).selectExpr(*_VALUES))


def flush(spark: SparkSession, place: Place) -> None:
    with place.attached(spark) as lake:
        lake.flush_inlined_data()


def keep_rows_in(spark: SparkSession, directory: str | None) -> None:
    """Set the checkpoint directory; None takes it back, for which Spark has no method."""
    if directory is not None:
        spark.sparkContext.setCheckpointDir(directory)
    else:
        context = spark.sparkContext._jsc.sc()
        getattr(context, "checkpointDir_$eq")(spark._jvm.scala.Option.empty())


def slow_rows(spark: SparkSession, first: int, end: int) -> DataFrame:
    """Rows of which a thousand come at a time, in each of four tasks."""
    rows = spark.range(first, end, 1, _TASKS).selectExpr(*_VALUES)
    return rows.mapInArrow(_slowly, _COLUMNS)


def _slowly(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        time.sleep(0.1)
        yield batch


def append_with_a_straggler(spark: SparkSession, place: Place) -> None:
    """Append rows whose first task, the first time, stops when half of them have come."""
    with place.attached(spark) as lake:
        rows = spark.range(BEFORE, BEFORE + ADDED, 1, _TASKS).selectExpr(*_VALUES)
        lake.table("t").append(rows.mapInArrow(_straggling, _COLUMNS), distribution="none")


def _straggling(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    for number, batch in enumerate(batches):
        is_first = context is not None and context.partitionId() == 0 and context.attemptNumber() == 0
        if is_first and number == _BATCHES // 2:
            time.sleep(STRAGGLING)
        yield batch


def create_wide(spark: SparkSession, place: Place) -> None:
    with place.attached(spark) as lake:
        lake.set_option("data_inlining_row_limit", 0)
        lake.set_option("parquet_row_group_size", 250)
        lake.set_option("parquet_compression", "uncompressed")
        lake.create_table("t", _COLUMNS)


def append_wide(spark: SparkSession, place: Place) -> None:
    """Append rows of a kilobyte: files so large that they are sent in parts."""
    with place.attached(spark) as lake:
        rows = slow_rows(spark, BEFORE, BEFORE + ADDED).selectExpr("id", "p", "concat(id, repeat('x', 2000)) AS s")
        lake.table("t").append(rows, distribution="none")


def prepare_delta(spark: SparkSession, path: str) -> None:
    table = penstock.delta.create(path, _COLUMNS, partitioned_by=["p"], spark=spark)
    table.append(spark.range(0, BEFORE, 1, 1).selectExpr(*_VALUES))


def append_delta(spark: SparkSession, path: str) -> None:
    rows = slow_rows(spark, BEFORE, BEFORE + ADDED)
    penstock.delta.open(path, spark=spark).append(rows, distribution="none")


def prepare_lance(spark: SparkSession, path: str) -> None:
    namespace = penstock.lance.create(path, "ns", _COLUMNS, partitioned_by=["p"], spark=spark)
    namespace.append(spark.range(0, BEFORE, 1, 1).selectExpr(*_VALUES))


def append_lance(spark: SparkSession, path: str) -> None:
    rows = slow_rows(spark, BEFORE, BEFORE + ADDED)
    penstock.lance.open(path, "ns", spark=spark).append(rows, distribution="none")
