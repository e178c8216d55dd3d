"""One canonical Python form for a value, whether DuckDB or Spark handed it over, chosen by its DuckDB type."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from duckdb.sqltypes import DuckDBPyType
from pyspark.sql import Row
from pyspark.sql.types import Geometry, VariantVal

SPARK_TYPES = {
    "boolean": "boolean", "tinyint": "tinyint", "smallint": "smallint", "integer": "int", "bigint": "bigint",
    "utinyint": "smallint", "usmallint": "int", "uinteger": "bigint", "ubigint": "decimal(20,0)",
    "hugeint": "double", "uhugeint": "double", "float": "float", "double": "double",
    "varchar": "string", "blob": "binary", "uuid": "string", "date": "date",
    "time": "time(6)", "time with time zone": "time(6)",
    "timestamp": "timestamp_ntz", "timestamp_s": "timestamp_ntz", "timestamp_ms": "timestamp_ntz",
    "timestamp_ns": "timestamp_ntz", "timestamp with time zone": "timestamp",
    "interval": "struct<months:int,days:int,microseconds:bigint>", "variant": "variant", "geometry": "geometry(0)",
}  # fmt: skip


def spark_type(kind: DuckDBPyType) -> str:
    """The Spark type that Penstock promises for a DuckDB type, as Spark's `simpleString` prints it."""
    match kind.id:
        case "list":
            return f"array<{spark_type(_child(kind))}>"
        case "struct":
            return f"struct<{','.join(f'{name}:{spark_type(child)}' for name, child in kind.children)}>"
        case "map":
            return f"map<{','.join(spark_type(child) for _, child in kind.children)}>"
        case "decimal":
            return "decimal({},{})".format(*(number for _, number in kind.children))
        case plain:
            return SPARK_TYPES[plain]


def canonical(value: Any, kind: DuckDBPyType) -> Any:
    """The value in a form that is equal for both sides exactly when DuckDB would call them the same value.

    Floats become their bytes, so that -0.0 differs from 0.0 and NaN equals itself.
    """
    if value is None:
        return None
    match kind.id:
        case "list":
            return tuple(canonical(item, _child(kind)) for item in value)
        case "struct":
            fields = zip(value.__fields__, value, strict=True) if isinstance(value, Row) else value.items()
            children = dict(kind.children)
            return tuple((name, canonical(item, children[name])) for name, item in fields)
        case "map":
            key, item = (child for _, child in kind.children)
            pairs = ((canonical(k, key), canonical(v, item)) for k, v in value.items())
            return frozenset(pairs)
        case "ubigint":
            return int(value)
        case "float":
            return _float_bytes("<f", value)
        case "double" | "hugeint" | "uhugeint":
            return _float_bytes("<d", float(value))
        case "blob" | "geometry":
            return bytes(value.getBytes() if isinstance(value, Geometry) else value)
        case "uuid":
            return str(value)
        case "time with time zone":
            return _utc_time(value)
        case "timestamp with time zone":
            return value.astimezone(UTC)
        case "interval":
            return _interval(value)
        case "variant":
            return _variant(value.toPython() if isinstance(value, VariantVal) else value)
        case _:
            return value


def _child(kind: DuckDBPyType) -> DuckDBPyType:
    [(_, child)] = kind.children
    return child


def _float_bytes(layout: str, value: float) -> str:
    return "nan" if math.isnan(value) else struct.pack(layout, value).hex()


def _utc_time(value: time) -> time:
    offset = value.utcoffset() or timedelta()
    return (datetime.combine(date(2000, 1, 2), value.replace(tzinfo=None)) - offset).time()


def _interval(value: Any) -> tuple[int, int, int]:
    """Months, days and microseconds. DuckDB's own Python value has no months: see `compare.projection`."""
    if isinstance(value, timedelta):
        return 0, value.days, value.seconds * 1_000_000 + value.microseconds
    if isinstance(value, Mapping):
        return value["months"], value["days"], value["microseconds"]
    return value.months, value.days, value.microseconds


def _variant(value: Any) -> Any:
    """A value inside a variant has no declared type: what it is, is part of what it says."""
    match value:
        case dict():
            return "object", frozenset((name, _variant(item)) for name, item in value.items())
        case list():
            return "array", tuple(map(_variant, value))
        case bool() | None:
            return type(value).__name__, value
        case float():
            return "float", _float_bytes("<d", value)
        case int() | Decimal():
            return "number", Decimal(value)
        case datetime():
            return "timestamp", value.astimezone(UTC) if value.tzinfo else value
        case UUID():
            return "uuid", str(value)
        case bytes() | bytearray():
            return "binary", bytes(value)
        case _:
            return type(value).__name__, value
