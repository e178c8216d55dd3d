"""Writes constants of a bound plan as Spark SQL, and lets DuckDB compute what is made of constants alone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from penstock.sql.duckdb_dialect.bound_types import BoundType, Node, UntranslatableError, bound_type
from penstock.storage.duckdb_sql import text_literal

Calculate = Callable[[str], Any]  # the value of an expression of DuckDB's

_EPOCH = datetime(1970, 1, 1)
# Functions that give the same for the same constants, and that Spark need not know.
_FOLDED = (
    "to_years", "to_months", "to_days", "to_weeks", "to_hours", "to_minutes", "to_seconds", "to_milliseconds",
    "to_microseconds", "trunc", "make_date", "make_timestamp", "+", "-", "*",
)  # fmt: skip
# How DuckDB tells the value of a constant in terms that Python reads exactly; {0} is the constant.
_TOLD = {
    **dict.fromkeys(("int", "unsigned", "huge", "decimal", "uuid"), "CAST({0} AS VARCHAR)"),
    "bool": "{0}",
    "float": "CAST({0} AS DOUBLE)",
    "double": "{0}",
    "text": "CAST({0} AS VARCHAR)",
    "blob": "hex({0})",
    "date": "CASE WHEN isfinite({0}) THEN {0} - DATE '1970-01-01' END",
    "timestamp": "CASE WHEN isfinite({0}) THEN epoch_us({0}) END",
    "timestamptz": "CASE WHEN isfinite({0}) THEN epoch_us({0}) END",
    "time": "CAST({0} AS VARCHAR)",
    "interval": (
        "[12 * datepart('year', {0}) + datepart('month', {0}), datepart('day', {0}),"
        " (datepart('hour', {0}) * 3600 + datepart('minute', {0}) * 60) * 1000000 + datepart('microsecond', {0})]"
    ),
}


def literal(node: Node) -> str:
    """The text of a constant that the plan has as a value."""
    value, kind = node["value"], bound_type(node["value"]["type"])
    if value["is_null"]:
        return null(kind)
    told = _number_or_other(value["value"])
    match kind.family:
        case "list":
            items = (literal({"value": item}) for item in told["children"])
            return f"CAST(array({', '.join(items)}) AS {kind.spark})"
        case "decimal":
            return typed(_decimal_digits(told, kind.scale), kind)
        case "bool" | "int" | "unsigned" | "huge" | "float" | "double" | "text":
            return typed(told, kind)
    raise UntranslatableError(f"a constant of the type {kind.duckdb}")


def null(kind: BoundType) -> str:
    """A NULL of a type."""
    return f"CAST(NULL AS {kind.spark})"


def folded(node: Node, calculate: Calculate) -> str | None:
    """What DuckDB computes of constants alone, as Spark's text; None where it is not so, or DuckDB cannot."""
    kind = bound_type(node["return_type"])
    sql = _duckdb_text(node)
    if sql is None or kind.family not in _TOLD:
        return None
    told = calculate(f"SELECT {sql} IS NULL, {_TOLD[kind.family].format(f'({sql})')}")
    if told is None:
        return None
    is_null, value = told
    if is_null:
        return null(kind)
    if value is None:
        raise UntranslatableError(f"an infinite {kind.duckdb}")
    return typed(value, kind)


def _duckdb_text(node: Node) -> str | None:
    """The SQL of an expression of constants, for DuckDB; None for any other."""
    match node["expression_class"]:
        case "BOUND_CONSTANT":
            return _duckdb_constant(node["value"])
        case "BOUND_CAST":
            child = _duckdb_text(node["child"])
            word = "TRY_CAST" if node["try_cast"] else "CAST"
            return None if child is None else f"{word}({child} AS {bound_type(node['return_type']).duckdb})"
        case "BOUND_FUNCTION" if node["name"] in _FOLDED:
            texts = [_duckdb_text(child) for child in node["children"]]
            if None in texts:
                return None
            if node["name"] in "+-*":
                return f"({texts[0]} {node['name']} {texts[1]})" if len(texts) == 2 else f"({node['name']} {texts[0]})"
            return f"{node['name']}({', '.join(map(str, texts))})"
    return None


