"""Defines what a snapshot shows besides rows: schemas, tables, views, macros and their tags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.schema.columns import Column


@dataclass(frozen=True)
class Schema:
    """A schema of the lake."""

    id: int
    uuid: str
    name: str
    path: str  # absolute


@dataclass(frozen=True)
class TableInfo:
    """A table's row in the catalog; its columns are looked up apart."""

    id: int
    uuid: str
    schema: Schema
    name: str
    path: str  # absolute

    @property
    def full_name(self) -> str:
        """The name with that of the schema."""
        return f"{self.schema.name}.{self.name}"


@dataclass(frozen=True)
class ColumnVersion:
    """A column's row in the catalog and the snapshots it holds for; renames and promotions make new versions."""

    column: Column
    parent_id: int | None
    order: int
    end_snapshot: int | None


@dataclass(frozen=True)
class SortKey:
    """One key of a table's sort order, as the catalog keeps it."""

    expression: str
    dialect: str
    direction: str
    null_order: str


@dataclass(frozen=True)
class View:
    """A view: its SQL and the dialect that it is in."""

    id: int
    schema: str
    name: str
    dialect: str
    sql: str
    column_aliases: str | None
    tags: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class MacroParameter:
    """A parameter of a macro: its name, DuckDB's name of its type, and the SQL of its default, if it has one."""

    name: str
    type: str
    default_value: str | None
    default_value_type: str | None


@dataclass(frozen=True)
class MacroImplementation:
    """One way to call a macro: its SQL, the dialect of that, `scalar` or `table`, and its parameters."""

    dialect: str
    sql: str
    type: str
    parameters: tuple[MacroParameter, ...]


@dataclass(frozen=True)
class Macro:
    """A macro, with an implementation for each number of parameters."""

    id: int
    schema: str
    name: str
    implementations: tuple[MacroImplementation, ...]
