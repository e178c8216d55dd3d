"""Enforces what a table's schema demands of new rows: no NULL where none is taken, no text that is too long."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from penstock.delta.format.schema import BOUNDED_TEXT
from penstock.errors import UnsupportedError
from penstock.spark.expressions import spark_quoted

Test = Callable[[SparkColumn], SparkColumn]
Reach = Callable[[SparkColumn, Test], SparkColumn]  # whether a member of a value passes a test

_BOUNDED = re.compile(r"(char|varchar)\((\d+)\)")


def enforced(rows: DataFrame, struct: T.StructType, table: str) -> DataFrame:
    """Returns rows with the columns of a schema, of which one that breaks its rules makes the job fail.

    As in Spark, blanks at the end may be cut to fit a `varchar` or `char`, and the latter is filled up with them. NULL
    in a column itself is for others to find.
    """
    numbered = rows.toDF(*(f"c{i}" for i in range(len(rows.columns))))
    values = [_enforced(F.col(f"c{i}"), item, table).alias(item.name) for i, item in enumerate(struct.fields)]
    return numbered.select(*values)


def satisfying(rows: DataFrame, predicate: SparkColumn, text: str) -> DataFrame:
    """Returns rows of which one that does not satisfy a predicate makes the job fail; `text` is the predicate."""
    first, *others = rows.columns
    message = f"a row of the DataFrame does not satisfy {text}, which it is to replace"
    checked = F.when(predicate, F.col(spark_quoted(first))).otherwise(failing(message, rows.schema[0].dataType))
    return rows.select(checked.alias(first), *(F.col(spark_quoted(name)) for name in others))


def failing(message: str, kind: T.DataType) -> SparkColumn:
    """Returns a value of a type whose computation makes the job fail with an InvalidError."""
    return F.raise_error(F.lit(f"penstock.errors.InvalidError: {message}")).cast(kind)


def _enforced(value: SparkColumn, item: T.StructField, table: str) -> SparkColumn:
    if BOUNDED_TEXT in item.metadata:
        value = _fitting(value, item, table)
    tests = list(_nulls(item.dataType, item.name))
    if not tests:
        return value
    path, test = tests[0]
    checked = F.when(test(value), failing(f"{table}: column {path!r} takes no NULL", item.dataType))
    for path, test in tests[1:]:
        checked = checked.when(test(value), failing(f"{table}: column {path!r} takes no NULL", item.dataType))
    return checked.otherwise(value)


def _nulls(kind: T.DataType, path: str) -> Iterator[tuple[str, Test]]:
    """Yields the places inside a type that take no NULL, each with what is true of a value that has one there."""
    match kind:
        case T.StructType():
            for item in kind.fields:
                yield from _inside(item.dataType, item.nullable, f"{path}.{item.name}", _of_field(item.name))
        case T.ArrayType():
            yield from _inside(kind.elementType, kind.containsNull, f"{path}.element", F.exists)
        case T.MapType():
            yield from _inside(kind.keyType, True, f"{path}.key", _of_members(F.map_keys))
            yield from _inside(kind.valueType, kind.valueContainsNull, f"{path}.value", _of_members(F.map_values))


def _inside(kind: T.DataType, nullable: bool, path: str, reach: Reach) -> Iterator[tuple[str, Test]]:
    """Yields the places in and under a member of a type, by the way that leads from a value to the member."""
    if not nullable:
        yield path, _reached(reach, F.isnull)
    for inner, test in _nulls(kind, path):
        yield inner, _reached(reach, test)


def _reached(reach: Reach, test: Test) -> Test:
    return lambda value: F.coalesce(reach(value, test), F.lit(False))


def _of_field(name: str) -> Reach:
    return lambda value, test: value.isNotNull() & test(value.getField(name))


def _of_members(members: Callable[[SparkColumn], SparkColumn]) -> Reach:
    return lambda value, test: F.exists(members(value), test)


def _fitting(value: SparkColumn, item: T.StructField, table: str) -> SparkColumn:
    declared = str(item.metadata[BOUNDED_TEXT])
    bounded = _BOUNDED.fullmatch(declared)
    if bounded is None:
        raise UnsupportedError(
            f"{table}: column {item.name!r} is a {declared}, whose lengths Penstock does not enforce; write with Spark"
        )
    longest = int(bounded[2])
    failure = failing(f"{table}: a value of column {item.name!r} is longer than its {declared}", item.dataType)
    cut = F.when(F.length(value) <= longest, value).when(
        F.length(F.rtrim(value)) <= longest, F.substring(value, 1, longest)
    )
    fitting = cut.when(value.isNotNull(), failure)
    return F.rpad(fitting, longest, " ") if bounded[1] == "char" else fitting