def _duckdb_constant(value: Node) -> str | None:
    kind = bound_type(value["type"])
    if value["is_null"]:
        return f"CAST(NULL AS {kind.duckdb})" if kind.id != "NULL" else "NULL"
    told = _number_or_other(value["value"])
    match kind.family:
        case "decimal":
            told = _decimal_digits(told, kind.scale)
        case "bool" | "int" | "unsigned" | "huge" | "float" | "double" | "text":
            pass
        case _:
            return None
    return f"CAST({text_literal(str(told))} AS {kind.duckdb})"


def typed(value: Any, kind: BoundType) -> str:
    """A value, as `_TOLD` tells it, as Spark's text of the right type."""
    match kind.family:
        case "bool":
            return str(bool(value)).upper()
        case "text" | "uuid":
            return text(str(value))
        case "blob":
            return f"X'{value}'"
        case "date":
            return f"DATE'{_moment(86_400_000_000 * value).date()}'"
        case "timestamp":
            return f"TIMESTAMP_NTZ'{_moment(value)}'"
        case "timestamptz":
            return f"timestamp_micros({value}L)"
        case "time":
            return f"TIME'{value}'"
        case "interval":
            months, days, microseconds = value
            return interval(f"{months}", f"{days}", f"{microseconds}")
        case "float" | "double":
            name = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(str(float(value)), repr(float(value)))
            return f"CAST('{name}' AS {kind.spark})"
    return f"CAST('{value}' AS {kind.spark})"


def text(value: str) -> str:
    """A text, whatever it holds, in words that mean the same under all settings of a session."""
    if value.isprintable() and not set(value) & set("\\'$"):
        return f"'{value}'"
    return f"decode(X'{value.encode().hex()}', 'UTF-8')"


def interval(months: str, days: str, microseconds: str) -> str:
    """An interval of its three parts."""
    return (
        f"named_struct('months', CAST({months} AS INT), 'days', CAST({days} AS INT),"
        f" 'microseconds', CAST({microseconds} AS BIGINT))"
    )


def constant_text(node: Node) -> str | None:
    """The text that an argument is, if it is a constant one."""
    while node["expression_class"] == "BOUND_CAST" and bound_type(node["return_type"]).id == "VARCHAR":
        node = node["child"]
    if node["expression_class"] != "BOUND_CONSTANT" or node["value"]["is_null"]:
        return None
    return node["value"]["value"] if node["value"]["type"]["id"] == "VARCHAR" else None


def constant_number(node: Node) -> float | int | None:
    """The number that an argument is, if it is a constant integer or DOUBLE, as such or in a wider type."""
    while node["expression_class"] == "BOUND_CAST" and not node["try_cast"]:
        node = node["child"]
    if node["expression_class"] != "BOUND_CONSTANT" or node["value"]["is_null"]:
        return None
    known = bound_type(node["value"]["type"]).family in ("int", "double")
    value: float | int = node["value"]["value"]
    return value if known else None


def _number_or_other(value: Any) -> Any:
    """A value of a plan, which has 128 bits in two halves."""
    is_halves = isinstance(value, dict) and "upper" in value
    return value["upper"] * 2**64 + value["lower"] if is_halves else value


def _decimal_digits(value: int, scale: int) -> str:
    digits = str(abs(value)).rjust(scale + 1, "0")
    whole, fraction = (digits[:-scale], digits[-scale:]) if scale else (digits, "")
    return f"{'-' if value < 0 else ''}{whole}{'.' if fraction else ''}{fraction}"


def _moment(microseconds: int) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        raise UntranslatableError("a time outside the years 1 to 9999") from None
