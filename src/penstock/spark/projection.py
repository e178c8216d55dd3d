"""Shows columns that are written as SQL over a frame's rows, in one call into the JVM however many there are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812

from penstock.spark.connect import frames as connect_frames
from penstock.spark.connect.sessions import is_connect
from penstock.spark.expressions import spark_quoted
from penstock.spark.jvm import frames


class SqlColumn(NamedTuple):
    """A column by its name, and as SQL over the rows below.

    The SQL is parsed as Spark's defaults are: names mean columns of these rows, letter by letter, and functions are
    Spark's own, whatever a user registered under their names.
    """

    name: str
    sql: str


def named(*names: str) -> list[SqlColumn]:
    """Columns that are shown under their own names."""
    return [SqlColumn(name, spark_quoted(name)) for name in names]


def projected(frame: DataFrame, columns: Sequence[SqlColumn]) -> DataFrame:
    """A frame with these columns alone; the frame itself where they are its own."""
    if is_connect(frame):
        return connect_frames.projected(frame, columns)
    spark = frame.sparkSession
    return DataFrame(frames(spark).projected(frame._jdf, json.dumps(columns)), spark)


def text_sql(value: str) -> str:
    """A text as a literal."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def type_sql(kind: T.DataType) -> str:
    """A type as SQL names it, whatever letters its fields have."""
    match kind:
        case T.ArrayType():
            return f"array<{type_sql(kind.elementType)}>"
        case T.MapType():
            return f"map<{type_sql(kind.keyType)}, {type_sql(kind.valueType)}>"
        case T.StructType():
            return f"struct<{', '.join(f'{spark_quoted(f.name)}: {type_sql(f.dataType)}' for f in kind.fields)}>"
        case _:
            return kind.simpleString()
