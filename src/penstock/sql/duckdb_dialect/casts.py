"""Casts as DuckDB does them: Spark cuts off where DuckDB rounds, and reads other texts as numbers and times."""

from __future__ import annotations

from penstock.spark.expressions import spark_quoted
from penstock.sql.duckdb_dialect.bound_types import RANGES, BoundType, UntranslatableError
from penstock.sql.duckdb_dialect.constants import null, text
from penstock.sql.duckdb_dialect.repeated_values import fresh_name, once

_INTEGERS = ("int", "unsigned", "huge")
_NUMBERS = (*_INTEGERS, "decimal", "float", "double")
# Texts that both read, and read alike; others are an error, or NULL for TRY_CAST where DuckDB has no reading either.
_INTEGER = r"^\s*[+-]?[0-9]+\s*$"
_DECIMAL = r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)\s*$"
_NAN = r"(?i)^\s*[+-]?nan\s*$"
_FLOATING = r"(?i)^\s*([+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf(inity)?))\s*$"
_FIRST_DIGITS = r"^\s*([+-]?[0-9]*[.]?[0-9]?)"
# Texts that DuckDB may read, and Spark does not or otherwise.
_OTHER_NUMBER = r"^\s*[+-]?(0[xXbBoO][0-9a-fA-F_]+|[0-9._]*[0-9][0-9._]*([eE][+-]?[0-9_]+)?)\s*$"
_OTHER_TIME = r"(?i)^\s*([+-]?[0-9]+[-/\\ ]+[0-9]|-?inf|epoch)"
_DATE = r"^\s*[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}\s*$"
_TIMESTAMP = r"^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([ T]([01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?)?$"
_TRUE, _FALSE = "('true', 't', '1', 'yes', 'y')", "('false', 'f', '0', 'no', 'n')"
_UUID = r"^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$"


def cast_text(value: str, source: BoundType, target: BoundType, try_cast: bool) -> str:
    """A cast of a value, as Spark's text."""
    if source.id == "NULL":
        return null(target)
    if source == target or _same(source, target):
        return value
    made = once(value, lambda one: _cast(one, source, target, try_cast))
    if made is None:
        raise UntranslatableError(f"a cast from {source.duckdb} to {target.duckdb}")
    return made


def _same(source: BoundType, target: BoundType) -> bool:
    """Whether values are the same, in the same type of Spark's."""
    if target.alias:
        return False
    return source.id == target.id == "VARCHAR" or (source.family, target.family) == ("uuid", "text")


def _cast(value: str, source: BoundType, target: BoundType, try_cast: bool) -> str | None:
    if target.alias:
        return None
    match source.family, target.family:
        case "list", "list":
            element = fresh_name()
            inner = cast_text(element, source.element, target.element, try_cast)
            return value if inner == element else f"transform({value}, {element} -> {inner})"
        case "struct", "struct":
            return _struct(value, source, target, try_cast)
        case "text", _:
            return _from_text(value, target, try_cast)
        case _, "text":
            return _to_text(value, source)
        case "bool", "int" | "huge" | "float" | "double" | "decimal":
            return _plain(value, target, try_cast)
        case (("int" | "unsigned" | "huge" | "float" | "double" | "decimal"), "bool"):
            return f"({value} <> 0)"
    if source.family in _NUMBERS and target.family in _NUMBERS:
        return _number(value, source, target, try_cast)
    return _time(value, source, target)


def _plain(value: str, target: BoundType, try_cast: bool) -> str:
    return f"{'TRY_CAST' if try_cast else 'CAST'}({value} AS {target.spark})"


