"""Writes values as the texts that the catalog keeps of them in statistics, letter by letter as DuckDB prints them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from uuid import UUID

import numpy as np

from penstock.partitioning.texts import infinity_text, is_infinite
from penstock.predicates.calendar import date_text, time_text, timestamp_text
from penstock.schema.types import Order, Type

Value = bool | int | float | bytes
_CUT = 256
# A maximum is cut after its last byte that can be raised by one: in a text only ASCII ones can.
_HIGHEST_BYTE = {Order.TEXT: 0x7F, Order.BYTES: 0xFF}
_SECONDS = {"timestamp_ms": 1_000, "timestamp_ns": 1_000_000_000}
_BOX = tuple(f"{axis}{end}" for axis in "xyzm" for end in ("min", "max"))
_EXACT = Context(prec=400)
_SHAPES = (
    "point",
    "linestring",
    "polygon",
    "multipoint",
    "multilinestring",
    "multipolygon",
    "geometrycollection",
)
_DIMENSIONS = ("", "_z", "_m", "_zm")


def bound_texts(kind: Type, minimum: Value, maximum: Value) -> tuple[str | None, str | None]:
    """The texts of the least and the greatest value; both None where a long greatest one has no short upper bound."""
    if kind.name != "uuid" and isinstance(minimum, bytes) and isinstance(maximum, bytes):
        greatest = _cut_maximum(maximum, _HIGHEST_BYTE[kind.order])
        if greatest is None:
            return None, None
        return _text(kind, _cut_minimum(minimum, kind.order)), _text(kind, greatest)
    return _text(kind, minimum), _text(kind, maximum)


def _cut_minimum(value: bytes, order: Order) -> bytes:
    cut = value[:_CUT]
    if order is Order.TEXT and len(value) > _CUT:
        return cut.decode(errors="ignore").encode()
    return cut


def _cut_maximum(value: bytes, highest: int) -> bytes | None:
    if len(value) <= _CUT:
        return value
    cut = bytearray(value[:_CUT])
    while cut and cut[-1] >= highest:
        cut.pop()
    if not cut:
        return None
    cut[-1] += 1
    return bytes(cut)


def _text(kind: Type, value: Value) -> str:
    if isinstance(value, bytes):
        if kind.name == "uuid":
            return str(UUID(bytes=value))
        return value.decode() if kind.order is Order.TEXT else value.hex().upper()
    match kind.order:
        case Order.FLOAT:
            # The fewest digits that tell a float apart, printed as those of a double are.
            return repr(float(str(np.float32(value)))) if kind.name == "float32" else repr(float(value))
        case Order.DECIMAL:
            return _decimal(int(value), kind.scale)
        case Order.DATE | Order.TIMESTAMP if is_infinite(value, kind):
            return infinity_text(int(value))
        case Order.DATE:
            return date_text(int(value))
        case Order.TIME:
            return time_text(int(value))
        case Order.TIMESTAMP:
            zone = "+00" if kind.name == "timestamptz" else ""
            return timestamp_text(int(value), _SECONDS.get(kind.name, 1_000_000)) + zone
        case _:
            return str(int(value))


def _decimal(unscaled: int, scale: int) -> str:
    digits = str(abs(unscaled)).zfill(scale + 1)
    sign = "-" if unscaled < 0 else ""
    return sign + (f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits)


def geometry_extra(box: Mapping[str, float], types: Iterable[str]) -> str:
    """A bounding box with the six decimals that DuckDB keeps, rounded outwards: it never cuts off a shape."""
    sides = ", ".join(f'"{name}": {_side(name, box.get(name))}' for name in _BOX)
    return f'{{"bbox": {{{sides}}}, "types": {json.dumps(sorted(types))}}}'


def _side(name: str, value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return "null"
    rounding = ROUND_FLOOR if name.endswith("min") else ROUND_CEILING
    return format(Decimal(value).quantize(Decimal("0.000001"), rounding, _EXACT), "f")


def shape_name(code: int) -> str:
    """DuckDB's name of a WKB code: 1 is a point, 1002 a linestring with Z."""
    dimension, shape = divmod(code, 1000)
    return _SHAPES[shape - 1] + _DIMENSIONS[dimension]
