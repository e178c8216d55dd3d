"""Estimates how wide the rows of a DataFrame are."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812

from penstock.spark.connect.sessions import is_connect

# As Spark's `DataType.defaultSize`.
_WIDTHS: dict[type[T.DataType], int] = {
    T.BooleanType: 1, T.ByteType: 1, T.ShortType: 2, T.IntegerType: 4, T.FloatType: 4, T.DateType: 4, T.StringType: 20,
    T.BinaryType: 100, T.NullType: 1, T.DecimalType: 16, T.VariantType: 2048,
}  # fmt: skip
_USUAL = 8


def row_width(frame: DataFrame) -> int:
    """About how many bytes a row has, by its types alone."""
    if is_connect(frame):
        return _width(frame.schema)
    width: int = frame._jdf.schema().defaultSize()
    return width


def _width(kind: T.DataType) -> int:
    match kind:
        case T.StructType():
            return sum(_width(field.dataType) for field in kind.fields)
        case T.ArrayType():
            return _width(kind.elementType)
        case T.MapType():
            return _width(kind.keyType) + _width(kind.valueType)
        case _:
            return _WIDTHS.get(type(kind), _USUAL)