def _number(value: str, source: BoundType, target: BoundType, try_cast: bool) -> str:
    if source.family == "decimal" and target.family in _INTEGERS:
        value = f"round({value}, 0)"
    if source.family in ("float", "double") and target.family in _INTEGERS:
        made = in_range(_plain(f"rint({value})", target, try_cast), target, try_cast)
        lowest = "-0.0D" if target.id in RANGES else _LOWEST.get(target.id, _EXACT_LOWEST)
        return _within(value, lowest, _HIGHEST.get(target.id, _EXACT), made, target, try_cast)
    if source.family == "float" and target.family == "decimal":
        raise UntranslatableError(f"a cast from FLOAT to {target.duckdb}")
    if source.family == "double" and target.family == "decimal":
        made = f"CAST({_scaled(value, target, try_cast)} AS {target.spark})"
        scaled = f"abs({value}) * 1e{target.scale}D"
        return _within(scaled, _EXACT_LOWEST, _EXACT, made, target, try_cast)
    if (source.family, target.family) == ("double", "float"):
        finite = f"isnan({value}) OR abs({value}) = DOUBLE('Infinity') OR abs({value}) <= 3.4028235677973366e38D"
        out = "NULL" if try_cast else raised("a value is out of range for FLOAT")
        return f"CASE WHEN {finite} OR {value} IS NULL THEN CAST({value} AS FLOAT) ELSE {out} END"
    return in_range(_plain(value, target, try_cast), target, try_cast)


# Doubles are exact so far; what lies beyond Spark would make of the digits that it prints.
_EXACT, _EXACT_LOWEST = "9007199254740992D", "-9007199254740992D"
_LOWEST = {"TINYINT": "-129D", "SMALLINT": "-32769D", "INTEGER": "-2147483649D", "BIGINT": "-9223372036854775808D"}
_HIGHEST = {
    **{"TINYINT": "128D", "SMALLINT": "32768D", "INTEGER": "2147483648D", "BIGINT": "9223372036854774784D"},
    **{"UTINYINT": "256D", "USMALLINT": "65536D", "UINTEGER": "4294967296D"},
}


def _within(value: str, lowest: str, highest: str, made: str, target: BoundType, try_cast: bool) -> str:
    """A cast of a double that lies within bounds. Beyond those of exact doubles it is an error even where tried."""
    strict = highest == _EXACT
    out = raised(f"a DOUBLE has too many digits for {target.id}") if strict else "NULL" if try_cast else made
    if try_cast and strict:
        out = f"CASE WHEN isnan({value}) OR abs({value}) = DOUBLE('Infinity') THEN NULL ELSE {out} END"
    return f"CASE WHEN {value} IS NULL THEN NULL WHEN {value} BETWEEN {lowest} AND {highest} THEN {made} ELSE {out} END"


def _scaled(value: str, target: BoundType, try_cast: bool) -> str:
    """DuckDB multiplies a double, and rounds what it gets to the digits of the decimal."""
    scaled = half_away(f"(CAST({value} AS DOUBLE) * 1e{target.scale}D)")
    digits = f"{'TRY_CAST' if try_cast else 'CAST'}({scaled} AS DECIMAL({target.width},0))"
    if not target.scale:
        return digits
    if target.width + target.scale > 37:
        raise UntranslatableError(f"a cast from DOUBLE to {target.duckdb}")
    return f"({digits} * CAST('1e-{target.scale}' AS DECIMAL({target.scale},{target.scale})))"


def half_away(value: str) -> str:
    """A double rounded to a whole number, halves away from zero."""
    return f"CASE WHEN abs({value} - rint({value})) = 0.5D THEN {value} + signum({value}) * 0.5D ELSE rint({value}) END"


def in_range(value: str, target: BoundType, try_cast: bool = False) -> str:
    """A value of a type that Spark holds in a wider one: an error where DuckDB has one, or NULL."""
    if target.id not in RANGES:
        return value
    low, high = RANGES[target.id]
    out = "NULL" if try_cast else raised(f"a value is out of range for {target.id}")
    return f"CASE WHEN {value} BETWEEN {low} AND {high} OR {value} IS NULL THEN {value} ELSE {out} END"


def raised(message: str) -> str:
    """An error when the row comes to it."""
    return f"raise_error({text(message)})"


