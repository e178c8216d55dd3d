"""Maps each column type to the Spark type that its values are shown as."""

from __future__ import annotations

from pyspark.sql import types as T  # noqa: N812

from penstock.schema.columns import Column

INTERVAL = T.StructType(
    [
        T.StructField("months", T.IntegerType()),
        T.StructField("days", T.IntegerType()),
        T.StructField("microseconds", T.LongType()),
    ]
)
UINT64 = T.DecimalType(20, 0)
FIELD_ID = "parquet.field.id"  # Spark's key, in a field's metadata

_SHOWN_AS: dict[str, T.DataType] = {
    "boolean": T.BooleanType(),
    "int8": T.ByteType(),
    "int16": T.ShortType(),
    "int32": T.IntegerType(),
    "int64": T.LongType(),
    "uint8": T.ShortType(),
    "uint16": T.IntegerType(),
    "uint32": T.LongType(),
    "uint64": UINT64,
    "int128": T.DoubleType(),
    "uint128": T.DoubleType(),
    "float32": T.FloatType(),
    "float64": T.DoubleType(),
    "time": T.TimeType(6),
    "timetz": T.TimeType(6),
    "date": T.DateType(),
    "timestamp": T.TimestampNTZType(),
    "timestamptz": T.TimestampType(),
    "timestamp_s": T.TimestampNTZType(),
    "timestamp_ms": T.TimestampNTZType(),
    "timestamp_ns": T.TimestampNTZType(),
    "interval": INTERVAL,
    "varchar": T.StringType(),
    "blob": T.BinaryType(),
    "json": T.StringType(),
    "uuid": T.StringType(),
    "variant": T.VariantType(),
    "geometry": T.GeometryType(0),
}


def shown_type(column: Column, nanoseconds: bool = False) -> T.DataType:
    """The Spark type a user sees; with `nanoseconds`, a timestamp_ns is shown as a number."""
    match column.type.name:
        case "list":
            return T.ArrayType(shown_type(column.children[0], nanoseconds))
        case "map":
            key, value = column.children
            return T.MapType(shown_type(key, nanoseconds), shown_type(value, nanoseconds))
        case "struct":
            return T.StructType(
                [T.StructField(child.name, shown_type(child, nanoseconds)) for child in column.children]
            )
        case "decimal":
            return T.DecimalType(column.type.precision, column.type.scale)
        case "timestamp_ns" if nanoseconds:
            return T.LongType()
        case name:
            return _SHOWN_AS[name]


def has_nanoseconds(column: Column) -> bool:
    """Whether Spark, whose timestamps have microseconds, shows less of a column than there is."""
    return any(item.type.name == "timestamp_ns" for item in column.walk())
