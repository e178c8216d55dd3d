"""Writes DuckDB SQL that turns rows of an older shape of a table into the shape and types that Penstock shows.

Inlined rows and encrypted files hold values under the names and types of the snapshot that wrote them. The SQL made
here follows the column ids from that shape to the one that is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from penstock.schema.columns import Column

DUCKDB_TYPES = {
    "boolean": "BOOLEAN",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "uint8": "UTINYINT",
    "uint16": "USMALLINT",
    "uint32": "UINTEGER",
    "uint64": "UBIGINT",
    "int128": "HUGEINT",
    "uint128": "UHUGEINT",
    "float32": "FLOAT",
    "float64": "DOUBLE",
    "time": "TIME",
    "timetz": "TIMETZ",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMPTZ",
    "timestamp_s": "TIMESTAMP_S",
    "timestamp_ms": "TIMESTAMP_MS",
    "timestamp_ns": "TIMESTAMP_NS",
    "interval": "INTERVAL",
    "varchar": "VARCHAR",
    "blob": "BLOB",
    "json": "JSON",
    "uuid": "UUID",
    "variant": "VARIANT",
    "geometry": "GEOMETRY",
}
ITEM = "_penstock_item"  # of a list or a map, in a lambda: DuckDB takes a column's name for the column
# What DuckDB prints for types that it also takes a shorter name for.
_LONG_NAMES = {"TIMESTAMP WITH TIME ZONE": "TIMESTAMPTZ", "TIME WITH TIME ZONE": "TIMETZ"}
_DAY_MICROSECONDS = 86_400_000_000
_CUT_NANOSECONDS = "make_timestamp((epoch_ns({0}) - ((epoch_ns({0}) % 1000) + 1000) % 1000) // 1000)"
# DuckDB makes no infinity of a number; {0} is nanoseconds since 1970.
FROM_NANOSECONDS = (
    f"CASE {{0}} WHEN {2**63 - 1} THEN TIMESTAMP_NS 'infinity' WHEN {1 - 2**63} THEN TIMESTAMP_NS '-infinity'"
    " ELSE make_timestamp_ns({0}) END"
)
# How a value is shown, where that differs from DuckDB's own type; {0} is the value.
_SHOWN = {
    "uint8": "CAST({0} AS SMALLINT)",
    "uint16": "CAST({0} AS INTEGER)",
    "uint32": "CAST({0} AS BIGINT)",
    "uint64": "CAST({0} AS DECIMAL(20,0))",
    "int128": "CAST({0} AS DOUBLE)",
    "uint128": "CAST({0} AS DOUBLE)",
    "timetz": f"(TIME '00:00:00' + to_microseconds(epoch_us(DATE '1970-01-02' + {{0}}) % {_DAY_MICROSECONDS}))",
    "timestamp_s": "CAST({0} AS TIMESTAMP)",
    "timestamp_ms": "CAST({0} AS TIMESTAMP)",
    "timestamp_ns": f"CASE WHEN isinf({{0}}) THEN CAST({{0}} AS TIMESTAMP) ELSE {_CUT_NANOSECONDS} END",
    "interval": (
        "CASE WHEN {0} IS NOT NULL THEN struct_pack("
        "months := CAST(12 * datepart('year', {0}) + datepart('month', {0}) AS INTEGER), "
        "days := CAST(datepart('day', {0}) AS INTEGER), "
        "microseconds := CAST((datepart('hour', {0}) * 3600 + datepart('minute', {0}) * 60) * 1000000 "
        "+ datepart('microsecond', {0}) AS BIGINT)) END"
    ),
    "json": "CAST({0} AS VARCHAR)",
    "uuid": "CAST({0} AS VARCHAR)",
    "variant": (
        "struct_pack(value := CAST(variant_to_parquet_variant({0}) AS STRUCT(metadata BLOB, value BLOB)).value, "
        "metadata := CAST(variant_to_parquet_variant({0}) AS STRUCT(metadata BLOB, value BLOB)).metadata)"
    ),
    "geometry": "ST_AsWKB({0})",
}
_NANOSECONDS = {**_SHOWN, "timestamp_ns": "epoch_ns({0})"}
# The way back: how what is shown becomes DuckDB's own type, where a cast does not do it; {0} is what is shown.
_STORED = {
    "interval": (
        "CASE WHEN {0} IS NOT NULL THEN"
        " to_months(({0}).months) + to_days(({0}).days) + to_microseconds(({0}).microseconds) END"
    ),
    "variant": "CASE WHEN {0} IS NOT NULL THEN variant_bytes_to_variant(({0}).metadata || ({0}).value) END",
    "geometry": "ST_GeomFromWKB({0})",
    "timetz": "CAST(CAST({0} AS TIME) AS TIMETZ)",  # a time of nanoseconds has no zone otherwise
}
_STORED_NANOSECONDS = {**_STORED, "timestamp_ns": FROM_NANOSECONDS}


def duckdb_quoted(name: str) -> str:
    """A name as DuckDB's SQL quotes it."""
    return '"' + name.replace('"', '""') + '"'


