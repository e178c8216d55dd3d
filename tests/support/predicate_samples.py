"""Hostile values of every type that prunes: as Spark sees them, as DuckDB writes them, and as filters hold them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any

import duckdb

from penstock.predicates.calendar import DAY, days_of
from penstock.schema.types import Order, Type, parse_type

DATES = [
    0,
    -1,
    1,
    19_000,
    19_723,
    19_724,
    19_782,
    days_of(1),
    days_of(9999, 12, 31),
    days_of(10_000),
    days_of(-43, 3, 15),
    -25_567,
]
DATES += [days_of(2023, 12, 30), days_of(2024, 2, 29), days_of(0, 12, 31), 2_932_897, -719_529]
MICROS = [day * DAY + part for day in DATES for part in (0, 1, DAY - 1)] + [
    1_700_000_000_123_456,
    1_704_067_200_100_000,
]
INTEGERS = [0, 1, -1, 2, 9, 10, 11, 99, 100, -100, 127, -128]
TEXTS = [
    "",
    "a",
    "A",
    "ab",
    "b",
    "é",
    "😀",
    "\U0010ffff",
    "\ue000",
    "a b",
    "O'Neil",
    '"',
    "\\",
    "10",
    "9",
    "true",
    "nan",
]
TEXTS += ["a\0b", "\x01", "z" * 256, "z" * 257, "a%_?b", "-", "inf", "ß", "𝔘"]
REALS = [0.0, -0.0, 1.0, -1.5, 0.10000000149011612, 9.0, 99.0, 100.0, math.nan, math.inf, -math.inf]
UUIDS = [
    "00000000-0000-0000-0000-000000000000",
    "550e8400-e29b-41d4-a716-446655440000",
    "7fffffff-ffff-ffff-ffff-ffffffffffff",
    "80000000-0000-0000-0000-000000000000",
    "ffffffff-ffff-ffff-ffff-ffffffffffff",
]


def decimals(*texts: str) -> list[Decimal]:
    return [Decimal(text) for text in texts]


POOLS: dict[str, list[Any]] = {
    "boolean": [False, True],
    "int8": INTEGERS,
    "int16": [*INTEGERS, 32767, -32768],
    "int32": [*INTEGERS, 2**31 - 1, -(2**31), 2**24 + 1, 16_777_217],
    "int64": [*INTEGERS, 2**63 - 1, -(2**63), 2**53, 2**53 + 1, -(2**53) - 1, 10**15],
    "uint8": [0, 1, 9, 10, 255],
    "uint16": [0, 1, 9, 10, 65535],
    "uint32": [0, 1, 9, 10, 2**32 - 1],
    "uint64": [0, 1, 9, 10, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1, 2**53 + 1],
    "float32": [*REALS, 3.4028234663852886e38, 1.401298464324817e-45, 16777216.0, 0.30000001192092896],
    "float64": [*REALS, 0.1, 0.3, 1.7976931348623157e308, 5e-324, -1e300, 9007199254740993.0, 1e15, 1e16],
    "decimal(4,1)": decimals("0.0", "0.1", "-0.1", "1.0", "9.9", "10.0", "-999.9", "999.9", "5.0", "5.5"),
    "decimal(18,3)": decimals("0.000", "0.001", "-0.001", "5.500", "9.999", "123456789012345.678", "-5.000"),
    "decimal(20,0)": decimals("0", "1", "-1", "5", "99999999999999999999", "-99999999999999999999", "9", "10"),
    "decimal(38,10)": decimals(
        *("0.0000000000", "0.0000000001", "-0.0000000001", "5.5000000000", "-1234567890123456789012345678.0123456789"),
        *("9999999999999999999999999999.9999999999", "9999999999999999999999999999.9999999998"),
    ),
    "decimal(38,37)": decimals("1.0000000000000000000000000000000000001", "1." + "0" * 37, "-9." + "9" * 37),
    "varchar": TEXTS,
    "json": ["1", "10", "9", '"a"', "{}", "[1]", "null"],
    "uuid": UUIDS,
    "blob": [b"", b"\0", b"ab", b"AB", b"\xab", b"\xff\xff", b"a\0b", b"\xc3\x28", b"0", b"00", b"\x00\x01"],
    "date": DATES,
    "timestamp": MICROS,
    "timestamptz": MICROS,
    "timestamp_s": [micros - micros % 1_000_000 for micros in MICROS],
    "timestamp_ms": [micros - micros % 1000 for micros in MICROS],
    # In nanoseconds, from 1677 to 2262.
    "timestamp_ns": [micros * 1000 + nanos for micros in MICROS if abs(micros) < 9e15 for nanos in (0, 1, 999)],
    "time": [0, 1, DAY - 1, 3_600_000_000, 3_599_999_999, 43_200_500_000],
}


@dataclass(frozen=True)
class Sample:
    """One value of a column: as it is stored, as Spark shows it, and as DuckDB's text."""

    stored: Any
    shown: Any
    text: str


