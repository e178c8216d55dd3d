"""Rows on their way from Spark's JVM into Python, by the cheapest road that Spark has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from penstock.spark.jvm import catalyst_column, catalyst_expression

_BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_SPARKS_BATCH_BYTES = "67108864b"
_NO_LIMIT = str(2**31 - 1)
_MOST_DIGITS_OF_A_LONG = 18

Decimals = tuple[tuple[int, int, int], ...]  # position, precision, scale


@contextmanager
def unweighed_batches(spark: SparkSession) -> Iterator[None]:
    """Let Spark end its batches by their rows alone, unless the user set a size.

    To know a batch's size Spark goes through all of its vectors after every row: half the CPU time of a write.
    """
    if spark.conf.get(_BATCH_BYTES) != _SPARKS_BATCH_BYTES:
        yield
        return
    spark.conf.set(_BATCH_BYTES, _NO_LIMIT)
    try:
        yield
    finally:
        spark.conf.unset(_BATCH_BYTES)


def with_decimals_as_longs(frame: DataFrame) -> tuple[DataFrame, Decimals]:
    """The columns that are decimals of at most 18 digits as their digits, and which those are. Names are unique.

    Spark makes two objects of every decimal that it gives to Arrow, and none of a long.
    """
    decimals = tuple(
        (position, kind.precision, kind.scale)
        for position, kind in enumerate(field.dataType for field in frame.schema.fields)
        if isinstance(kind, T.DecimalType) and kind.precision <= _MOST_DIGITS_OF_A_LONG
    )
    if not decimals:
        return frame, ()
    names = [frame.columns[position] for position, _, _ in decimals]
    return frame.withColumns({name: _digits(frame.sparkSession, F.col(name)) for name in names}), decimals


def _digits(spark: SparkSession, value: SparkColumn) -> SparkColumn:
    jvm: Any = spark._jvm
    unscaled = jvm.org.apache.spark.sql.catalyst.expressions.UnscaledValue
    return catalyst_column(spark, unscaled(catalyst_expression(spark, value)))


def with_decimals(batch: pa.RecordBatch, decimals: Decimals) -> pa.RecordBatch:
    """The batch with its decimals back."""
    for position, precision, scale in decimals:
        digits = batch.column(position)
        narrow = pa.Array.from_buffers(
            pa.decimal64(precision, scale), len(digits), digits.buffers(), digits.null_count, digits.offset
        )
        name = batch.schema.names[position]
        batch = batch.set_column(position, name, narrow.cast(pa.decimal128(precision, scale)))
    return batch


def in_batches_of(rows: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of at least as many, but for the last."""
    gathered: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        gathered.append(batch)
        count += batch.num_rows
        if count >= rows:
            yield _joined(gathered)
            gathered, count = [], 0
    if gathered:
        yield _joined(gathered)


def _joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