def text_literal(text: str) -> str:
    """A text as a literal of DuckDB's SQL."""
    return "'" + text.replace("'", "''") + "'"


def duckdb_type(column: Column, names: Mapping[str, str] = DUCKDB_TYPES) -> str:
    """DuckDB's name for a column's type."""
    inner = [duckdb_type(child, names) for child in column.children]
    match column.type.name:
        case "list":
            return f"{inner[0]}[]"
        case "struct":
            fields = (f"{duckdb_quoted(f.name)} {kind}" for f, kind in zip(column.children, inner, strict=True))
            return f"STRUCT({', '.join(fields)})"
        case "map":
            return f"MAP({inner[0]}, {inner[1]})"
        case "decimal":
            return f"DECIMAL({column.type.precision},{column.type.scale})"
        case name:
            return names[name]


def ducklake_type(text: str) -> str:
    """DuckLake's name for a type that DuckDB prints, of those that are not nested."""
    name = _LONG_NAMES.get(text, text)
    return next((ours for ours, theirs in DUCKDB_TYPES.items() if theirs == name), name.lower())


def default_sql(column: Column) -> str:
    """SQL of a column's value in rows that were written before it was added."""
    if column.initial_default is None:
        return f"CAST(NULL AS {duckdb_type(column)})"
    return f"CAST({text_literal(column.initial_default)} AS {duckdb_type(column)})"


def select_list(
    target: Sequence[Column], source: Sequence[Column], values: Mapping[int, str], *, nanoseconds: bool = False
) -> str:
    """A select list of the target columns, named by position (`v0, v1, ...`), over the source columns' SQL by id."""
    by_id = {column.id: column for column in source}
    shown = _NANOSECONDS if nanoseconds else _SHOWN
    items = []
    for position, column in enumerate(target):
        old = by_id.get(column.id)
        value = default_sql(column) if old is None else _evolved(column, old, values[column.id])
        items.append(f"{_shown(column, value, shown)} AS v{position}")
    return ", ".join(items)


def evolved_values(target: Sequence[Column], source: Sequence[Column], values: Mapping[int, str]) -> list[str]:
    """SQL of the target columns in DuckDB's own types, over the source columns' SQL by id."""
    by_id = {column.id: column for column in source}
    return [
        default_sql(column) if column.id not in by_id else _evolved(column, by_id[column.id], values[column.id])
        for column in target
    ]


def read_schema(columns: Sequence[Column], names: Mapping[int, str], others: Sequence[tuple[int, str]] = ()) -> str:
    """The schema that `read_parquet` reads files by: columns by field id under other names, and other BIGINTs.

    What a file lacks has the value that the column was added with. Very wide integers are read as the floats that files
    keep them as.
    """
    entries = [_entry(column.id, names[column.id], _read_type(column), column.initial_default) for column in columns]
    entries += [_entry(field, name, "BIGINT", None) for field, name in others]
    return f"MAP {{{', '.join(entries)}}}"


def _entry(field: int, name: str, kind: str, default: str | None) -> str:
    value = "CAST(NULL AS VARCHAR)" if default is None else text_literal(default)
    return f"{field}: {{name: {text_literal(name)}, type: {text_literal(kind)}, default_value: {value}}}"


