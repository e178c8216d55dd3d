"""Converts rows from the types that Spark shows to DuckDB's own, and to what each database's inlined table holds.

DuckDB does every conversion. A few plain rows go to it as parameters of a query, because handing it an Arrow table
takes several times as long as everything else that the insert of one row does.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain
from typing import Any

import duckdb
import pyarrow as pa

from penstock.ducklake.catalog.databases import Row
from penstock.errors import InvalidError
from penstock.partitioning.texts import is_infinite
from penstock.schema.columns import Column
from penstock.schema.types import Order
from penstock.storage.duckdb_files import duckdb_cursor
from penstock.storage.duckdb_sql import FROM_NANOSECONDS, ITEM, duckdb_quoted, duckdb_type, select_list

_SOURCE = "penstock_rows"
_FEW_VALUES = 64
_CACHED = 256
_lock = threading.Lock()

# DuckDB's own value of a shown one, where a cast does not make it; {0} is the shown value.
_NATIVE = {
    "interval": "(to_months(({0}).months) + to_days(({0}).days) + to_microseconds(({0}).microseconds))",
    "variant": "variant_bytes_to_variant(({0}).metadata || ({0}).value)",
    "timetz": "CAST(CAST({0} AS TIME) AS TIMETZ)",  # Spark's times have nanoseconds in Arrow, and those have no zone
}
_SHOWN_AS_STRUCT = ("interval", "variant")
# A cast would take the fields of a struct by their names, and lose those that it does not find.
_NOT_BY_CAST = (*_NATIVE, "timestamp_ns", "struct")
# Types that Python has no value for in the whole of their range: they go to DuckDB as numbers.
_FROM_NUMBERS = {
    "date": "(DATE '1970-01-01' + CAST(? AS INTEGER))",
    "time": "CAST(make_timestamp(CAST(? AS BIGINT)) AS TIME)",
    "timestamp": "make_timestamp(CAST(? AS BIGINT))",
    "timestamptz": "CAST(make_timestamp(CAST(? AS BIGINT)) AS TIMESTAMPTZ)",
}
_SHOWN_AS = {"timetz": "time", "timestamp_s": "timestamp", "timestamp_ms": "timestamp", "timestamp_ns": "timestamp"}
_PARAMETER_TYPES = {
    "boolean": "BOOLEAN",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "uint8": "SMALLINT",
    "uint16": "INTEGER",
    "uint32": "BIGINT",
    "uint64": "DECIMAL(20,0)",
    "int128": "DOUBLE",
    "uint128": "DOUBLE",
    "float32": "FLOAT",
    "float64": "DOUBLE",
    "varchar": "VARCHAR",
    "json": "VARCHAR",
    "uuid": "VARCHAR",
    "blob": "BLOB",
}

# Values that a database takes as Python holds them.
_INTEGERS = frozenset(("int8", "int16", "int32", "int64"))
_PLAIN = {
    "sqlite": _INTEGERS | {"boolean", "varchar", "blob"},
    "mysql": _INTEGERS | {"boolean", "varchar", "blob"},
    "postgres": _INTEGERS | {"boolean", "float32", "float64", "varchar", "blob"},
}
_NUMBERS = _INTEGERS | {"boolean", "uint8", "uint16", "uint32"}
_TEXT_AS_BYTES = ("varchar", "json")


@dataclass(frozen=True)
class RowSource:
    """Rows that DuckDB can read, with the columns `c0, c1, ...` in the types that Spark shows."""

    with_sql: str = ""
    parameters: Sequence[Any] = ()
    arrow: pa.Table | None = None

    @contextmanager
    def select(
        self, connection: duckdb.DuckDBPyConnection, items: Sequence[str], *, into: str = "", where: str = ""
    ) -> Iterator[duckdb.DuckDBPyConnection]:
        """Select expressions over the rows, or insert what they give into a table."""
        sql = f"{into} {self.with_sql} SELECT {', '.join(items)} FROM {_SOURCE} {where}"
        if self.arrow is None:
            yield connection.execute(sql, self.parameters)
            return
        connection.register(_SOURCE, self.arrow)
        try:
            yield connection.execute(sql)
        finally:
            connection.unregister(_SOURCE)


def row_source(columns: Sequence[Column], rows: pa.Table) -> RowSource:
    """The rows as DuckDB reads them with the least ado."""
    count = rows.num_rows
    few = 0 < count * len(columns) <= _FEW_VALUES and all(_is_plain(column) for column in columns)
    values = [_parameters(column, rows.column(i)) for i, column in enumerate(columns)] if few else []
    if few and not any(_has_infinity(*pair) for pair in zip(columns, values, strict=True)):
        sql = _values_sql(tuple(columns), tuple(rows.schema.types), count)
        return RowSource(sql, list(chain.from_iterable(zip(*values, strict=True))))
    return RowSource(arrow=rows.rename_columns([f"c{i}" for i in range(len(columns))]))


def _is_plain(column: Column) -> bool:
    return not column.type.nested and column.type.name not in _SHOWN_AS_STRUCT


def _parameters(column: Column, values: pa.ChunkedArray) -> list[Any]:
    if _shown_name(column) not in _FROM_NUMBERS or pa.types.is_integer(values.type):
        return list(values.to_pylist())
    number = pa.int32() if column.type.name == "date" else pa.int64()
    return list(values.cast(_exact(values.type)).cast(number).to_pylist())


def _has_infinity(column: Column, values: Sequence[Any]) -> bool:
    """Whether there is a number that DuckDB makes no date or timestamp of, other than from Arrow."""
    kind = column.type
    return kind.order in (Order.DATE, Order.TIMESTAMP) and any(is_infinite(value, kind) for value in values)


def _exact(type: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(type):
        return pa.timestamp("us", type.tz)
    return pa.time64("us") if pa.types.is_time(type) else pa.date32()


def _shown_name(column: Column) -> str:
    return _SHOWN_AS.get(column.type.name, column.type.name)


@lru_cache(_CACHED)
def _values_sql(columns: tuple[Column, ...], types: tuple[pa.DataType, ...], count: int) -> str:
    row = ", ".join(map(_parameter, columns, types))
    names = ", ".join(f"c{i}" for i in range(len(columns)))
    rows = f"SELECT {row}" if count == 1 else f"VALUES {', '.join([f'({row})'] * count)}"  # the first plans faster
    return f"WITH {_SOURCE}({names}) AS ({rows})"


def _parameter(column: Column, type: pa.DataType) -> str:
    name = _shown_name(column)
    if name in _FROM_NUMBERS:
        return "CAST(? AS BIGINT)" if pa.types.is_integer(type) else _FROM_NUMBERS[name]
    return f"CAST(? AS {_PARAMETER_TYPES.get(name, duckdb_type(column))})"


def native_sql(column: Column, type: pa.DataType, value: str) -> str:
    """SQL of DuckDB's own value of a column, over the SQL of the value that Spark shows and its Arrow type."""
    if not any(item.type.name in _NOT_BY_CAST for item in column.walk()):
        return f"CAST({value} AS {duckdb_type(column)})"
    match column.type.name:
        case "list":
            return f"list_transform({value}, lambda {ITEM}: {native_sql(column.children[0], type.value_type, ITEM)})"
        case "map":
            key = native_sql(column.children[0], type.key_type, f"{ITEM}.key")
            item = native_sql(column.children[1], type.item_type, f"{ITEM}.value")
            entries = f"list_transform(map_entries({value}), lambda {ITEM}: struct_pack(k := {key}, v := {item}))"
            return f"CASE WHEN {value} IS NOT NULL THEN map_from_entries({entries}) END"
        case "struct":
            shown = [
                (type.field(i).type, f"({value}).{duckdb_quoted(type.field(i).name)}") for i in range(type.num_fields)
            ]
            fields = ", ".join(
                f"{duckdb_quoted(child.name)} := {native_sql(child, *field)}"
                for child, field in zip(column.children, shown, strict=True)
            )
            return f"CASE WHEN {value} IS NOT NULL THEN struct_pack({fields}) END"
        case "timestamp_ns" if pa.types.is_integer(type):
            return FROM_NANOSECONDS.format(value)
        case name:
            return _NATIVE.get(name, f"CAST({{0}} AS {duckdb_type(column)})").format(value)


