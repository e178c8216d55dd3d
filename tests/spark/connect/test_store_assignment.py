"""Which types Spark's INSERT stores under which: told without its JVM, as the JVM tells it."""

from __future__ import annotations

from itertools import product

from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812

from penstock.spark.connect.store_assignment import may_store
from penstock.spark.java_classes import java_class

PLAIN = [
    T.NullType(), T.BooleanType(), T.ByteType(), T.ShortType(), T.IntegerType(), T.LongType(), T.FloatType(),
    T.DoubleType(), T.DecimalType(4, 1), T.DecimalType(38, 0), T.StringType(), T.BinaryType(), T.DateType(),
    T.TimestampType(), T.TimestampNTZType(), T.TimeType(6), T.TimeType(0), T.DayTimeIntervalType(),
    T.YearMonthIntervalType(), T.CalendarIntervalType(), T.VariantType(), T.GeometryType(0), T.GeographyType(4326),
]  # fmt: skip
NESTED = [
    *(T.ArrayType(item, nulls) for item in (T.IntegerType(), T.StringType()) for nulls in (True, False)),
    *(T.MapType(T.StringType(), item, nulls) for item in (T.LongType(), T.DateType()) for nulls in (True, False)),
    T.MapType(T.BooleanType(), T.LongType()),
    T.StructType(),
    *(T.StructType([T.StructField(name, T.IntegerType(), nulls)]) for name in ("a", "b") for nulls in (True, False)),
    T.StructType([T.StructField("a", T.ArrayType(T.StringType()))]),
    T.StructType([T.StructField("a", T.IntegerType()), T.StructField("b", T.DateType())]),
]


def test_as_spark(spark: SparkSession) -> None:
    kinds = [*PLAIN, *NESTED]
    types = java_class(spark, "org.apache.spark.sql.types.DataType")
    rule = java_class(spark, "org.apache.spark.sql.catalyst.expressions.Cast").canANSIStoreAssign
    known = [types.fromJson(kind.json()) for kind in kinds]
    wrong = [
        (source.simpleString(), target.simpleString())
        for (source, one), (target, other) in product(zip(kinds, known, strict=True), repeat=2)
        if may_store(source, target) is not bool(rule(one, other))
    ]
    assert not wrong
