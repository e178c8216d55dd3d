"""Answers functions in FROM: `sales.snapshots()`, `sales.table_changes('orders', 2, 5)` and their kin."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame

from penstock.ducklake.lake import DuckLake
from penstock.ducklake.model.names import DEFAULT_SCHEMA
from penstock.errors import InvalidError, NotFoundError
from penstock.spark.jvm import query_execution
from penstock.spark.local_rows import local_frame
from penstock.sql.bridge import items_of
from penstock.sql.macros import Macros
from penstock.sql.procedures import table_named
from penstock.sql.shown_objects import moment_of

Given = Mapping[str, Any]
_NAMES = ("table_name", "schema")  # parameters that are texts


@dataclass(frozen=True)
class TableFunction:
    """A function in FROM: its parameters, of which the first are required, and its rows."""

    parameters: tuple[str, ...]
    required: int
    rows: Callable[[DuckLake, Given], DataFrame]


class TableFunctions:
    """Questions of the rule LakeNames."""

    def __init__(self, lake: DuckLake, macros: Macros) -> None:
        self._lake, self._macros = lake, macros

    def has_function(self, name: str) -> bool:
        """Whether a bare name is a function's in FROM."""
        return name.lower() in FUNCTIONS or self._macros.is_table_macro(name)

    def function_note(self, path: Any) -> str | None:
        """What to note of a table macro for when a query runs; None where there is none, or for a function of ours."""
        *schema, name = items_of(path)
        return None if _own_function(schema, name) else self._macros.macro_note(path, "table")

    def table_function(self, catalog: str, path: Any, qualified: bool, names: Any, values: Any) -> Any:
        """The plan of a function's rows. For a bare name that is none of ours None, and Spark looks elsewhere."""
        *schema, name = items_of(path)
        function = _own_function(schema, name)
        words, given_values = items_of(names), [_given(value) for value in items_of(values)]
        if function is None:
            plan = self._macros.table_macro(catalog, [*schema, name], words, given_values)
            if plan is not None or not qualified:
                return plan
            known = ", ".join(sorted(FUNCTIONS))
            raise NotFoundError(f"the lake has no table function {'.'.join([*schema, name])}; there are {known}")
        given = _bound(name, function, words, given_values)
        return query_execution(function.rows(self._lake, given)).analyzed()


def _own_function(schema: Sequence[str], name: str) -> TableFunction | None:
    """The function of ours that a name is, which no macro of these schemas hides."""
    is_elsewhere = schema and [part.lower() for part in schema] not in ([DEFAULT_SCHEMA], ["system"])
    return None if is_elsewhere else FUNCTIONS.get(name.lower())


def _bound(name: str, function: TableFunction, names: Sequence[str | None], values: Sequence[Any]) -> dict[str, Any]:
    """Arguments by the names of the parameters."""
    given: dict[str, Any] = {}
    for place, (word, value) in enumerate(zip(names, values, strict=True)):
        if word is None and place >= len(function.parameters):
            raise InvalidError(f"{name} takes {len(function.parameters)} arguments; it is given {len(values)}")
        parameter = function.parameters[place] if word is None else word.lower()
        if parameter not in function.parameters or parameter in given:
            raise InvalidError(f"{name} takes {', '.join(function.parameters) or 'no argument'}, and not {word} so")
        given[parameter] = value
    missing = [parameter for parameter in function.parameters[: function.required] if given.get(parameter) is None]
    if missing:
        raise InvalidError(f"{name} needs {', '.join(missing)}")
    for parameter in _NAMES:
        if not isinstance(given.get(parameter, ""), str | None):
            raise InvalidError(f"{name} takes a text as {parameter}, and not {given[parameter]!r}")
    return {parameter: value for parameter, value in given.items() if value is not None}


def _given(value: Any) -> Any:
    """An argument as Python has it: times come as maps."""
    is_time = isinstance(value, Mapping) or type(value).__name__ == "JavaMap"
    return moment_of(value["micros"]) if is_time else value


def _feed(verb: str) -> Callable[[DuckLake, Given], DataFrame]:
    def rows(lake: DuckLake, given: Given) -> DataFrame:
        table = table_named(lake, given["table_name"], given.get("schema"))
        feed: DataFrame = getattr(table, verb)(given["start_snapshot"], given.get("end_snapshot"))
        return feed

    return rows


def _files(lake: DuckLake, given: Given) -> DataFrame:
    time: datetime | str | None = given.get("snapshot_time")
    return table_named(lake, given["table_name"], given.get("schema")).files(
        version=given.get("snapshot_version"), timestamp=time
    )


def _current_snapshot(lake: DuckLake, given: Given) -> DataFrame:
    return local_frame(lake.spark, [(lake.current_snapshot().id,)], "id long")


def _last_committed_snapshot(lake: DuckLake, given: Given) -> DataFrame:
    last = lake.last_committed_snapshot()
    return local_frame(lake.spark, [(None if last is None else last.id,)], "id long")


_SPAN = ("table_name", "start_snapshot", "end_snapshot", "schema")

FUNCTIONS: dict[str, TableFunction] = {
    "snapshots": TableFunction((), 0, lambda lake, given: lake.snapshots()),
    "table_info": TableFunction((), 0, lambda lake, given: lake.tables()),
    "options": TableFunction((), 0, lambda lake, given: lake.options()),
    "settings": TableFunction((), 0, lambda lake, given: lake.settings()),
    "current_snapshot": TableFunction((), 0, _current_snapshot),
    "last_committed_snapshot": TableFunction((), 0, _last_committed_snapshot),
    "list_files": TableFunction(("table_name", "schema", "snapshot_version", "snapshot_time"), 1, _files),
    "table_changes": TableFunction(_SPAN, 2, _feed("changes")),
    "table_insertions": TableFunction(_SPAN, 2, _feed("insertions")),
    "table_deletions": TableFunction(_SPAN, 2, _feed("deletions")),
}
