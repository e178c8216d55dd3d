"""Makes DataFrames of a Spark Connect session: of rows that the client holds, and of other frames."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from penstock.errors import UnsupportedError

_PLAN_ID = "_root_plan_id"  # from Spark 4.2 on
_ESCAPED = "spark.sql.parser.escapedStringLiterals"


def arrow_frame(spark: SparkSession, rows: pa.Table, schema: T.StructType) -> DataFrame:
    """A DataFrame of rows in the Arrow types that Spark uses for a schema."""
    return spark.createDataFrame(rows, schema) if len(rows) else empty_frame(spark, schema)


def empty_frame(spark: SparkSession, schema: T.StructType) -> DataFrame:
    """A DataFrame without rows."""
    return spark.createDataFrame([], schema)


def standing_for(kept: DataFrame, source: DataFrame) -> DataFrame:
    """Rows that are kept, as those that they are of: columns of these, `source["id"]`, are found in them."""
    frames: tuple[Any, Any] = kept, source
    plan, meant = (frame._plan for frame in frames)
    setattr(plan, _PLAN_ID if hasattr(plan, _PLAN_ID) else "_plan_id", meant._plan_id)
    return kept


def check_escapes(spark: SparkSession, texts: Iterable[str]) -> None:
    """Raise an UnsupportedError where the session's parser would not read our SQL as it is meant."""
    if any("\\" in text for text in texts) and spark.conf.get(_ESCAPED, "false") == "true":
        raise UnsupportedError(f"{_ESCAPED} changes what Penstock's own SQL means; set it to false on this session")


def projected(frame: DataFrame, columns: Sequence[tuple[str, str]]) -> DataFrame:
    """A frame with columns by their names, and as SQL over its rows."""
    check_escapes(frame.sparkSession, (sql for _, sql in columns))
    return frame.select(*(F.expr(sql).alias(name) for name, sql in columns))


def qualified(frame: DataFrame, name: str, columns: Sequence[tuple[str, int]] | None = None) -> DataFrame:
    """A DataFrame by a name; if given, its columns are those at places, under other names."""
    if columns is None:
        return frame.alias(name)
    count = max(place for _, place in columns) + 1  # all of them are among these, and the server need not be asked
    numbered = frame.toDF(*(f"c{place}" for place in range(count)))
    return numbered.select(*(F.col(f"c{place}").alias(own) for own, place in columns)).alias(name)
