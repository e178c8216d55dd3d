"""Finds the type that a lake keeps a DuckDB column in: the column's own, or the first that holds all of its values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from duckdb.sqltypes import DuckDBPyType

from penstock.schema.columns import Column
from penstock.schema.types import Type, parse_type
from penstock.storage.duckdb_sql import DUCKDB_TYPES, duckdb_quoted, duckdb_type, ducklake_type, rebuilt

Holds = Callable[[str], bool]  # whether a condition, SQL, holds for all rows of the table

_AS_TEXT = ("enum", "union", "bit")
_BEYOND = {"bignum": "BIGNUM", "time_ns": "TIME_NS"}  # DuckDB's types that DuckLake has no name for
_NAMES = {**DUCKDB_TYPES, **_BEYOND}


@dataclass(frozen=True)
class _Way:
    """A type that values may be kept in: SQL that makes them, and SQL of what is true for those that stay the same."""

    type: Type
    value: str = "{0}"
    fits: str | None = None
    why: str = ""  # what the types before it would do to the values


_VARCHAR = Type("varchar")
_TEXT = "CAST({0} AS VARCHAR)"
_DIGITS = Type("decimal", 38, 0)
_ROUNDED = "Parquet files keep it as DOUBLE, which would round some of the values"
_MANY_DIGITS = "some of the values have more than 38 digits"


def _wide(name: str) -> tuple[_Way, ...]:
    kind = DUCKDB_TYPES[name]
    fits = "TRY_CAST({0} AS DECIMAL(38,0)) IS NOT NULL"
    return (
        _Way(Type(name), fits=f"TRY_CAST(CAST({{0}} AS DOUBLE) AS {kind}) IS NOT DISTINCT FROM {{0}}"),
        _Way(_DIGITS, "CAST({0} AS DECIMAL(38,0))", fits, _ROUNDED),
        _Way(_VARCHAR, _TEXT, why=_MANY_DIGITS),
    )


def _parsed(type: Type, why: str) -> _Way:
    kind = duckdb_type(Column(0, "", type, 0))
    return _Way(type, f"CAST({_TEXT} AS {kind})", f"TRY_CAST({_TEXT} AS {kind}) IS NOT NULL", why)


# The ways to keep values of a type, the best one first; the last one takes them all.
_WAYS = {
    "int128": _wide("int128"),
    "uint128": _wide("uint128"),
    "bignum": (
        _parsed(Type("int32"), "DuckLake has no such type"),
        _parsed(Type("int64"), "DuckLake has no such type, and INTEGER does not hold all of the values"),
        _parsed(_DIGITS, "DuckLake has no such type, and BIGINT does not hold all of the values"),
        _Way(_VARCHAR, _TEXT, why=f"DuckLake has no such type, and {_MANY_DIGITS}"),
    ),
    "time_ns": (
        _Way(
            Type("time"),
            "CAST({0} AS TIME)",
            f"{_TEXT} = CAST(CAST({{0}} AS TIME) AS VARCHAR) AND {_TEXT} < '24'",
            "DuckLake has no such type",
        ),
        _Way(_VARCHAR, _TEXT, why="DuckLake has no such type, and TIME does not hold all of the values"),
    ),
    "timetz": (
        _Way(Type("timetz"), fits="date_part('timezone', {0}) = 0 AND CAST({0} AS VARCHAR) < '24'"),
        _Way(_VARCHAR, _TEXT, why="Parquet files would lose offsets from UTC, and 24:00:00, which some values have"),
    ),
    "timestamp_s": (
        _Way(Type("timestamp_s"), fits="isfinite({0})"),
        _Way(Type("timestamp"), "CAST({0} AS TIMESTAMP)", why="DuckDB writes no infinite TIMESTAMP_S to Parquet files"),
    ),
    "time": (
        _Way(Type("time"), fits="{0} < TIME '24:00:00'"),
        _Way(_VARCHAR, _TEXT, why="Spark has no TIME 24:00:00"),
    ),
    "interval": (
        _Way(
            Type("interval"),
            fits=" AND ".join(f"datepart('{part}', {{0}}) >= 0" for part in ("year", "month", "day", "hour", "minute"))
            + " AND datepart('microsecond', {0}) >= 0 AND datepart('microsecond', {0}) % 1000 = 0"
            " AND datepart('hour', {0}) < 1193",  # 32 bits of milliseconds
        ),
        _Way(
            _VARCHAR,
            _TEXT,
            why="Parquet files keep neither negative intervals nor microseconds, nor more than 1192 hours in one",
        ),
    ),
}  # fmt: skip
_AS_JSON = "CASE WHEN {0} IS NOT NULL THEN CAST({0} AS JSON) END"  # a NULL would become the text null
_NESTED_VARIANT = _Way(Type("json"), _AS_JSON, why="DuckDB writes no VARIANT inside of other types")


@dataclass(frozen=True)
class KeptColumn:
    """A column of a lake that keeps a DuckDB column: SQL of its values, and what is not as it was."""

    column: Column
    value: str
    changes: tuple[str, ...]


def kept_column(name: str, kind: DuckDBPyType, ids: Iterator[int], holds: Holds) -> KeptColumn:
    """Choose the type of a column, whose values are asked where it depends on them; `ids` count columns and fields."""
    held = _held(name, kind, ids)
    value, changes = duckdb_quoted(name), list(_changes(kind))
    if changes:
        value = f"CAST({value} AS {duckdb_type(held, _NAMES)})"
    ways = {leaf.type.name: _WAYS[leaf.type.name] for leaf in held.walk() if leaf.type.name in _WAYS}
    chosen = {type: _chosen(held, value, type, options, holds) for type, options in ways.items()}
    if held.type.nested:
        chosen["variant"] = _NESTED_VARIANT
    used = {leaf.type.name: chosen[leaf.type.name] for leaf in held.walk() if leaf.type.name in chosen}
    for type, way in used.items():
        if way.type.name != type:
            changes.append(f"{_NAMES[type]} -> {duckdb_type(Column(0, '', way.type, 0))}: {way.why}")
    kept = _value(held, value, {type: way.value for type, way in used.items()})
    return KeptColumn(_with_types(held, {type: way.type for type, way in used.items()}), kept, tuple(changes))


def _held(name: str, kind: DuckDBPyType, ids: Iterator[int]) -> Column:
    """The column with what DuckLake never has as what it always becomes: texts and lists."""
    number = next(ids)
    if kind.id in _AS_TEXT:
        return Column(number, name, _VARCHAR, 0)
    match kind.id:
        case "list" | "array":
            [(_, child)] = _parts(kind)
            return Column(number, name, Type("list"), 0, children=(_held("element", child, ids),))
        case "struct" | "map":
            children = tuple(_held(part, child, ids) for part, child in _parts(kind))
            return Column(number, name, Type(kind.id), 0, children=children)
        case "geometry":
            return Column(number, name, Type("geometry"), 0)
        case "decimal":
            return Column(number, name, parse_type(str(kind)), 0)
    type = ducklake_type(str(kind))
    return Column(number, name, Type(type) if type in _BEYOND else parse_type(type), 0)


def _changes(kind: DuckDBPyType) -> Iterator[str]:
    """What every value of a type becomes, at any depth."""
    text = str(kind)
    if kind.id in _AS_TEXT:
        yield f"{text} -> VARCHAR: DuckLake has no {kind.id.upper()}"
        return
    if kind.id == "array":
        yield f"{text} -> {text[: text.rindex('[')]}[]: DuckLake has no lists of a fixed size"
    if kind.id == "geometry" and text != "GEOMETRY":
        yield f"{text} -> GEOMETRY: DuckLake keeps no coordinate system with a type"
    for _, child in _parts(kind):
        yield from _changes(child)


def _parts(kind: DuckDBPyType) -> list[tuple[str, DuckDBPyType]]:
    """What a type is made of, without the length of an array."""
    children = kind.children if kind.id in ("list", "array", "struct", "map") else ()
    return [(name, child) for name, child in children if isinstance(child, DuckDBPyType)]


def _chosen(held: Column, value: str, type: str, ways: tuple[_Way, ...], holds: Holds) -> _Way:
    """The first way that all values of a type inside a column take without a change."""
    for way in ways[:-1]:
        same = _value(held, value, {type: f"CASE WHEN {way.fits} THEN {{0}} END"})
        if holds(f"({same}) IS NOT DISTINCT FROM ({value})"):
            return way
    return ways[-1]


def _value(column: Column, value: str, values: dict[str, str]) -> str:
    """SQL of a value with the leaves of some types as other SQL says."""
    if not any(item.type.name in values for item in column.walk()):
        return value
    if column.type.nested:
        return rebuilt(column, value, lambda child, item: _value(child, item, values))
    return values[column.type.name].format(value)


def _with_types(column: Column, types: dict[str, Type]) -> Column:
    children = tuple(_with_types(child, types) for child in column.children)
    return replace(column, type=types.get(column.type.name, column.type), children=children)