def _struct(value: str, source: BoundType, target: BoundType, try_cast: bool) -> str | None:
    ours = {name.lower(): kind for name, kind in source.children}
    if [name.lower() for name, _ in source.children] != [name.lower() for name, _ in target.children]:
        return None
    fields = []
    for name, kind in target.children:
        inner = cast_text(f"{value}.{spark_quoted(name)}", ours[name.lower()], kind, try_cast)
        fields += [text(name), inner]
    return f"CASE WHEN {value} IS NOT NULL THEN named_struct({', '.join(fields)}) END"


def _from_text(value: str, target: BoundType, try_cast: bool) -> str | None:
    unread = "NULL" if try_cast else raised(f"a text is no {target.id}, or one that Penstock does not read")
    exotic = raised(f"a text may be a {target.id} that Penstock does not read")
    plain = _plain(f"trim({value})", target, try_cast)

    def when(pattern: str, then: str) -> str:
        return f"WHEN {value} RLIKE {text(pattern)} THEN {then}"

    null = f"WHEN {value} IS NULL THEN NULL"
    match target.family:
        case "int" | "huge" | "unsigned":
            # The first digit after the point decides.
            digits = f"regexp_extract({value}, {text(_FIRST_DIGITS)}, 1)"
            tried = f"{'TRY_CAST' if try_cast else 'CAST'}({digits} AS DECIMAL(38,1))"
            rounded = _number(tried, BoundType("DECIMAL", 38, 1), target, try_cast)
            whole = in_range(plain, target, try_cast)
            return _cases(null, when(_INTEGER, whole), when(_DECIMAL, rounded), when(_OTHER_NUMBER, exotic), unread)
        case "decimal":
            return _cases(null, when(_DECIMAL, plain), when(_OTHER_NUMBER, exotic), unread)
        case "float" | "double":
            undefined = f"CAST('NaN' AS {target.spark})"
            return _cases(null, when(_NAN, undefined), when(_FLOATING, plain), when(_OTHER_NUMBER, exotic), unread)
        case "date":
            return _cases(null, when(_DATE, plain), when(_OTHER_TIME, exotic), unread)
        case "timestamp":
            return _cases(null, when(_TIMESTAMP, plain), when(_OTHER_TIME, exotic), unread)
        case "bool":
            true, false = f"WHEN lower({value}) IN {_TRUE} THEN TRUE", f"WHEN lower({value}) IN {_FALSE} THEN FALSE"
            return _cases(null, true, false, unread)
        case "uuid":
            return _cases(null, when(_UUID, f"lower({value})"), f"WHEN length({value}) >= 32 THEN {exotic}", unread)
    return None


def _cases(*parts: str) -> str:
    *branches, last = parts
    return f"CASE {' '.join(branches)} ELSE {last} END"


def _to_text(value: str, source: BoundType) -> str | None:
    match source.family:
        case "bool" | "int" | "unsigned" | "huge":
            return f"CAST({value} AS STRING)"
        case "date" | "timestamp":
            return in_years(value, f"CAST({value} AS STRING)")
        case "decimal":
            plain = f"CAST({value} AS STRING)"
            # DuckDB leaves out the zero before the point where the type has no digit there.
            return plain if source.width > source.scale else f"regexp_replace({plain}, '^(-?)0[.]', '$1.')"
    return None


def in_years(value: str, made: str) -> str:
    """What is made of a date or time in the years 1 to 9999; the others, and infinite ones, Spark writes otherwise."""
    beyond = raised("a time outside the years 1 to 9999")
    return f"CASE WHEN {value} IS NULL OR year({value}) BETWEEN 1 AND 9999 THEN {made} ELSE {beyond} END"


def _time(value: str, source: BoundType, target: BoundType) -> str | None:
    kinds = ("date", "timestamp", "timestamptz", "timestamp_s", "timestamp_ms")
    if source.family not in kinds or target.family not in ("date", "timestamp", "timestamptz"):
        return None
    return f"CAST({value} AS {target.spark})"
