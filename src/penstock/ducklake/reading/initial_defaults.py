"""Gives the defaults of columns that were added after rows were written, as Spark values."""

from __future__ import annotations

import datetime
import decimal
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812

from penstock.ducklake.reading.time_texts import spark_date, spark_timestamp
from penstock.schema.columns import Column
from penstock.spark.projection import text_sql, type_sql
from penstock.storage.duckdb_files import duckdb_cursor
from penstock.storage.duckdb_sql import select_list

EXISTS_DEFAULT = "EXISTS_DEFAULT"
# The types whose missing columns Spark's vectorised reader fills with the default in the column's metadata.
_FILLED_BY_SPARK = (
    T.BooleanType, T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.FloatType, T.DoubleType, T.DecimalType,
    T.StringType, T.DateType, T.TimestampType, T.TimestampNTZType,
)  # fmt: skip
_LONG_DIGITS = 18  # wider decimals do not fit the long that the reader fills with


def default_value(column: Column, shown_type: T.DataType) -> str:
    """SQL of the initial default of a column or field, as a user sees it."""
    return f"CAST({default_sql(column, shown_type)} AS {type_sql(shown_type)})"


def default_sql(column: Column, shown_type: T.DataType) -> str:
    """Spark SQL of a column's initial default, in the type that users see."""
    return _literal(typed_default(column, isinstance(shown_type, T.LongType)), shown_type)


def spark_can_fill(read_type: T.DataType, shown_type: T.DataType) -> bool:
    """Whether Spark's Parquet reader can fill in a default of a column itself."""
    if isinstance(read_type, T.DecimalType) and read_type.precision > _LONG_DIGITS:
        return False
    return read_type == shown_type and isinstance(read_type, _FILLED_BY_SPARK)


@lru_cache(maxsize=1024)
def typed_default(column: Column, nanoseconds: bool) -> pa.Scalar:
    """The initial default of a column, as DuckDB reads its own text of it: so no second parser is needed.

    `nanoseconds` shows a timestamp_ns as a number. A duckdb.Error where the text is none of the type.
    """
    with duckdb_cursor() as connection:
        sql = f"SELECT {select_list([column], [], {}, nanoseconds=nanoseconds)}"
        return connection.execute(sql).to_arrow_table()["v0"][0]


def _literal(value: pa.Scalar, kind: T.DataType) -> str:
    """Spark SQL text of a value."""
    if not value.is_valid:
        return f"CAST(NULL AS {type_sql(kind)})"
    match kind:
        case T.ArrayType():
            return f"array({', '.join(_literal(item, kind.elementType) for item in value.values)})"
        case T.MapType():
            keys, items = value.values.flatten()
            pairs = [
                f"{_literal(k, kind.keyType)}, {_literal(v, kind.valueType)}" for k, v in zip(keys, items, strict=True)
            ]
            return f"map({', '.join(pairs)})"
        case T.StructType():
            fields = [f"{text_sql(f.name)}, {_literal(value[f.name], f.dataType)}" for f in kind.fields]
            return f"named_struct({', '.join(fields)})"
        case T.DateType():
            return f"DATE '{spark_date(value.value)}'"
        case T.TimestampType():
            return f"TIMESTAMP_LTZ '{spark_timestamp(value.value)}Z'"
        case T.TimestampNTZType():
            return f"TIMESTAMP_NTZ '{spark_timestamp(value.value)}'"
        case _:
            return _primitive(value.as_py(), kind)


def _primitive(value: Any, kind: T.DataType) -> str:
    match value:
        case bool():
            return str(value).lower()
        case bytes():
            return f"X'{value.hex()}'"
        case str():
            return text_sql(value)
        case datetime.time() | int() | float() | decimal.Decimal():
            return f"CAST('{value}' AS {type_sql(kind)})"
        case _:
            raise TypeError(f"no Spark literal for {value!r}")
