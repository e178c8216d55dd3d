"""Defines the tables that hold inlined rows in each database, and inserts rows into them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from weakref import WeakKeyDictionary

import pyarrow as pa

from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.catalog.databases.duckdb import DuckdbDatabase
from penstock.ducklake.catalog.inlined_statistics import inlined_statistics
from penstock.ducklake.catalog.inlined_values import (
    encode_rows,
    evolved_rows,
    native_sqls,
    row_source,
    rows_fit,
    value_errors,
)
from penstock.ducklake.model.reserved_names import INLINED_COLUMNS, INLINED_DELETE_COLUMNS, RESERVED_NAMES
from penstock.errors import UnsupportedError
from penstock.schema.columns import Column
from penstock.schema.types import Type
from penstock.storage.duckdb_sql import duckdb_type

__all__ = [
    "create_inlined_deletes_sql", "create_inlined_table_sql", "evolved_rows", "holds_every_value", "inlinable",
    "inlined_statistics", "inlined_table_name", "insert_inlined", "rows_fit",
]  # fmt: skip

_SYSTEM_COLUMNS = {"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"}
_LONGEST_NAME = 63  # bytes, in PostgreSQL; MySQL takes one more
# More columns than this may be refused with some values though not with others.
_MOST_COLUMNS = {"sqlite": 1900, "postgres": 400, "mysql": 190}
_ROW_ID = Column(0, "row_id", Type("int64"), 0)


def _sqlite_type(column: Column) -> str:
    integers = ("boolean", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")
    return "BIGINT" if column.type.name in integers else "BLOB" if column.type.name == "blob" else "VARCHAR"


_POSTGRES_TYPES = {
    "boolean": "BOOLEAN",
    "int8": "SMALLINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "uint8": "INTEGER",
    "uint16": "INTEGER",
    "uint32": "BIGINT",
    "float32": "REAL",
    "float64": "DOUBLE PRECISION",
    "varchar": "BYTEA",  # PostgreSQL's text cannot hold a NUL
    "json": "BYTEA",
    "blob": "BYTEA",
    "time": "TIME",
    "timetz": "TIMETZ",
    "interval": "INTERVAL",
    "uuid": "UUID",
}


def _postgres_type(column: Column) -> str:
    if column.type.name == "decimal":
        return f"DECIMAL({column.type.precision},{column.type.scale})"
    return _POSTGRES_TYPES.get(column.type.name, "VARCHAR")


_MYSQL_TYPES = {
    "boolean": "tinyint(1)",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "uint8": "tinyint unsigned",
    "uint16": "smallint unsigned",
    "uint32": "int unsigned",
    "uint64": "bigint unsigned",
    "blob": "longblob",
}


def _mysql_type(column: Column) -> str:
    """The extension makes FLOAT, DATETIME and the like, and loses NaN, infinities, digits and fractions of seconds.
    It reads the text of a value as well: that is what we store.
    """
    return _MYSQL_TYPES.get(column.type.name, "longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")


_TYPES: Mapping[str, Callable[[Column], str]] = {
    "duckdb": duckdb_type,
    "sqlite": _sqlite_type,
    "postgres": _postgres_type,
    "mysql": _mysql_type,
}


def inlinable(columns: Sequence[Column], engine: str) -> bool:
    """Whether rows of these columns can be inlined in such a database, and read there by DuckDB's extension."""
    types = {item.type.name for column in columns for item in column.walk()}
    if "geometry" in types or ("variant" in types and engine != "duckdb"):
        return False
    return len(columns) <= _MOST_COLUMNS.get(engine, len(columns)) and all(_can_name(c.name, engine) for c in columns)


def _can_name(name: str, engine: str) -> bool:
    if name.lower() in RESERVED_NAMES:
        return False
    match engine:
        case "postgres":
            return name.lower() not in _SYSTEM_COLUMNS and len(name.encode()) <= _LONGEST_NAME
        case "mysql":  # has no emoji in names, and takes é for e
            return name.isascii() and len(name) <= _LONGEST_NAME and not name.endswith(" ")
        case _:
            return True


