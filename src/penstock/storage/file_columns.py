"""Reads what a Parquet file has of a table's columns, by their names: some may have been added after it was written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import duckdb
from duckdb.sqltypes import DuckDBPyType

from penstock.schema.columns import Column
from penstock.storage.duckdb_sql import duckdb_quoted, select_list

FileColumns = Mapping[str, DuckDBPyType]


def file_columns(connection: duckdb.DuckDBPyConnection, file: str) -> FileColumns:
    """The columns of a file, which is SQL, with their types."""
    rows = connection.sql(f"SELECT * FROM {file} LIMIT 0")
    return dict(zip(rows.columns, rows.types, strict=True))


def select_of(found: FileColumns, columns: Sequence[Column], *, nanoseconds: bool = False) -> str:
    """A select list of columns, named by position, over a file: what it lacks has the value that it was added with."""
    source = _present(columns, found)
    names = {column.id: duckdb_quoted(column.name) for column in source}
    return select_list(columns, source, names, nanoseconds=nanoseconds)


def _present(columns: Sequence[Column], found: FileColumns) -> list[Column]:
    """The columns, and in them the fields, that there are."""
    kinds = {name.lower(): kind for name, kind in found.items()}
    return [_as_found(column, kinds[column.name.lower()]) for column in columns if column.name.lower() in kinds]


def _as_found(column: Column, kind: DuckDBPyType) -> Column:
    match column.type.name:
        case "struct" if kind.id == "struct":
            return replace(column, children=tuple(_present(column.children, dict(_parts(kind)))))
        case "list" | "map" if kind.id == column.type.name:
            below = zip(column.children, _parts(kind), strict=True)
            return replace(column, children=tuple(_as_found(child, part) for child, (_, part) in below))
        case _:
            return column


def _parts(kind: DuckDBPyType) -> list[tuple[str, DuckDBPyType]]:
    return [(name, part) for name, part in kind.children if isinstance(part, DuckDBPyType)]
