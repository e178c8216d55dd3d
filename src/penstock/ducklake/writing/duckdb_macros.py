"""Checks that DuckDB can load the lake that keeps a macro or a view, and defines macros in another DuckDB."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress

import duckdb

from penstock.ducklake.model.column_defaults import DIALECT
from penstock.ducklake.model.objects import Macro, MacroImplementation, MacroParameter
from penstock.ducklake.writing.duckdb_expressions import (
    calculator,
    function_names,
    printed_expression,
    without_catalogs,
)
from penstock.errors import InvalidError, UnsupportedError
from penstock.schema.columns import Column
from penstock.schema.types import parse_type
from penstock.storage.duckdb_sql import duckdb_quoted, duckdb_type, text_literal

_UNKNOWN = "unknown"


def check_query(sql: str, what: str) -> None:
    """Refuse what DuckDB does not read as one query."""
    try:
        with calculator() as connection:
            statements = connection.extract_statements(sql)
    except duckdb.Error as error:
        raise InvalidError(f"{what} is not a query that DuckDB can read: {str(error).splitlines()[0]}") from None
    if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
        raise InvalidError(f"{what} is not one query: {sql!r}")


def check_macro(name: str, implementations: Sequence[MacroImplementation]) -> None:
    """Refuse a macro that DuckDB cannot load, or cannot tell the ways to call it apart."""
    kinds = {item.type for item in implementations}
    if not implementations or len(kinds) > 1 or not kinds <= {"scalar", "table"}:
        raise InvalidError(f"macro {name} needs implementations that are all scalar or all table")
    if len({len(item.parameters) for item in implementations}) < len(implementations):
        raise InvalidError(f"macro {name} has two implementations with the same number of parameters; leave one out")
    for item in implementations:
        _check_way(name, item)


def _check_way(name: str, implementation: MacroImplementation) -> None:
    """Refuse what DuckDB cannot read.

    DuckDB reads all macros of a lake, whatever their dialect, before anything else in it: one that it cannot read
    would shut it out of the whole lake.
    """
    what = f"macro {name} (DuckDB reads every macro, and not the lake if it cannot)"
    if implementation.type == "table":
        check_query(implementation.sql, what)
    else:
        try:
            printed_expression(implementation.sql)
        except InvalidError as error:
            raise InvalidError(f"{what}: {error}") from None
    names = [parameter.name.lower() for parameter in implementation.parameters]
    if "" in names or len(set(names)) < len(names):
        raise InvalidError(f"macro {name}: each parameter needs a name of its own, and not {', '.join(names)}")
    for parameter in implementation.parameters:
        _check_parameter(name, parameter)


def macro_definitions(macros: Iterable[Macro], used: Collection[str], schemas: Collection[str]) -> tuple[str, ...]:
    """The statements by which another DuckDB gets the scalar macros of a lake that are used.

    These are the functions of the given names, and all that those use in turn. Names are in lower case.
    """
    scalar = [
        (macro, tuple(one for one in macro.implementations if one.type == "scalar" and one.dialect == DIALECT))
        for macro in macros
    ]
    needed, found = set(used), set[str]()
    while needed - found:
        found |= needed
        bodies = [one.sql for macro, ones in scalar if macro.name.lower() in found for one in ones]
        needed = needed.union(*map(function_names, bodies))
    chosen = [(macro, ones) for macro, ones in scalar if ones and macro.name.lower() in found]
    made = dict.fromkeys(f"CREATE SCHEMA IF NOT EXISTS {duckdb_quoted(macro.schema)}" for macro, _ in chosen)
    return (*made, *(_definition(macro, ones, schemas) for macro, ones in chosen))


def _definition(macro: Macro, implementations: Iterable[MacroImplementation], schemas: Collection[str]) -> str:
    bodies = [f"({parameter_list(one)}) AS {without_catalogs(one.sql, schemas)}" for one in implementations]
    return f"CREATE MACRO {duckdb_quoted(macro.schema)}.{duckdb_quoted(macro.name)}{', '.join(bodies)}"


def parameter_list(implementation: MacroImplementation) -> str:
    """The parameters as CREATE MACRO writes them, with their defaults, without their types."""
    return ", ".join(
        duckdb_quoted(one.name)
        if one.default_value in (None, "NULL")
        else f"{duckdb_quoted(one.name)} := CAST({text_literal(one.default_value or '')} AS"
        f" {_type(one.default_value_type or _UNKNOWN, one.name)})"
        for one in implementation.parameters
    )


def _check_parameter(macro: str, parameter: MacroParameter) -> None:
    place = f"parameter {parameter.name} of macro {macro}"
    _type(parameter.type, place)
    if parameter.default_value in (None, "NULL"):
        if parameter.default_value_type not in (None, _UNKNOWN):
            raise InvalidError(f"{place} has no default, so the type of that is {_UNKNOWN!r}")
        return
    kind = _type(parameter.default_value_type or "", place)
    try:
        with calculator() as connection:
            connection.execute(f"SELECT CAST($1 AS {kind})", [parameter.default_value])
    except duckdb.Error as error:
        raise InvalidError(f"the default of {place}: {str(error).splitlines()[0]}") from None


def _type(name: str, place: str) -> str:
    if name == _UNKNOWN:
        return "VARCHAR"
    with suppress(UnsupportedError):
        kind = parse_type(name)
        if not kind.nested:
            return duckdb_type(Column(0, "", kind, 0))
    raise InvalidError(f"{place} has the type {name!r}; write a DuckLake type that is not nested, or {_UNKNOWN!r}")
