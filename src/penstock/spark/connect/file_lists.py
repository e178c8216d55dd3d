"""Reads files on a Spark Connect session: the catalog chooses them when a frame is made, not while Spark plans."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from urllib.parse import quote, unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from penstock.errors import UnsupportedError
from penstock.spark.connect.frames import check_escapes, empty_frame
from penstock.spark.connect.plan_texts import core_count
from penstock.spark.file_records import read_records
from penstock.spark.parquet_options import FIELD_IDS

NO_FILTERS = "[]"
_URI = "_penstock_uri"
_GLOB = re.compile(r"([{}\[\]*?\\])")
_LEGAL = "-_.!~*'(),;:$&+=/@"  # in the path of a URI, to Java
_ENCODED_SPACES = ("Cc", "Zs", "Zl", "Zp")  # categories that Java encodes; other letters it leaves as they are


@dataclass(frozen=True)
class FileList:
    """The files that a planner keeps for filters, with the constants of each: what an index is to a classic session."""

    planner: Callable[[str], str]
    constants: T.StructType
    filters: str = NO_FILTERS

    def follow(self, leader: FileList) -> FileList:
        """The files that belong to the rows of others: those that the filters of these keep."""
        return replace(self, filters=leader.filters)

    @cached_property
    def files(self) -> list[tuple[str, tuple[object, ...]]]:
        """The path of each file as Hadoop has it, and its constants."""
        kinds = [field.dataType for field in self.constants.fields]
        return [
            (_hadoop_path(uri), tuple(_value(text, kind) for text, kind in zip(texts, kinds, strict=True)))
            for uri, _, texts in read_records(self.planner(self.filters))
        ]


def parquet_rows(spark: SparkSession, files: FileList, schema: T.StructType, options: Mapping[str, str]) -> DataFrame:
    """The rows of Parquet files; each file brings its values of the constant columns."""
    paths = [path for path, _ in files.files]
    if len(files.constants):  # a file that is there twice is read once, and finds the constants of both
        paths = list(dict.fromkeys(paths))
    if not paths:
        return empty_frame(spark, T.StructType([*schema.fields, *files.constants.fields]))
    for path in paths:
        _check_listed(path)
    _read_by_field_ids(spark)
    check_escapes(spark, (str(text) for field in schema.fields for text in field.metadata.values()))  # of defaults
    reader = spark.read.options(**options).schema(schema)
    frame = reader.parquet(*(_GLOB.sub(r"\\\1", path) for path in paths))
    return _with_constants(spark, frame, schema, files) if len(files.constants) else frame


def _read_by_field_ids(spark: SparkSession) -> None:
    """Set what it takes to find columns by their ids: for the session, as its reader knows options in small letters."""
    if spark.conf.get(FIELD_IDS, None) != "true":
        spark.conf.set(FIELD_IDS, "true")


def _with_constants(spark: SparkSession, frame: DataFrame, schema: T.StructType, files: FileList) -> DataFrame:
    """Rows with the constants of their files; one of a file that is not known would be an error."""
    known = T.StructType([T.StructField(_URI, T.StringType()), *files.constants.fields])
    rows = [(_uri(path), *values) for path, values in files.files]
    joined = frame.withColumn(_URI, F.col("_metadata.file_path")).join(
        F.broadcast(spark.createDataFrame(rows, known).withColumnRenamed(_URI, f"{_URI}_known")),
        F.col(_URI) == F.col(f"{_URI}_known"),
        "left",
    )
    lost = F.raise_error(F.concat(F.lit("the catalog knows no file "), F.col(_URI)))
    constants = [
        F.when(F.col(f"{_URI}_known").isNotNull(), F.col(_quoted(field.name)))
        .otherwise(lost.cast(field.dataType))
        .alias(field.name)
        for field in files.constants.fields
    ]
    return joined.select(*(F.col(_quoted(name)) for name in schema.names), *constants)


def file_rows(spark: SparkSession, files: FileList, tasks: int) -> DataFrame:
    """One row for each file: its constants. As many tasks as there are cores, or more, share them."""
    rows = [values for _, values in files.files]
    if not rows:
        return empty_frame(spark, files.constants)
    return rows_in_tasks(spark, rows, files.constants, max(core_count(spark), tasks))


def rows_in_tasks(
    spark: SparkSession, rows: Iterable[tuple[object, ...]], schema: T.StructType | str, tasks: int
) -> DataFrame:
    """Rows that are shared out among so many tasks."""
    given = list(rows)
    return spark.createDataFrame(given, schema).repartition(max(1, min(len(given), tasks)))


def _check_listed(path: str) -> None:
    """Raise an UnsupportedError for a file that Spark passes over without a word when it is given its name."""
    name = path.rpartition("/")[2]
    if name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_"):
        raise UnsupportedError(
            f"{path} has a name that Spark's reader passes over: a Spark Connect session cannot read it; let a "
            "classic session or DuckDB rewrite the table's files, or rename the file and add it again"
        )


def _hadoop_path(uri: str) -> str:
    """A path with each letter as itself, in the spelling that `_metadata.file_path` has too."""
    path = unquote(uri)
    return f"file:/{path.removeprefix('file:').lstrip('/')}" if path.startswith("file:") else path


def _uri(path: str) -> str:
    """A path as Java writes its URI."""
    scheme, separator, rest = path.partition(":")
    return scheme + separator + "".join(map(_letter, rest))


def _letter(letter: str) -> str:
    if letter < "\x80" or unicodedata.category(letter) in _ENCODED_SPACES:
        return quote(letter, safe=_LEGAL)
    return letter


def _value(text: str | None, kind: T.DataType) -> object:
    return int(text) if text is not None and isinstance(kind, T.IntegralType) else text


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
