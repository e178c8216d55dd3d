"""Makes DataFrames over files that the catalog chooses while Spark plans."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, LongType, StringType, StructType, TimestampType

from penstock.spark.executor_classes import add_to_executors
from penstock.spark.java_classes import java_class
from penstock.spark.jvm import frames, new_object
from penstock.spark.stores import KNOWN_FILES, hadoop_settings
from penstock.storage.azure import hadoop_path
from penstock.storage.filesystems import file_size
from penstock.storage.paths import to_uri
from penstock.storage.stores import store_kind

# Spark's reader fills a column of this name with the row's number in its file. `_metadata.row_index` is the same number
# inside a struct, which costs an object a row.
ROW_INDEX = "_tmp_metadata_row_index"
_TASK_BYTES = 128 * 2**20  # as Spark's spark.sql.files.maxPartitionBytes
_RECORD, _FIELD, _NULL = "\x1e", "\x1f", "\x00"
# A backslash, and the character moved by 64, for what has a meaning in records: see CatalogFileIndex.
_ESCAPES = {ord(special): "\\" + chr(ord(special) + 64) for special in (_RECORD, _FIELD, _NULL, "\\")}
_PARQUET_OPTIONS = {
    # Proleptic dates as they stand in the files: nothing but Spark 2 ever wrote them otherwise.
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    # Here and not in a session: the query may be run by one that has other settings.
    "spark.sql.parquet.fieldId.read.enabled": "true",
}
# To dictionaries and Bloom filters -0.0 and 0.0 are two values: Spark would lose rows of `x = 0` by them.
_WITHOUT_DICTIONARIES = {"parquet.filter.dictionary.enabled": "false", "parquet.filter.bloom.enabled": "false"}
_COMPLETE = {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"}
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
    floating = any(kind in schema.simpleString() for kind in ("float", "double"))
    settings = hadoop_settings(spark)
    options = (
        _PARQUET_OPTIONS | (_WITHOUT_DICTIONARIES if floating else {}) | (_COMPLETE if complete else {}) | settings
    )
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


def file_records(files: Iterable[tuple[str, int, Sequence[object]]]) -> str:
    """Encode files as the index reads them: (path, size, constants). Of a file whose size is 0 it is asked for.

    After the constants may stand what `deletes_text` gives.

    Spark shares a file out among tasks by its size, and reads nothing of what would lie behind it.
    """
    return _RECORD.join(
        _FIELD.join(
            (
                file_uri(path),
                str(known_size(path, size)),
                *(_NULL if value is None else _escaped(value) for value in constants),
            )
        )
        for path, size, constants in files
    )


def known_values(values: Iterable[str | None]) -> str:
    """Encode what is known of aggregates, as the index reads it."""
    return _FIELD.join(_NULL if value is None else value for value in values)


def file_uri(path: str) -> str:
    """The address of a file as Hadoop wants it."""
    return to_uri(hadoop_path(path) if store_kind(path) == "azure" else path)


def known_size(path: str, size: int) -> int:
    """The size of a file, which is asked for where it is 0."""
    if size > 0:
        return size
    try:
        return file_size(path)
    except FileNotFoundError:
        return 1  # for Spark's reader to say so, or to ignore it as its user wants


def _escaped(value: object) -> str:
    return value.translate(_ESCAPES) if isinstance(value, str) else str(value)
