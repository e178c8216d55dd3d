"""Defines DuckLake's types, once, for everything that maps, compares or encodes a type."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from penstock.errors import UnsupportedError


class Order(Enum):
    """How the values of a type compare, which decides how their statistics are read."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    FLOAT = "float"
    DECIMAL = "decimal"
    TEXT = "text"  # by UTF-8 bytes
    BYTES = "bytes"
    DATE = "date"  # days since 1970-01-01
    TIMESTAMP = "timestamp"  # microseconds since 1970-01-01, local or UTC
    TIME = "time"  # microseconds since midnight
    NONE = "none"  # no statistics to compare


_ORDERS = {
    "boolean": Order.BOOLEAN,
    "int8": Order.INTEGER,
    "int16": Order.INTEGER,
    "int32": Order.INTEGER,
    "int64": Order.INTEGER,
    "uint8": Order.INTEGER,
    "uint16": Order.INTEGER,
    "uint32": Order.INTEGER,
    "uint64": Order.INTEGER,
    "int128": Order.NONE,
    "uint128": Order.NONE,
    "float32": Order.FLOAT,
    "float64": Order.FLOAT,
    "time": Order.TIME,
    "timetz": Order.NONE,
    "date": Order.DATE,
    "timestamp": Order.TIMESTAMP,
    "timestamptz": Order.TIMESTAMP,
    "timestamp_s": Order.TIMESTAMP,
    "timestamp_ms": Order.TIMESTAMP,
    "timestamp_ns": Order.TIMESTAMP,
    "interval": Order.NONE,
    "varchar": Order.TEXT,
    "blob": Order.BYTES,
    "json": Order.TEXT,
    "uuid": Order.TEXT,
    "variant": Order.NONE,
    "geometry": Order.NONE,
}
NESTED = ("list", "struct", "map")
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


@dataclass(frozen=True)
class Type:
    """A DuckLake type by its name in `ducklake_column.column_type`; nested types have their children in the column."""

    name: str
    precision: int = 0
    scale: int = 0

    @property
    def nested(self) -> bool:
        """Whether values of the type are made of others: a list, a map or a struct."""
        return self.name in NESTED

    @property
    def order(self) -> Order:
        """How values of the type compare."""
        if self.name == "decimal":
            return Order.DECIMAL
        return _ORDERS.get(self.name, Order.NONE)

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})" if self.name == "decimal" else self.name


def parse_type(text: str) -> Type:
    """The type of a `column_type` text; an unknown name is an error that names it."""
    name = text.strip().lower()
    decimal = _DECIMAL.fullmatch(name)
    if decimal:
        return Type("decimal", int(decimal[1]), int(decimal[2]))
    base = name.split("(", 1)[0]
    if base == "geometry":
        return Type("geometry")
    if name in _ORDERS or name in NESTED:
        return Type(name)
    raise UnsupportedError(f"DuckLake type {text!r} is not known to this version of Penstock")
