"""Rewrites the defaults of DuckDB's columns, which it keeps as text, so that they mean the same in a lake."""

from __future__ import annotations

import duckdb

from penstock.ducklake.model.column_defaults import NO_DEFAULT, Default, expression_default, literal_default
from penstock.ducklake.writing.duckdb_expressions import calculator, expression_nodes
from penstock.errors import InvalidError
from penstock.schema.columns import Column
from penstock.storage.duckdb_sql import duckdb_type


def lake_default(column: Column, sql: str) -> Default:
    """A default as the extension keeps it: a constant by its text, anything else as an expression.

    InvalidError where it needs something that a lake does not have, or gives no value of the column's type.
    """
    if column.type.nested:
        raise InvalidError("DuckLake has no defaults for nested types")
    nodes, kind, text = expression_nodes(sql), duckdb_type(column), f"CAST({sql} AS VARCHAR)"
    try:
        with calculator() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute(f"CREATE TABLE t (c {kind} DEFAULT {sql})")
            connection.execute("INSERT INTO t DEFAULT VALUES")
            if not nodes or nodes[0]["class"] != "CONSTANT":
                return expression_default(sql)
            [[own, value, again]] = connection.execute(
                f"SELECT {text}, CAST(c AS VARCHAR), CAST(TRY_CAST({text} AS {kind}) AS VARCHAR) FROM t"
            ).fetchall()
    except duckdb.Error as error:
        raise InvalidError(str(error).splitlines()[0]) from None
    return NO_DEFAULT if own is None else literal_default(own if again == value else value, value)
