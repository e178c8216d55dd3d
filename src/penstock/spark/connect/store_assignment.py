"""Knows which types Spark's INSERT stores under which others, by its default policy: `Cast.canANSIStoreAssign`."""

from __future__ import annotations

from pyspark.sql import types as T  # noqa: N812

_TIMES = (T.DateType, T.TimestampType, T.TimestampNTZType, T.TimeType)
# Types with one value a row; CHAR and VARCHAR are read as strings before any rule is asked.
_ATOMIC = (
    T.NumericType, T.BooleanType, T.StringType, T.BinaryType, T.DateType, T.TimestampType, T.TimestampNTZType,
    T.TimeType, T.DayTimeIntervalType, T.YearMonthIntervalType, T.VariantType, T.GeometryType, T.GeographyType,
)  # fmt: skip


def may_store(source: T.DataType, target: T.DataType) -> bool:
    """Whether values of a type may be inserted into a column of another."""
    match source, target:
        case _ if source == target:
            return True
        case T.NullType(), _:
            return True
        case T.NumericType(), T.NumericType():
            return True
        case _, T.StringType() if isinstance(source, (*_ATOMIC, T.CalendarIntervalType)):
            return True
        case T.ArrayType(), T.ArrayType():
            return _keeps_nulls(source.containsNull, target.containsNull) and may_store(
                source.elementType, target.elementType
            )
        case T.MapType(), T.MapType():
            return (
                _keeps_nulls(source.valueContainsNull, target.valueContainsNull)
                and may_store(source.keyType, target.keyType)
                and may_store(source.valueType, target.valueType)
            )
        case T.StructType(), T.StructType():
            return len(source) == len(target) and all(
                _keeps_nulls(one.nullable, other.nullable) and may_store(one.dataType, other.dataType)
                for one, other in zip(source.fields, target.fields, strict=True)
            )
        case T.TimeType(), T.TimeType():
            return source.precision <= target.precision
    return isinstance(source, _TIMES) and isinstance(target, _TIMES)


def _keeps_nulls(source: bool, target: bool) -> bool:
    return target or not source
