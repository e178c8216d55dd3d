"""Makes DataFrames over files that the catalog chooses while Spark plans."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, LongType, StringType, StructType, TimestampType

from penstock.spark.connect import file_lists
from penstock.spark.connect.sessions import is_connect
from penstock.spark.executor_classes import add_to_executors
from penstock.spark.java_classes import java_class
from penstock.spark.jvm import frames, new_object
from penstock.spark.parquet_options import ROW_INDEX, parquet_options
from penstock.spark.stores import KNOWN_FILES, hadoop_settings

_TASK_BYTES = 128 * 2**20  # as Spark's spark.sql.files.maxPartitionBytes
_BINARY_FILE = (
    StructType()
    .add("path", StringType(), False)
    .add("modificationTime", TimestampType(), False)
    .add("length", LongType(), False)
    .add("content", BinaryType(), True)
)
_SOURCES = "org.apache.spark.sql.execution.datasources"
_readers: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()  # by JVM; they hold nothing of a query


def parquet_rows(
    spark: SparkSession, index: Any, schema: StructType, *, with_deletes: bool = False, complete: bool = False
) -> DataFrame:
    """Spark's own vectorised Parquet scan of an index's files; each brings its values of the constant columns.

    Args:
        spark: The session.
        index: Lists the files.
        schema: What is read of them; ROW_INDEX too where the files have lost rows.
        with_deletes: Whether the index says of each file which rows it has lost (`deletes_text`), for them to be left
            out.
        complete: Whether a file that is gone is an error even to a user who has Spark ignore such.

    Returns:
        The rows.
    """
    settings = hadoop_settings(spark)
    options = parquet_options(schema, complete=complete) | settings
    if is_connect(spark):
        return file_lists.parquet_rows(spark, index, schema, options)
    reader = _parquet(spark, known=bool(settings) or ROW_INDEX in schema.names, with_deletes=with_deletes)
    frame = _frame(spark, index, schema, reader, options)
    return frame.where(f"{ROW_INDEX} >= 0") if with_deletes else frame  # see RowsLeft


def _parquet(spark: SparkSession, *, known: bool, with_deletes: bool) -> Any:
    """None for Spark's Parquet reader; if `known`, one that asks for no sizes that are known, and numbers rows fast."""
    if not known and not with_deletes:
        return None
    add_to_executors(spark, *KNOWN_FILES)
    name = "penstock.ParquetWithDeletes" if with_deletes else "penstock.KnownParquet"
    readers = _readers.setdefault(spark.sparkContext._gateway, {})
    if name not in readers:
        readers[name] = new_object(spark, name, KNOWN_FILES)
    return readers[name]


def file_rows(spark: SparkSession, index: Any, size: int | None = None) -> DataFrame:
    """One row for each of an index's files: its constants. The files are left to Python to read.

    With the size of all of them, they go to as few tasks as there are cores, or more for many bytes. Spark would count
    each file as 4 MB at least, and a task in Python takes longer to begin than a small file to read.
    """
    if is_connect(spark):
        return file_lists.file_rows(spark, index, max(1, -(-(size or 0) // _TASK_BYTES)))
    binary = java_class(spark, f"{_SOURCES}.binaryfile.BinaryFileFormat")()
    frame = _frame(spark, index.readInPython(), _BINARY_FILE, binary, {})
    rows = frame.drop(*_BINARY_FILE.names)
    if size is None:
        return rows
    return rows.coalesce(max(spark.sparkContext.defaultParallelism, -(-size // _TASK_BYTES)))


def _frame(
    spark: SparkSession, index: Any, schema: StructType, file_format: Any, options: Mapping[str, str]
) -> DataFrame:
    session: Any = spark._jsparkSession
    return DataFrame(frames(spark).rows(session, index, schema.json(), file_format, json.dumps(options)), spark)
