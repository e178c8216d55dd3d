"""The columns that a merge matches by, and what their values in the source say about the rows of the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.classic.column import Column as ClassicColumn

from penstock.spark.jvm import catalyst_column, query_execution

_MOST_VALUES = 64  # that are listed one by one


@dataclass(frozen=True)
class JoinKey:
    """Expressions over the target and the source that are equal where rows match."""

    target: SparkColumn
    source: SparkColumn
    text: str  # of the target's


def join_keys(joined: DataFrame) -> list[JoinKey]:
    """The equalities that a join of target and source is made by; there may be none."""
    spark = joined.sparkSession
    jvm: Any = spark._jvm
    extractor = jvm.org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
    found = extractor.unapply(query_execution(joined).analyzed())
    if found.isEmpty():
        return []
    target, source = found.get()._2(), found.get()._3()
    return [
        JoinKey(
            catalyst_column(spark, target.apply(i)), catalyst_column(spark, source.apply(i)), str(target.apply(i).sql())
        )
        for i in range(target.size())
    ]


def can_match(source: DataFrame, keys: Sequence[JoinKey]) -> SparkColumn | None:
    """A predicate on the target that is true for every row that some row of the source can match."""
    predicates = [_possible(source, key) for key in keys]
    return reduce(SparkColumn.__and__, predicates) if predicates else None


def _possible(source: DataFrame, key: JoinKey) -> SparkColumn:
    values = source.select(key.source.alias("k")).where("k IS NOT NULL")
    few = _rows(values.distinct().limit(_MOST_VALUES + 1))
    if not few:
        return F.lit(False)
    kind = values.schema[0].dataType
    if len(few) <= _MOST_VALUES:
        return key.target.isin(*(_literal(source.sparkSession, row.get(0), kind) for row in few))
    [bounds] = _rows(values.agg(F.min("k"), F.max("k")))
    least, greatest = (_literal(source.sparkSession, bounds.get(i), kind) for i in (0, 1))
    return key.target.between(least, greatest)


def repeated(source: DataFrame, keys: Sequence[JoinKey]) -> DataFrame | None:
    """The source's rows whose keys are not theirs alone; None where there are none. Without keys, all rows."""
    if not keys:
        return source
    names = [f"_penstock_key{i}" for i in range(len(keys))]
    keyed = [key.source.alias(name) for key, name in zip(keys, names, strict=True)]
    several = source.select(*keyed).groupBy(*names).count().where("count > 1").drop("count")
    if several.isEmpty():
        return None
    same = [key.source == F.col(name) for key, name in zip(keys, names, strict=True)]
    return source.join(F.broadcast(several), reduce(SparkColumn.__and__, same), "left_semi")


def _literal(spark: SparkSession, value: Any, kind: T.DataType) -> SparkColumn:
    """A value as Java has it, without a detour by Python's dates and time zones."""
    jvm: Any = spark._jvm
    return ClassicColumn(jvm.org.apache.spark.sql.functions.lit(value)).cast(kind)


def _rows(frame: DataFrame) -> list[Any]:
    jframe: Any = frame._jdf
    return list(jframe.collect())
