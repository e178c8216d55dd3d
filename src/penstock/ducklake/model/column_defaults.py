"""Defines the defaults of columns, as `ducklake_column` keeps them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.schema.columns import Column

LITERAL = "literal"
EXPRESSION = "expression"
DIALECT = "duckdb"
_NULL = "NULL"


@dataclass(frozen=True)
class Default:
    """What rows take that leave the column out.

    `value` is DuckDB's text of a literal, or a DuckDB expression; `initial` is DuckDB's text of the value in the rows
    that were written before the column was added, None for NULL.
    """

    value: str
    kind: str
    initial: str | None = None


NO_DEFAULT = Default(_NULL, LITERAL)


def literal_default(text: str, initial: str) -> Default:
    """A constant, by DuckDB's text of it and DuckDB's text of it in the column's type."""
    if text == _NULL:
        # As a literal, this text means that there is no default.
        return Default(f"'{_NULL}'", EXPRESSION, initial)
    return Default(text, LITERAL, initial)


def boolean_default(value: bool, initial: bool) -> Default:
    """A default of true or false.

    To DuckDB's parser these are expressions, which have an initial value only where rows need one.
    """
    text = "true" if value else "false"
    return Default(f"CAST('{text[0]}' AS BOOLEAN)", EXPRESSION, text if initial else None)


def expression_default(sql: str) -> Default:
    """A DuckDB expression that is computed anew for every insert."""
    return Default(sql, EXPRESSION)


def with_default(column: Column, default: Default) -> Column:
    """The column with this default for new rows and, where it is new itself, for old ones."""
    return replace(with_value(column, default), initial_default=default.initial)


def with_value(column: Column, default: Default) -> Column:
    """The column with this default for new rows; rows from before the column was added keep what they show."""
    kind = "" if column.type.nested and default.value == _NULL else default.kind
    return replace(column, default_value=default.value, default_value_type=kind, default_value_dialect=DIALECT)


def has_default(column: Column) -> bool:
    """Whether rows that leave the column out take anything but NULL."""
    if column.default_value_type == EXPRESSION:
        return column.default_value is not None
    return column.default_value not in (None, _NULL)
