"""Finds the types of the defaults of macros' parameters, which DuckDB keeps and does not write into its exports."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import duckdb

from penstock.ducklake.moving.duckdb_source import SOURCE
from penstock.ducklake.writing.duckdb_expressions import expression_nodes
from penstock.storage.duckdb_sql import duckdb_quoted, text_literal

_NUMBER = re.compile(r"-?\d+(?:\.(\d+))?")
_DIGITS = re.compile(r"[01]+")
_INTEGERS = ("INTEGER", "BIGINT", "TINYINT", "SMALLINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
_MOST_DIGITS = 38
# What the other arguments are tried as: those that a macro takes tell.
_TRIED = ("VARCHAR", "INTEGER", "DOUBLE", "TIMESTAMP", "BOOLEAN", "VARCHAR[]")
_TWIN = "penstock_twin"
_PLACE = re.compile(r'"query_location":\d+,?')


@dataclass(frozen=True)
class MacroTwins:
    """Makes twins of a macro with other defaults, to find one that DuckDB makes the same plans of.

    `parameters` are as a definition has them, without defaults, by their names.
    """

    connection: duckdb.DuckDBPyConnection
    schema: str
    name: str
    is_table: bool
    body: str
    parameters: Mapping[str, str]

    def typed(self, parameter: str, default: str) -> str | None:
        """A default as an expression of the type that DuckDB keeps it with; None where that is not to be told."""
        if [node["class"] for node in expression_nodes(default)] != ["CONSTANT"]:
            return default  # with a cast, so that it says its type
        self.connection.execute(f"USE {SOURCE}")
        try:
            own = f"{duckdb_quoted(self.schema)}.{duckdb_quoted(self.name)}"
            plans = {type: self._plan(own, parameter, type) for type in _TRIED}
            known = {type: plan for type, plan in plans.items() if plan is not None}
            if not known or "" in known.values():  # of values that no plan can be told with
                return None
            for candidate in _candidates(default):
                if self._is_made(parameter, candidate) and all(
                    self._plan(_TWIN, parameter, type) == plan for type, plan in known.items()
                ):
                    return candidate
        finally:
            self.connection.execute("USE memory")
        return None

    def _is_made(self, parameter: str, default: str) -> bool:
        """Make the twin with a default, unless that is no value of its type."""
        listed = (
            f"{definition} := {default}" if name == parameter else definition
            for name, definition in self.parameters.items()
        )
        kind = " TABLE" if self.is_table else ""
        try:
            self.connection.execute(f"CREATE OR REPLACE TEMP MACRO {_TWIN}({', '.join(listed)}) AS{kind} {self.body}")
        except duckdb.Error:
            return False
        return True

    def _plan(self, macro: str, left_out: str, type: str) -> str | None:
        """DuckDB's plan of a call with all arguments but one; None where it makes none."""
        argument = f"CAST(NULL AS {type})" if self.is_table else "x"
        given = ", ".join(f"{duckdb_quoted(name)} := {argument}" for name in self.parameters if name != left_out)
        query = f"FROM {macro}({given})"
        if not self.is_table:
            query = f"SELECT {macro}({given}) AS y FROM (SELECT CAST(NULL AS {type}) AS x)"
        options = "skip_null := true, skip_empty := true, optimize := false"
        told = f"SELECT json_serialize_plan({text_literal(query)}, {options})"
        try:
            [[plan]] = self.connection.execute(told).fetchall()
        except duckdb.Error:
            return None
        return None if '"error":true' in plan else _PLACE.sub("", plan)


def _candidates(default: str) -> Iterator[str]:
    """A constant as it is, and with each type that it may have been of."""
    yield default
    if default.startswith("'"):
        yield f"{default}::JSON"
        return
    number = _NUMBER.fullmatch(default)
    if number is None:
        return
    yield from (f"{default}::{kind}" for kind in ("DOUBLE", "FLOAT", *(() if number[1] else _INTEGERS)))
    scale = len(number[1] or "")
    yield from (f"{default}::DECIMAL({digits},{scale})" for digits in range(max(1, scale), _MOST_DIGITS + 1))
    if _DIGITS.fullmatch(default):
        yield f"'{default}'::BIT"