def native_sqls(columns: Sequence[Column], rows: pa.Table) -> list[str]:
    """SQL of DuckDB's own values of all columns of a `row_source`."""
    return [native_sql(column, rows.schema.field(i).type, f"c{i}") for i, column in enumerate(columns)]


def evaluated(expressions: Sequence[str], columns: Sequence[Column], rows: pa.Table) -> list[Row]:
    """The values of SQL expressions over a `row_source` of the rows."""
    with value_errors(columns, rows), _lock, row_source(columns, rows).select(_calculator(), expressions) as found:
        return found.fetchall()


def evolved_rows(
    before: Sequence[Column], after: Sequence[Column], rows: pa.Table, *, nanoseconds: bool = True
) -> pa.Table:
    """Rows of an older shape of a table in a newer one; nanoseconds become whole numbers, if they are to be kept."""
    values = dict(zip((column.id for column in before), native_sqls(before, rows), strict=True))
    select = select_list(after, before, values, nanoseconds=nanoseconds)
    with value_errors(before, rows), _lock, row_source(before, rows).select(_calculator(), [select]) as found:
        return found.to_arrow_table().rename_columns([column.name for column in after])


@cache
def _calculator() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET TimeZone = 'UTC'")
    return connection


@contextmanager
def value_errors(columns: Sequence[Column], rows: pa.Table) -> Iterator[None]:
    """Raise DuckDB's refusal of a value as an error that names the column and the value."""
    try:
        yield
    except (duckdb.ConversionException, duckdb.InvalidInputException, duckdb.OutOfRangeException) as error:
        for position, column in enumerate(columns):
            _check(column, rows.select([position]))
        raise InvalidError(f"the rows do not fit the table's columns: {error}") from error


