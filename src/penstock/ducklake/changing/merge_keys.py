"""Finds the keys that a merge matches by, and what those of the source say about the rows of the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from penstock.ducklake.changing.change_job import SOURCE_NAME
from penstock.ducklake.reading.scan_columns import ROW_ID, TARGET_NAME
from penstock.errors import InvalidError, NotFoundError
from penstock.schema.columns import Column, find_column
from penstock.spark.connect.column_trees import tree_of
from penstock.spark.connect.sessions import is_connect
from penstock.spark.expressions import spark_quoted
from penstock.spark.java_classes import java_class
from penstock.spark.jvm import STATEMENT, catalyst_column, query_execution

_MOST_VALUES = 64  # that are listed one by one
_NESTED = (T.StructType, T.ArrayType)
_TOLD = (T.IntegralType, T.StringType)
_ABOUT_FEW = 80  # Spark's estimate, which may be wrong by a few


On = str | SparkColumn | Sequence[str]


def join_condition(on: On, columns: Sequence[Column], source: DataFrame, table: str) -> SparkColumn:
    """A given condition, or equality of columns that both sides have, by their names, where NULL equals nothing.

    A single text is a name if both sides have such a column, and a condition otherwise.
    """
    if isinstance(on, SparkColumn):
        return on
    if isinstance(on, str) and _is_condition(on, columns, source):
        return F.expr(on)
    names = [on] if isinstance(on, str) else list(on or ())
    if not names or not all(isinstance(name, str) and name for name in names):
        raise InvalidError(f"the merge into {table} has nothing to match by; name a column, or give a condition")
    return reduce(SparkColumn.__and__, (_same(name, columns, source, table) for name in names))


def _is_condition(on: str, columns: Sequence[Column], source: DataFrame) -> bool:
    """Whether a text is no name: of both sides, of neither (and then a mistake), nor the row id."""
    of_target, of_source = _of_target(on, columns), _of_source(on, source)
    if not on.strip() or on.lower() == ROW_ID or (of_target and of_source):
        return False
    return bool(of_target or of_source) or not on.isidentifier()


def _same(name: str, columns: Sequence[Column], source: DataFrame, table: str) -> SparkColumn:
    target, found = _of_target(name, columns), _of_source(name, source)
    if target is None:
        known = ", ".join(column.name for column in columns)
        raise NotFoundError(
            f"the merge into {table} matches by {name!r}, which the table does not have; it has {known}"
        )
    if len(found) != 1:
        many = "two columns of that name" if found else f"only {', '.join(source.columns)}"
        raise InvalidError(f"the merge into {table} matches by {name!r}, and its source has {many}; rename one")
    return F.col(f"{TARGET_NAME}.{spark_quoted(target)}") == F.col(f"{SOURCE_NAME}.{spark_quoted(found[0])}")


def _of_target(name: str, columns: Sequence[Column]) -> str | None:
    column = find_column(columns, name)
    return column.name if column else ROW_ID if name.lower() == ROW_ID else None


def _of_source(name: str, source: DataFrame) -> list[str]:
    return [other for other in source.columns if other.lower() == name.lower()]


@dataclass(frozen=True)
class JoinKey:
    """Expressions over the target and the source that are equal where rows match."""

    target: SparkColumn
    source: SparkColumn
    text: str  # of the target's
    prunes: bool = True  # whether values of the source's say which of the target's they can equal


def join_keys(joined: DataFrame) -> list[JoinKey]:
    """The equalities that a join of target and source is made by; there may be none."""
    spark = joined.sparkSession
    extractor = java_class(spark, "org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys")
    found = extractor.unapply(query_execution(joined).analyzed())
    if found.isEmpty():
        return []
    target, source = found.get()._2(), found.get()._3()
    return [
        JoinKey(
            catalyst_column(spark, target.apply(i)),
            catalyst_column(spark, source.apply(i)),
            str(target.apply(i).sql()).replace(f"{STATEMENT}.", ""),
        )
        for i in range(target.size())
    ]


def told_join_keys(target: DataFrame, source: DataFrame, on: SparkColumn) -> list[JoinKey]:
    """The equalities of columns that a condition itself tells of, for Spark Connect; there may be none."""
    keys = []
    for part in _conjuncts(tree_of(source.sparkSession, on)):
        match part:
            case ["=", ["name", str(first), *one], ["name", str(second), *other]] if one and other:
                paths = {first.lower(): one, second.lower(): other}
                if paths.keys() == {TARGET_NAME, SOURCE_NAME}:
                    keys.append(_told_key(target, source, paths[TARGET_NAME], paths[SOURCE_NAME]))
    return keys


def _conjuncts(tree: Any) -> list[Any]:
    return [part for child in tree[1:] for part in _conjuncts(child)] if tree[0] == "and" else [tree]


def _told_key(target: DataFrame, source: DataFrame, one: Sequence[str], other: Sequence[str]) -> JoinKey:
    ours = F.col(".".join(map(spark_quoted, [TARGET_NAME, *one])))
    theirs = F.col(".".join(map(spark_quoted, [SOURCE_NAME, *other])))
    kinds = target.select(ours).schema[0].dataType, source.alias(SOURCE_NAME).select(theirs).schema[0].dataType
    # Of types that are compared as they are; and no others, as Spark may not cast for IN as it does for `=`.
    same = any(all(isinstance(kind, family) for kind in kinds) for family in _TOLD)
    return JoinKey(ours, theirs, ".".join([TARGET_NAME, *one]), same)


@dataclass(frozen=True)
class SourceSummary:
    """How many rows a source has, and a predicate on the target that is true for every row that one can match."""

    rows: int
    possible: SparkColumn | None


def source_summary(source: DataFrame, keys: Sequence[JoinKey]) -> SourceSummary:
    """Summarise a source: one look at it for all keys, and one more for a key of which it has few values.

    Structs and arrays say nothing: no statistics are kept of them.
    """
    kinds = source.select(*(key.source for key in keys)).schema.fields
    keys = [
        key for key, field in zip(keys, kinds, strict=True) if key.prunes and not isinstance(field.dataType, _NESTED)
    ]
    values = [key.source for key in keys]
    wanted = [aggregate(value) for value in values for aggregate in (F.min, F.max, F.approx_count_distinct)]
    [found] = _rows(source.agg(F.count("*"), *wanted))
    told = [[found[1 + 3 * i + j] for j in range(3)] for i in range(len(keys))]
    predicates = [_possible(source, key, *bounds) for key, bounds in zip(keys, told, strict=True)]
    return SourceSummary(found[0], reduce(SparkColumn.__and__, predicates) if predicates else None)


def _possible(source: DataFrame, key: JoinKey, least: Any, greatest: Any, about: int) -> SparkColumn:
    if least is None:  # there are only NULLs, which match nothing
        return F.lit(False)
    values = source.select(key.source.alias("k"))
    spark, kind = source.sparkSession, values.schema[0].dataType
    dense = isinstance(kind, T.IntegralType) and greatest - least < 2 * about
    if about <= _ABOUT_FEW and not dense:
        few = _rows(values.where("k IS NOT NULL").distinct().limit(_MOST_VALUES + 1))
        if len(few) <= _MOST_VALUES:
            return key.target.isin(*(_literal(spark, row[0], kind) for row in few))
    return key.target.between(_literal(spark, least, kind), _literal(spark, greatest, kind))


def rows_with_repeated_keys(source: DataFrame, keys: Sequence[JoinKey]) -> DataFrame | None:
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
    """A value as Java has it, without a detour by Python's dates and time zones; simple ones on Spark Connect."""
    if is_connect(spark):
        return F.lit(value)
    return SparkColumn(java_class(spark, "org.apache.spark.sql.functions").lit(value)).cast(kind)


def _rows(frame: DataFrame) -> list[Sequence[Any]]:
    if is_connect(frame):
        return list(frame.collect())
    jframe: Any = frame._jdf
    return [[row.get(place) for place in range(row.length())] for row in jframe.collect()]
