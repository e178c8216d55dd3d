"""Moves rows from Spark's JVM into Python, in the batches that cost Spark least."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from penstock.spark.connect.sessions import is_connect
from penstock.spark.expressions import spark_quoted
from penstock.spark.java_classes import java_class
from penstock.spark.jvm import can_change_sessions, catalyst_column, catalyst_expression, in_session_with

_BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_SPARKS_BATCH_BYTES = "67108864b"
_NO_LIMIT = 2**31 - 1
_MOST_BYTES = 128 * 2**20  # of a batch that is not weighed
MOST_VARIABLE_BYTES = 16 * 2**10  # of a row in it, so that it has 8,192 rows: with 1,000, writes are a quarter slower
_GATHERED_BYTES = 64 * 2**20  # of batches that are put together
_VALUE_BYTES = 17  # of a decimal, the widest value of a fixed size, and whether it is there
_FIXED = (
    T.NumericType, T.BooleanType, T.DateType, T.TimestampType, T.TimestampNTZType, T.TimeType, T.DayTimeIntervalType,
    T.YearMonthIntervalType, T.NullType,
)  # fmt: skip
WIDE_ROW_MARKER = "penstock: a row is too wide to be counted instead of weighed"
_MOST_DIGITS_OF_A_LONG = 18
_CHAIN = 16  # of additions

Decimals = tuple[tuple[int, int, int], ...]  # position, precision, scale
_T = TypeVar("_T")


class WideRowError(Exception):
    """Raised when a row is too wide for batches that end by their count of rows."""


def run_in_batches(frame: DataFrame, attempt: Callable[[DataFrame], _T]) -> _T:
    """Run an attempt on rows that Python gets in batches of few enough bytes, and return what it returns.

    To know a batch's size Spark goes through all of its vectors after every row: half the CPU time of a write of narrow
    rows. So it counts them, and the attempt fails with a WideRowError at the first that is not narrow: then it is made
    again, and Spark weighs.
    """
    counted = _counted(frame)
    if counted is not None:
        try:
            return attempt(counted)
        except WideRowError:
            pass
    return attempt(frame)


def _counted(frame: DataFrame) -> DataFrame | None:
    """The rows in batches that end by their count, whose tasks fail at a wide row.

    None where Spark is to weigh: the user set a size, there are values whose size takes a walk through them, or the
    query cannot go to the session of its own that has the settings, as none of Spark Connect can.
    """
    spark = frame.sparkSession
    if is_connect(spark):
        return None
    fields = frame.schema.fields
    sizes = [[] if isinstance(field.dataType, _FIXED) else _sizes(field.dataType, _value(field)) for field in fields]
    known = [size for found in sizes if found is not None for size in found]
    if None in sizes or spark.conf.get(_BATCH_BYTES) != _SPARKS_BATCH_BYTES or not can_change_sessions(frame):
        return None
    if known:
        total = _sum([F.coalesce(size.cast("bigint"), F.lit(0)) for size in known])
        first = next(place for place, found in enumerate(sizes) if found)
        refused = F.raise_error(F.lit(WIDE_ROW_MARKER))
        wide = F.when(total > MOST_VARIABLE_BYTES, refused).otherwise(_value(fields[first]))
        frame = frame.withColumn(fields[first].name, wide)
    width = max(_VALUE_BYTES * _leaves(frame.schema), MOST_VARIABLE_BYTES if known else 0)
    rows = max(1, min(_rows_of(spark), _MOST_BYTES // width))
    return in_session_with(frame, {_BATCH_BYTES: str(_NO_LIMIT), _BATCH_ROWS: str(rows)})


def _sum(sizes: Sequence[SparkColumn]) -> SparkColumn:
    """The sum of many sizes, in few steps down: Spark goes into an addition by recursion, and makes one chain of them.

    The greater of 0 and a sum is that sum, and ends the chain.
    """
    while len(sizes) > _CHAIN:
        chains = (sizes[first : first + _CHAIN] for first in range(0, len(sizes), _CHAIN))
        sizes = [F.greatest(_sum(chain), F.lit(0)) for chain in chains]
    return reduce(SparkColumn.__add__, sizes)


def _value(field: T.StructField) -> SparkColumn:
    return F.col(spark_quoted(field.name))


def _rows_of(spark: SparkSession) -> int:
    """How many rows of a batch the user allows."""
    rows = int(str(spark.conf.get(_BATCH_ROWS)))
    return rows if rows > 0 else _NO_LIMIT


def _sizes(kind: T.DataType, value: SparkColumn) -> list[SparkColumn] | None:
    """The bytes of the parts of a value that can be of any size; None where it takes more than a glance to know."""
    match kind:
        case T.StringType() | T.BinaryType():
            return [F.octet_length(value)]
        case T.ArrayType(elementType=T.DataType() as item) if isinstance(item, _FIXED):
            return [F.size(value) * F.lit(_VALUE_BYTES).cast("bigint")]
        case T.MapType(keyType=key, valueType=item) if isinstance(key, _FIXED) and isinstance(item, _FIXED):
            return [F.size(value) * F.lit(2 * _VALUE_BYTES).cast("bigint")]
        case T.StructType(fields=fields):
            parts = [_sizes(field.dataType, value.getField(field.name)) for field in fields]
            return None if None in parts else [size for part in parts for size in part or ()]
        case _:
            return [] if isinstance(kind, _FIXED) else None


def _leaves(kind: T.DataType) -> int:
    return sum(_leaves(field.dataType) for field in kind.fields) if isinstance(kind, T.StructType) else 1


def with_decimals_as_longs(frame: DataFrame) -> tuple[DataFrame, Decimals]:
    """Replace decimals of at most 18 digits by longs of their digits, and say which those are. Names are unique.

    Spark makes two objects of every decimal that it gives to Arrow, and none of a long. Spark Connect has no way to ask
    for the digits.
    """
    if is_connect(frame):
        return frame, ()
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
    unscaled = java_class(spark, "org.apache.spark.sql.catalyst.expressions.UnscaledValue")
    return catalyst_column(spark, unscaled(catalyst_expression(spark, value)))


def with_decimals(batch: pa.RecordBatch, decimals: Decimals) -> pa.RecordBatch:
    """Turn the longs that stand for decimals back into decimals."""
    for position, precision, scale in decimals:
        digits = batch.column(position)
        narrow = pa.Array.from_buffers(
            pa.decimal64(precision, scale), len(digits), digits.buffers(), digits.null_count, digits.offset
        )
        name = batch.schema.names[position]
        batch = batch.set_column(position, name, narrow.cast(pa.decimal128(precision, scale)))
    return batch


def in_batches_of(rows: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join batches until each has at least so many rows, but for the last, and for wide ones."""
    gathered: list[pa.RecordBatch] = []
    count = size = 0
    for batch in batches:
        gathered.append(batch)
        count += batch.num_rows
        size += batch.nbytes
        if count >= rows or size >= _GATHERED_BYTES:
            yield _joined(gathered)
            gathered, count, size = [], 0, 0
    if gathered:
        yield _joined(gathered)


def _joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
