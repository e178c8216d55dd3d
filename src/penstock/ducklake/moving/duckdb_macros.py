"""Reads the macros of a DuckDB database."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from penstock.ducklake.model.column_defaults import DIALECT
from penstock.ducklake.model.names import DEFAULT_SCHEMA
from penstock.ducklake.model.objects import MacroImplementation, MacroParameter
from penstock.ducklake.moving.duckdb_source import SOURCE, DuckDBSource
from penstock.ducklake.moving.macro_defaults import MacroTwins
from penstock.ducklake.moving.query_names import SourceNames, lake_query
from penstock.ducklake.writing.duckdb_expressions import calculator, expression_nodes
from penstock.errors import UnsupportedError
from penstock.storage.duckdb_sql import duckdb_quoted, ducklake_type, text_literal

_CLONE = "penstock_clone"
_KINDS = {"macro": "scalar", "table_macro": "table"}
_UNKNOWN = "unknown"


@dataclass(frozen=True)
class _Way:
    """One way to call a macro, as DuckDB lists it."""

    body: str
    parameters: Sequence[str]
    types: Sequence[str | None]

    @property
    def definitions(self) -> dict[str, str]:
        """The parameters as a definition has them, without their defaults."""
        pairs = zip(self.parameters, self.types, strict=True)
        return {name: duckdb_quoted(name) + ("" if type is None else f" {type}") for name, type in pairs}

    @property
    def pattern(self) -> str:
        """What DuckDB exports, which leaves names of parameters as they are; each group is a default."""
        named = (
            f"{re.escape(name)}{'' if type is None else f' {re.escape(type)}'}(?: := (.*?))?"
            for name, type in zip(self.parameters, self.types, strict=True)
        )
        return rf"\({', '.join(named)}\) AS (?:TABLE )?\({re.escape(self.body)}\)"


@dataclass(frozen=True)
class LakeMacro:
    """A macro as a lake keeps it, and what is not as it was."""

    schema: str
    name: str
    implementations: tuple[MacroImplementation, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class SourceMacro:
    """A macro of DuckDB's: all the ways to call it."""

    schema: str
    name: str
    kind: str  # scalar or table
    has_comment: bool
    ways: tuple[_Way, ...]

    def in_lake(self, source: DuckDBSource, exported: str, names: SourceNames) -> LakeMacro:
        """The macro as a lake keeps it; the defaults of its parameters are nowhere but in what DuckDB exports."""
        found = re.search(self._pattern, exported, re.DOTALL)
        if found is None:
            raise UnsupportedError("DuckDB exports no text of it that tells the defaults of its parameters")
        defaults, notes = iter(found.groups()), ["without its comment"] if self.has_comment else []
        made = []
        for way in self.ways:
            own = [next(defaults) for _ in way.parameters]
            twins = MacroTwins(
                source.connection, self.schema, self.name, self.kind == "table", way.body, way.definitions
            )
            parameters = []
            for name, type, default in zip(way.parameters, way.types, own, strict=True):
                typed = None if default is None else twins.typed(name, default)
                parameters.append(_parameter(name, type, typed or default))
                if typed is None and default is not None:
                    notes.append(
                        f"the default {default} of {name} is {parameters[-1].default_value_type}: "
                        "DuckDB does not tell of which type it was"
                    )
            made.append(MacroImplementation(DIALECT, self._in_lake(way, names), self.kind, tuple(parameters)))
        return LakeMacro(self.schema, self.name, tuple(made), tuple(notes))

    @property
    def _pattern(self) -> str:
        schema = "" if self.schema == DEFAULT_SCHEMA else rf"{_spelled(self.schema)}\."
        return f"CREATE MACRO {schema}{_spelled(self.name)} {', '.join(way.pattern for way in self.ways)};"

    def _in_lake(self, way: _Way, names: SourceNames) -> str:
        if self.kind == "table":
            return lake_query(way.body, names, way.parameters)
        return lake_query(f"SELECT {way.body}", names, way.parameters).removeprefix("SELECT ")


def source_macros(source: DuckDBSource) -> list[SourceMacro]:
    """The macros of a database."""
    ways: dict[tuple[str, str, str, bool], list[_Way]] = {}
    listed = source.listed(
        "schema_name, function_name, function_type, comment, macro_definition, parameters, parameter_types",
        "duckdb_functions",
        "NOT internal AND function_type IN ('macro', 'table_macro')",
    )
    for schema, name, kind, comment, *way in listed:
        ways.setdefault((schema, name, _KINDS[kind], comment is not None), []).append(_Way(*way))
    return [SourceMacro(*key, tuple(found)) for key, found in ways.items()]


def exported_definitions(source: DuckDBSource) -> str:
    """What DuckDB exports of a database besides rows; nothing where it cannot."""
    connection = source.connection
    with tempfile.TemporaryDirectory(prefix="penstock-") as directory:
        connection.execute(f"ATTACH ':memory:' AS {_CLONE}")
        try:
            connection.execute(f"COPY FROM DATABASE {SOURCE} TO {_CLONE} (SCHEMA)")
            connection.execute(f"USE {_CLONE}")
            connection.execute(f"EXPORT DATABASE {_CLONE} TO {text_literal(directory)}")
            return (Path(directory) / "schema.sql").read_text()
        except duckdb.Error:
            return ""
        finally:
            connection.execute("USE memory")
            connection.execute(f"DETACH {_CLONE}")


def _spelled(name: str) -> str:
    """A name as DuckDB may write it."""
    return f"(?:{re.escape(name)}|{re.escape(duckdb_quoted(name))})"


def _parameter(name: str, type: str | None, default: str | None) -> MacroParameter:
    kind = _UNKNOWN if type is None else ducklake_type(type)
    if default is None:
        return MacroParameter(name, kind, "NULL", _UNKNOWN)
    if not {node["class"] for node in expression_nodes(default)} <= {"CONSTANT", "CAST"}:
        raise UnsupportedError(f"the default of its parameter {name} is no plain constant: {default}")
    with calculator() as connection:
        sql = f"SELECT CAST({default} AS VARCHAR), typeof({default})"
        [[text, found]] = connection.execute(sql).fetchall()
    if text is None:
        raise UnsupportedError(f"the default of its parameter {name} is NULL, which DuckLake takes for none")
    return MacroParameter(name, kind, text, ducklake_type(found))
