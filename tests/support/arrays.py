"""Arrow arrays in the form in which Spark hands over the columns of each DuckLake type."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from penstock.schema.types import Order, Type

INTERVAL = pa.struct([("months", pa.int32()), ("days", pa.int32()), ("microseconds", pa.int64())])
_TYPES = {
    "boolean": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.int16(),
    "uint16": pa.int32(),
    "uint32": pa.int64(),
    "int128": pa.float64(),
    "uint128": pa.float64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "blob": pa.binary(),
}
_ZONE = "America/St_Johns"


def spark_array(type: Type, values: Sequence[Any]) -> pa.Array:
    """Stored values (or None), as they are in samples, in Spark's form."""
    match type.order:
        case Order.DATE:
            return pa.array(values, pa.int32()).view(pa.date32())
        case Order.TIMESTAMP if type.name == "timestamp_ns":
            return pa.array(values, pa.int64())
        case Order.TIMESTAMP:
            return pa.array(values, pa.int64()).view(pa.timestamp("us", _ZONE if type.name == "timestamptz" else None))
        case Order.DECIMAL:
            return pa.array(values, pa.decimal128(type.precision, type.scale))
        case Order.TEXT:
            return pa.array(values, pa.string())
    match type.name:
        case "time" | "timetz":
            return pa.array([None if one is None else one * 1000 for one in values], pa.int64()).view(pa.time64("ns"))
        case "uint64":
            return pa.array([None if one is None else Decimal(one) for one in values], pa.decimal128(20, 0))
        case "interval":
            names = [field.name for field in INTERVAL]
            return pa.array([None if one is None else dict(zip(names, one, strict=True)) for one in values], INTERVAL)
    return pa.array(values, _TYPES[type.name])
