"""Hands rows from Spark to Python as bytes in the form of Arrow's columns, where Spark reads them as columns.

Spark makes rows of what it reads in columns, and columns of rows for Python, value by value: of a write that is more
than half of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812

from penstock.spark.arrow_transfer import run_in_batches
from penstock.spark.executor_classes import add_to_executors
from penstock.spark.file_tasks import original_errors
from penstock.spark.jvm import in_session_with, new_object
from penstock.spark.packed_arrays import takes_packed
from penstock.spark.releases import arrow_type_of
from penstock.spark.versions import session_time_zone

_CLASSES = ("ArrayElements", "ColumnBytes", "PackedColumns")
_BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_WORD = 8  # bytes
_TOLD = 4  # numbers of a column
_TYPES = frozenset((
    T.BooleanType, T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.FloatType, T.DoubleType, T.DecimalType,
    T.DateType, T.TimestampNTZType, T.StringType, T.BinaryType,
))  # fmt: skip

Job = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
_T = TypeVar("_T")


@dataclass(frozen=True)
class PackedColumns:
    """Rows that are packed, and what their bytes are."""

    frame: DataFrame
    schema: pa.Schema

    def unpacking(self, job: Job) -> Job:
        """A job for the packed rows that does with the rows what another one does."""
        return _Unpacking(job, self.schema)


@dataclass(frozen=True)
class _Unpacking:
    job: Job
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.job(unpacked(piece.as_buffer(), self.schema) for batch in batches for piece in batch.column(0))


def run_on_rows(frame: DataFrame, job: Job, attempt: Callable[[DataFrame, Job], _T]) -> _T:
    """Run an attempt at a job on rows that Python gets as columns, or else in batches of few enough bytes."""
    with original_errors():  # of what reads the rows, which Spark plans here
        packed = packed_columns(frame)
    if packed is not None:
        return attempt(packed.frame, packed.unpacking(job))
    return run_in_batches(frame, lambda rows: attempt(rows, job))


def packed_columns(frame: DataFrame) -> PackedColumns | None:
    """The rows of a query, packed; None where Spark computes rows, or has values that are not packed."""
    spark = frame.sparkSession
    if not takes_packed(spark):
        return None
    time_zone = session_time_zone(spark)
    types = [_arrow_type(field.dataType, time_zone) for field in frame.schema]
    if not types or None in types:
        return None
    add_to_executors(spark, *_CLASSES)
    rows = new_object(spark, "penstock.PackedColumns", _CLASSES).of(frame._jdf)
    if rows is None:
        return None
    named = [pa.field(name, kind) for name, kind in zip(frame.columns, types, strict=True)]
    return PackedColumns(in_session_with(DataFrame(rows, spark), {_BATCH_ROWS: "1"}), pa.schema(named))


def unpacked(piece: pa.Buffer, schema: pa.Schema) -> pa.RecordBatch:
    """The rows of a piece, whose bytes stay where they are."""
    count = len(schema) + sum(map(pa.types.is_list, schema.types))
    [rows], *told = np.split(np.frombuffer(piece, np.int64, 1 + _TOLD * count), range(1, 1 + _TOLD * count, _TOLD))
    columns = iter(_columns(piece, (1 + _TOLD * count) * _WORD, [one.tolist() for one in told]))
    arrays = [_array(kind, int(rows), columns) for kind in schema.types]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _columns(piece: pa.Buffer, place: int, told: Iterable[list[int]]) -> Iterator[tuple[int, list[pa.Buffer]]]:
    """The NULLs of each column and its buffers: which values are there, where they end, and they themselves."""
    for nulls, *sizes in told:
        buffers = []
        for size in sizes:
            buffers.append(piece.slice(place, size))
            place += -(-size // _WORD) * _WORD
        yield nulls, buffers


def _array(kind: pa.DataType, rows: int, columns: Iterator[tuple[int, list[pa.Buffer]]]) -> pa.Array:
    nulls, (present, ends, values) = next(columns)
    own = [present if nulls else None, *([ends] if ends.size else []), values]
    if not pa.types.is_list(kind):
        return pa.Array.from_buffers(kind, rows, own, nulls)
    count = int(np.frombuffer(ends, np.int32)[rows])
    return pa.Array.from_buffers(kind, rows, own[:2], nulls, children=[_array(kind.value_type, count, columns)])


def _arrow_type(kind: T.DataType, time_zone: str) -> pa.DataType | None:
    if isinstance(kind, T.TimestampType):
        return pa.timestamp("us", time_zone)
    if isinstance(kind, T.ArrayType) and not isinstance(kind.elementType, T.ArrayType):
        element = _arrow_type(kind.elementType, time_zone)
        return None if element is None else pa.list_(pa.field("element", element, kind.containsNull))
    return arrow_type_of(kind) if type(kind) in _TYPES else None
