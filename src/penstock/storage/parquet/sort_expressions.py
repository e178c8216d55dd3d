"""Computes the sort keys that only DuckDB can compute, in the tasks, beside the rows that they write."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa

from penstock.schema.columns import Column
from penstock.storage.duckdb_files import connect_duckdb
from penstock.storage.duckdb_sql import duckdb_quoted, duckdb_type, stored_list, text_literal


@dataclass(frozen=True)
class SortExpressions:
    """Expressions of a table's columns in DuckDB's SQL, each with its direction and place of NULLs.

    `columns` are those that the expressions use, by their position in a batch; `macros` the statements that make the
    lake's macros.
    """

    columns: tuple[tuple[int, Column], ...]
    keys: tuple[tuple[str, str], ...]  # such as ("strftime(ts, '%Y')", "DESC NULLS LAST")
    macros: tuple[str, ...] = ()

    def values(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Compute, for each expression, bytes that sort as its values do, in the order that is wanted."""
        connection = _connection(self.macros).cursor()
        connection.register("rows", pa.table({f"v{place}": batch.column(place) for place, _ in self.columns}))
        items = [_stored(place, column, batch.column(place).type) for place, column in self.columns]
        chosen = ", ".join(f"create_sort_key({sql}, {text_literal(order)})" for sql, order in self.keys)
        found = connection.execute(f"SELECT {chosen} FROM (SELECT {', '.join(items)} FROM rows)").to_arrow_table()
        return [column.combine_chunks() for column in found.columns]

    def refusal(self) -> str | None:
        """Why DuckDB cannot compute them either, if it cannot."""
        definition = ", ".join(f"{duckdb_quoted(column.name)} {duckdb_type(column)}" for _, column in self.columns)
        try:
            with connect_duckdb() as connection:
                for statement in self.macros:
                    connection.execute(statement)
                connection.execute(f"CREATE TEMP TABLE penstock_rows ({definition or 'x INT'})")
                for sql, _ in self.keys:
                    connection.execute(f"SELECT {sql} FROM penstock_rows")
        except duckdb.Error as error:
            return str(error).splitlines()[0]
        return None


@cache
def _connection(macros: tuple[str, ...]) -> Any:
    connection = connect_duckdb()
    connection.execute("SET threads = 1")  # a task has one core
    for statement in macros:
        connection.execute(statement)
    return connection


def _stored(place: int, column: Column, kind: pa.DataType) -> str:
    return stored_list([column], {column.id: f"v{place}"}, nanoseconds=pa.types.is_integer(kind))