@cache
def samples(name: str) -> tuple[Sample, ...]:
    type = parse_type(name)
    with duckdb.connect() as connection:
        texts = [
            connection.execute(f"SELECT CAST({stored_sql(value, type)} AS VARCHAR)").fetchone()[0]
            for value in POOLS[name]
        ]
    suffix = "+00" if name == "timestamptz" else ""
    return tuple(
        Sample(value, value // 1000 if name == "timestamp_ns" else value, text + suffix)
        for value, text in zip(POOLS[name], texts, strict=True)
    )


def stored_sql(value: Any, type: Type) -> str:
    """A DuckDB expression of a stored value."""
    match type.order:
        case Order.DATE:
            return f"DATE '1970-01-01' + ({value})"
        case Order.TIME:
            return f"TIME '00:00:00' + to_microseconds({value})"
        case Order.TIMESTAMP if type.name == "timestamp_ns":
            return f"make_timestamp_ns({value})"
        case Order.TIMESTAMP:
            plain = "timestamp" if type.name == "timestamptz" else type.name
            return f"CAST(make_timestamp({value}) AS {plain})"
        case Order.FLOAT:
            return f"CAST('{value!r}' AS {duckdb_type(type.name)})"
        case Order.BYTES:
            return f"unhex('{value.hex()}')"
        case Order.TEXT:
            return " || chr(0) || ".join("'" + part.replace("'", "''") + "'" for part in value.split("\0"))
        case Order.BOOLEAN:
            return str(value)
    return f"CAST('{value}' AS {duckdb_type(str(type))})"


def duckdb_type(name: str) -> str:
    """A DuckLake type's name in DuckDB."""
    return DUCKDB_TYPES.get(name, name)


DUCKDB_TYPES = {
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "uint8": "UTINYINT",
    "uint16": "USMALLINT",
    "uint32": "UINTEGER",
    "uint64": "UBIGINT",
    "float32": "FLOAT",
    "float64": "DOUBLE",
}
SPARK_TYPES = {
    "boolean": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "uint8": "smallint",
    "uint16": "int",
    "uint32": "bigint",
    "uint64": "decimal(20,0)",
    "float32": "float",
    "float64": "double",
    "varchar": "string",
    "json": "string",
    "uuid": "string",
    "blob": "binary",
    "date": "date",
    "timestamptz": "timestamp",
    "time": "time(6)",
}


def spark_type(name: str) -> str:
    if name.startswith("timestamp") and name != "timestamptz":
        return "timestamp_ntz"
    return SPARK_TYPES.get(name, name)


def literal(spark: str, shown: Any) -> list[Any]:
    """A shown value (or NULL) as the filters' JSON."""
    if shown is None:
        return ["literal", spark, None]
    base = spark.split("(")[0]
    match base:
        case "decimal":
            return ["literal", spark, format(Decimal(shown), "f")]
        case "float" | "double":
            return ["literal", spark, _java(shown)]
        case "binary":
            return ["literal", spark, shown.hex()]
        case "time":
            return ["literal", spark, shown * 1000]
    return ["literal", spark, shown]


def _java(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return repr(value) if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")