def inlined_table_name(table_id: int, schema_version: int) -> str:
    """The name of a table's inlined table for a schema version."""
    return f"ducklake_inlined_data_{table_id}_{schema_version}"


def create_inlined_table_sql(database: Database, name: str, columns: Sequence[Column]) -> str:
    """The statement that makes an inlined table, with columns in the order in which the extension inserts."""
    own = [f"{column} BIGINT" for column in INLINED_COLUMNS]
    given = [f"{database.identifier(column.name)} {_TYPES[database.engine](column)}" for column in columns]
    return f"CREATE TABLE {database.identifier(name)} ({', '.join([*own, *given])})"


def create_inlined_deletes_sql(database: Database, name: str, condition: str = "") -> str:
    """The statement that makes a table of inlined deletes: positions in files, and the snapshots that deleted them."""
    columns = ", ".join(f"{column} BIGINT" for column in INLINED_DELETE_COLUMNS)
    return f"CREATE TABLE {condition}{database.identifier(name)} ({columns})"


def insert_inlined(
    database: Database,
    table: str,
    columns: Sequence[Column],
    rows: pa.Table,
    row_ids: pa.Int64Array,
    begin_snapshot: int,
) -> None:
    """Insert rows, whose columns are those of the table by position, in the types that Spark shows."""
    if not rows.num_rows:
        return
    if isinstance(database, DuckdbDatabase):
        _insert_native(database, table, columns, rows, row_ids, begin_snapshot)
        return
    if not holds_every_value(database, table, columns):
        raise UnsupportedError(
            f"{table} was made by DuckDB, with columns that lose values in {database.engine}; "
            "set the option data_inlining_row_limit of its table to 0"
        )
    values = encode_rows(database.engine, columns, rows)
    numbered = zip(row_ids.to_pylist(), values, strict=True)
    stored = [(row_id, begin_snapshot, None, *row) for row_id, row in numbered]
    database.insert(table, [*INLINED_COLUMNS, *_stored_names(database, table, columns)], stored)


def _insert_native(
    database: DuckdbDatabase,
    table: str,
    columns: Sequence[Column],
    rows: pa.Table,
    row_ids: pa.Int64Array,
    snapshot: int,
) -> None:
    numbered, all_columns = rows.append_column("row_id", row_ids), [*columns, _ROW_ID]
    *values, row_id = native_sqls(all_columns, numbered)
    items = [row_id, str(snapshot), "NULL", *values]
    into = f"INSERT INTO {database.identifier(table)}"
    inserting = row_source(all_columns, numbered)
    with (
        database._opened(),
        database._explained(),
        value_errors(columns, rows),
        inserting.select(database._connection, items, into=into),
    ):
        pass


def _stored_names(database: Database, table: str, columns: Sequence[Column]) -> list[str]:
    """The names in the database: those that the extension made in PostgreSQL without quotes are in lower case there."""
    names = [column.name for column in columns]
    if database.engine != "postgres" or all(name == name.lower() for name in names):
        return names
    return database.columns(table)[len(INLINED_COLUMNS) :]


_checked: WeakKeyDictionary[Database, set[str]] = WeakKeyDictionary()


def holds_every_value(database: Database, table: str, columns: Sequence[Column]) -> bool:
    """Whether an inlined table has columns that hold all values, as those that the extension makes in MySQL do not."""
    if database.engine != "mysql" or table in _checked.setdefault(database, set()):
        return True
    made = database.query(
        "SELECT column_type FROM information_schema.columns "
        "WHERE table_schema = database() AND table_name = ? ORDER BY ordinal_position",
        [table],
    )
    if [_without_width(kind) for (kind,) in made[len(INLINED_COLUMNS) :]] != [
        _without_width(_mysql_type(column)) for column in columns
    ]:
        return False
    _checked[database].add(table)
    return True


def _without_width(mysql_type: str) -> str:
    """MariaDB shows `bigint(20) unsigned` where MySQL shows `bigint unsigned`."""
    return re.sub(r"\(\d+\)| CHARACTER.*", "", mysql_type)
