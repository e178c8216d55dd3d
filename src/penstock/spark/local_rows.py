"""Makes DataFrames of a few rows that the driver holds, and takes such rows back: neither needs a job."""

from __future__ import annotations

import pickle
from base64 import b64decode
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.serializers import BatchedSerializer, CPickleSerializer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812

from penstock.spark.connect import frames as connect_frames
from penstock.spark.connect.sessions import is_connect
from penstock.spark.file_tasks import original_errors
from penstock.spark.jvm import frames, new_object
from penstock.spark.releases import arrow_schema_of

_MOST_IN_A_CALL = 1 << 20  # bytes; PySpark writes rows to a file for the JVM
_REPICKLES = "RDD._reserialize.<locals>.<lambda>"
_readers: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()  # by JVM


def local_frame(spark: SparkSession, rows: Sequence[Sequence[Any]], schema: str) -> DataFrame:
    """A DataFrame of rows; the schema is Spark's DDL."""
    return local_columns(spark, list(zip(*rows, strict=True)), schema)


def local_columns(spark: SparkSession, columns: Sequence[Sequence[Any]], schema: str) -> DataFrame:
    """A DataFrame of columns, which may be none where there are no rows; the schema is Spark's DDL."""
    kind = _struct(schema)
    if not columns or not len(columns[0]):
        return empty_frame(spark, kind)
    arrow = arrow_schema_of(kind)
    arrays = [pa.array(_given(column, field.type), field.type) for column, field in zip(columns, arrow, strict=True)]
    return arrow_frame(spark, pa.Table.from_arrays(arrays, schema=arrow), kind)


def arrow_frame(spark: SparkSession, rows: pa.Table, schema: T.StructType) -> DataFrame:
    """A DataFrame of rows in the Arrow types that Spark uses for a schema. Few go to the JVM in one call."""
    if is_connect(spark):
        return connect_frames.arrow_frame(spark, rows, schema)
    made = _in_one_call(spark, rows, schema) if rows.nbytes <= _MOST_IN_A_CALL else None
    return spark.createDataFrame(rows, schema) if made is None else DataFrame(made, spark)


def _in_one_call(spark: SparkSession, rows: pa.Table, schema: T.StructType) -> Any:
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, rows.schema) as writer:
        writer.write_table(rows)
    told = bytearray(stream.getvalue())  # which py4j knows for an array of bytes
    return frames(spark).local(spark._jsparkSession, told, schema.json())


def empty_frame(spark: SparkSession, schema: T.StructType) -> DataFrame:
    """A DataFrame without rows."""
    if is_connect(spark):
        return connect_frames.empty_frame(spark, schema)
    return DataFrame(frames(spark).empty(spark._jsparkSession, schema.json()), spark)


def unread_frame(spark: SparkSession, schema: T.StructType) -> DataFrame:
    """A DataFrame without rows, whose queries Spark optimizes as if it had some."""
    if is_connect(spark):
        return connect_frames.empty_frame(spark, schema)
    return DataFrame(frames(spark).unread(spark._jsparkSession, schema.json()), spark)


def held_rows(frame: DataFrame, most_rows: int, most_bytes: int) -> pa.Table | None:
    """The rows of a query over what the driver holds: VALUES, constants, a local relation, a list that was given.

    Spark's optimizer computes them, without a job; None where there are more, or where it takes one. On Spark Connect
    it is the server that holds them.
    """
    if is_connect(frame):
        return None
    gateway = frame.sparkSession.sparkContext._gateway
    reader = _readers.get(gateway)
    if reader is None:
        reader = _readers[gateway] = new_object(frame.sparkSession, "penstock.LocalRows")
    with original_errors():  # of values that do not fit: the optimizer meets them
        found = reader.arrow(frame._jdf, most_rows, most_bytes)
        if isinstance(found, str) and _gives_back_what_it_gets(b64decode(found)):
            reader.trust(found)
            found = reader.arrow(frame._jdf, most_rows, most_bytes)
    if found is None or isinstance(found, str):
        return None
    return pa.ipc.open_stream(found).read_all() if found else arrow_schema_of(frame.schema).empty_table()


def _gives_back_what_it_gets(command: bytes) -> bool:
    """Whether a function is the one that `createDataFrame` puts over a list: it only pickles the rows anew."""
    if _REPICKLES.encode() not in command:  # somebody's own: not for us to look into
        return False
    function, profiler, read, _ = pickle.loads(command)
    mapped = [cell.cell_contents for cell in function.__closure__ or ()]
    return (
        profiler is None
        and _is_sparks(function, "RDD.map.<locals>.func")
        and len(mapped) == 1
        and _is_sparks(mapped[0], _REPICKLES)
        and type(read) is BatchedSerializer
        and type(read.serializer) is CPickleSerializer
    )


def _is_sparks(function: Any, name: str) -> bool:
    return getattr(function, "__module__", "") == "pyspark.core.rdd" and function.__qualname__ == name


@cache
def _struct(schema: str) -> T.StructType:
    kind = T.StructType.fromDDL(schema)
    assert isinstance(kind, T.StructType)
    return kind


def _given(values: Sequence[Any], kind: pa.DataType) -> Sequence[Any]:
    """A column's values as Arrow takes them: a map's pairs, and moments in UTC."""
    if pa.types.is_map(kind):
        return [list(value.items()) if isinstance(value, dict) else value for value in values]
    if pa.types.is_timestamp(kind):
        return [value.astimezone(UTC) if isinstance(value, datetime) else value for value in values]
    return values


def with_html(frame: DataFrame, html: str) -> DataFrame:
    """The same DataFrame, which notebooks show by this HTML."""
    setattr(frame, "_repr_html_", lambda: html)  # noqa: B010 - PySpark's own is a method
    return frame
