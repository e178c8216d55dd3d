"""Makes DataFrames of a Spark Connect session: of rows that the client holds, and of other frames."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from penstock.errors import UnsupportedError

_ESCAPED = "spark.sql.parser.escapedStringLiterals"


def arrow_frame(spark: SparkSession, rows: pa.Table, schema: T.StructType) -> DataFrame:
    """A DataFrame of rows in the Arrow types that Spark uses for a schema."""
    return spark.createDataFrame(rows, schema) if len(rows) else empty_frame(spark, schema)


def empty_frame(spark: SparkSession, schema: T.StructType) -> DataFrame:
    """A DataFrame without rows."""
    return spark.createDataFrame([], schema)


def projected(frame: DataFrame, columns: Sequence[tuple[str, str]]) -> DataFrame:
    """A frame with columns by their names, and as SQL over its rows."""
    texts = [sql for _, sql in columns]
    if any("\\" in text for text in texts) and frame.sparkSession.conf.get(_ESCAPED, "false") == "true":
        raise UnsupportedError(f"{_ESCAPED} changes what Penstock's own SQL means; set it to false on this session")
    return frame.select(*(F.expr(sql).alias(name) for name, sql in columns))


def qualified(frame: DataFrame, name: str, columns: Sequence[tuple[str, int]] | None = None) -> DataFrame:
    """A DataFrame by a name; if given, its columns are those at places, under other names."""
    if columns is None:
        return frame.alias(name)
    numbered = frame.toDF(*(f"c{place}" for place in range(len(frame.columns))))
    return numbered.select(*(F.col(f"c{place}").alias(own) for own, place in columns)).alias(name)