def _check(column: Column, values: pa.Table) -> None:
    connection = duckdb_cursor()
    [value] = native_sqls([column], values)
    refused = f"WHERE c0 IS NOT NULL AND TRY({value}) IS NULL LIMIT 1"
    with row_source([column], values).select(connection, ["CAST(c0 AS VARCHAR)"], where=refused) as found:
        sample = found.fetchone()
    if sample:
        raise InvalidError(
            f"column {column.name!r} is {column.type} and cannot hold {sample[0]!r}; "
            "change the value or the column's type"
        )


def encode_rows(engine: str, columns: Sequence[Column], rows: pa.Table) -> list[Row]:
    """The rows as a database's inlined table holds them, for `Database.insert`; DuckDB's own holds them as they are."""
    if not rows.num_rows:
        return []
    values: dict[int, Sequence[Any]] = {}
    for position, column in enumerate(columns):
        if column.type.name in _PLAIN[engine]:
            bare = rows.column(position)
            as_bytes = engine == "postgres" and column.type.name in _TEXT_AS_BYTES
            values[position] = (bare.cast(pa.binary()) if as_bytes else bare).to_pylist()
    others = [position for position in range(len(columns)) if position not in values]
    if others:
        texts = _texts(engine, [columns[i] for i in others], rows.select(others))
        values.update(zip(others, zip(*texts, strict=True), strict=True))
    return list(zip(*(values[i] for i in range(len(columns))), strict=True))


def _texts(engine: str, columns: Sequence[Column], rows: pa.Table) -> list[Row]:
    exprs = [
        encoded_sql(engine, column, value, f"c{i}") for i, (column, value) in enumerate(_with_natives(columns, rows))
    ]
    kept = _kept(engine, columns, rows)
    found = evaluated([*exprs, *kept.values()], columns, rows)
    width = len(exprs)
    for position, number in enumerate(kept, start=width):
        if not all(row[position] for row in found):
            raise InvalidError(
                f"column {columns[number].name!r} has values that do not survive as text in a {engine} catalog; "
                "set the option data_inlining_row_limit of the table to 0, so that its rows go to files"
            )
    return [row[:width] for row in found]


def _with_natives(columns: Sequence[Column], rows: pa.Table) -> Iterator[tuple[Column, str]]:
    return zip(columns, native_sqls(columns, rows), strict=True)


def encoded_sql(engine: str, column: Column, value: str, shown: str) -> str:
    """SQL of what a database's inlined table holds, over that of DuckDB's own value and of the one that Spark shows."""
    name = column.type.name
    if name in _NUMBERS or name == "blob" or (name == "uint64" and engine == "mysql"):
        return value
    if engine == "postgres" and name in _TEXT_AS_BYTES:
        return f"encode(CAST({value} AS VARCHAR))"
    if name == "interval":  # DuckDB cannot read its own text of the longest ones
        return (
            f"({shown}).months || ' months ' || ({shown}).days || ' days ' || ({shown}).microseconds || ' microseconds'"
        )
    return f"CAST({value} AS VARCHAR)"


def _kept(engine: str, columns: Sequence[Column], rows: pa.Table) -> dict[int, str]:
    """By position, whether a nested value is what is read again from its text: DuckDB cannot read all it writes."""
    checks = {}
    for position, (column, value) in enumerate(_with_natives(columns, rows)):
        if column.type.nested:
            checks[position] = kept_sql(engine, column, value)
    return checks


def kept_sql(engine: str, column: Column, value: str) -> str:
    """SQL of whether DuckDB's own value is what is read again from its text."""
    text = f"CAST({value} AS VARCHAR)"
    same = f"TRY_CAST({text} AS {duckdb_type(column)}) IS NOT DISTINCT FROM {value}"
    return f"{same} AND contains({text}, chr(0)) IS NOT TRUE" if engine == "postgres" else same


def rows_fit(columns: Sequence[Column], rows: pa.Table, engine: str) -> bool:
    """Whether all values survive in a database's inlined table; where not, the rows must go to files."""
    nested = [i for i, column in enumerate(columns) if column.type.nested]
    if engine == "duckdb" or not nested or not rows.num_rows:
        return True
    chosen, values = [columns[i] for i in nested], rows.select(nested)
    found = evaluated(list(_kept(engine, chosen, values).values()), chosen, values)
    return all(map(all, found))