def _read_type(column: Column) -> str:
    floats = dict.fromkeys(("int128", "uint128"), "DOUBLE")
    return duckdb_type(column, {**DUCKDB_TYPES, **floats})


def stored_list(columns: Sequence[Column], values: Mapping[int, str], *, nanoseconds: bool = False) -> str:
    """A select list of the columns, under their names, in DuckDB's own types; `values` has SQL of what is shown, by id.

    `nanoseconds` means that timestamp_ns is shown as a number of nanoseconds.
    """
    stored = _STORED_NANOSECONDS if nanoseconds else _STORED
    return ", ".join(
        f"{_stored(column, values[column.id], stored)} AS {duckdb_quoted(column.name)}" for column in columns
    )


def _stored(column: Column, value: str, stored: Mapping[str, str]) -> str:
    """A value of the type that Spark holds as one of DuckDB's own."""
    if not any(item.type.name in stored for item in column.walk()):
        return f"CAST({value} AS {duckdb_type(column)})"
    if column.type.nested:
        return rebuilt(column, value, lambda child, item: _stored(child, item, stored))
    return stored[column.type.name].format(value)


def rebuilt(column: Column, value: str, convert: Callable[[Column, str], str]) -> str:
    """A nested value with each of its children converted."""
    match column.type.name:
        case "list":
            return f"list_transform({value}, lambda {ITEM}: {convert(column.children[0], ITEM)})"
        case "map":
            key, item = convert(column.children[0], f"{ITEM}.key"), convert(column.children[1], f"{ITEM}.value")
            entries = f"list_transform(map_entries({value}), lambda {ITEM}: struct_pack(k := {key}, v := {item}))"
            return f"CASE WHEN {value} IS NOT NULL THEN map_from_entries({entries}) END"
        case _:
            return _struct(value, column, lambda field: convert(field, f"({value}).{duckdb_quoted(field.name)}"))


def _evolved(new: Column, old: Column, value: str) -> str:
    """A value of the old shape in the new one, both in DuckDB's own types."""
    if not new.type.nested:
        return value if new.type == old.type else f"CAST({value} AS {duckdb_type(new)})"
    if _same_shape(new, old):
        return value
    match new.type.name:
        case "list":
            return f"list_transform({value}, lambda {ITEM}: {_evolved(new.children[0], old.children[0], ITEM)})"
        case "map":
            key = _evolved(new.children[0], old.children[0], f"{ITEM}.key")
            item = _evolved(new.children[1], old.children[1], f"{ITEM}.value")
            entries = f"list_transform(map_entries({value}), lambda {ITEM}: struct_pack(k := {key}, v := {item}))"
            return f"CASE WHEN {value} IS NOT NULL THEN map_from_entries({entries}) END"
        case _:
            return _struct(value, new, lambda field: _field(field, old, value))


def _field(field: Column, old: Column, value: str) -> str:
    before = next((child for child in old.children if child.id == field.id), None)
    return default_sql(field) if before is None else _evolved(field, before, f"({value}).{duckdb_quoted(before.name)}")


def _struct(value: str, column: Column, field_sql: Callable[[Column], str]) -> str:
    fields = ", ".join(f"{duckdb_quoted(field.name)} := {field_sql(field)}" for field in column.children)
    return f"CASE WHEN {value} IS NOT NULL THEN struct_pack({fields}) END"


def _same_shape(new: Column, old: Column) -> bool:
    return (
        new.type == old.type
        and len(new.children) == len(old.children)
        and all(
            a.id == b.id and a.name == b.name and _same_shape(a, b)
            for a, b in zip(new.children, old.children, strict=True)
        )
    )


def shown_sql(column: Column, value: str) -> str:
    """SQL of a value as the type that Spark holds, but for nanoseconds, which are numbers."""
    return _shown(column, value, _NANOSECONDS)


def _shown(column: Column, value: str, shown: Mapping[str, str]) -> str:
    """A value of DuckDB's own type as the type that Spark holds."""
    if not any(item.type.name in shown for item in column.walk()):
        return value
    if column.type.nested:
        return rebuilt(column, value, lambda child, item: _shown(child, item, shown))
    return shown[column.type.name].format(value)
