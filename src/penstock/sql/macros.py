"""Answers calls of a lake's macros: scalar ones as an expression of Spark's, table macros as a query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import types as T  # noqa: N812

from penstock.ducklake.catalog.objects import same_name
from penstock.ducklake.lake import DuckLake
from penstock.ducklake.model.names import DEFAULT_SCHEMA
from penstock.ducklake.model.objects import Macro
from penstock.errors import InvalidError
from penstock.spark.jvm import query_execution
from penstock.spark.schemas import columns_of
from penstock.spark.versions import session_time_zone
from penstock.sql.bridge import items_of
from penstock.sql.duckdb_dialect.stand_ins import Source
from penstock.sql.duckdb_dialect.syntax import duckdb_literal
from penstock.sql.duckdb_dialect.translation import translated_expression
from penstock.sql.duckdb_queries import LakeObjects, translated_frame
from penstock.sql.sessions import session_in_lake
from penstock.sql.used_definitions import UsedDefinitions
from penstock.storage.duckdb_sql import duckdb_quoted, duckdb_type, text_literal

_ARGUMENT = "_penstock_argument_"  # as in the Java class LakeMacros
_CONSTANTS = (T.NumericType, T.StringType, T.BooleanType)


class Macros:
    """Questions of LakeMacros, and of TableFunctions."""

    def __init__(self, lake: DuckLake, lake_id: str, used: UsedDefinitions) -> None:
        self._lake, self._id, self._used = lake, lake_id, used

    def is_macro(self, path: Any, qualified: bool) -> bool:
        """Whether a name is a scalar macro's. One that says it is the lake's has to be."""
        names = items_of(path)
        found = self._find(names, "scalar") is not None
        if qualified and not found:
            raise InvalidError(f"the lake has no macro {'.'.join(names)}; functions of Spark's have no catalog's name")
        return found

    def macro_note(self, path: Any, kind: str) -> str | None:
        """What to note of a macro for when a query runs; None where there is none."""
        found = self._find(items_of(path), kind)
        return None if found is None else self._used.of_macro(found)

    def macro_expression(self, catalog: str, path: Any, words: Any, types: Any, constants: Any, ansi: bool) -> str:
        """A call of a macro as an expression of Spark's, in which its arguments have names of ours."""
        macro = self._find(items_of(path), "scalar")
        if macro is None:
            raise InvalidError(f"macro {'.'.join(items_of(path))} is gone")
        what = f"macro {macro.schema}.{macro.name}"
        if not ansi:
            raise InvalidError(f"{what} is DuckDB's, and computes as DuckDB does only with spark.sql.ansi.enabled")
        kinds = [T._parse_datatype_json_string(kind) for kind in items_of(types)]
        nulls = [isinstance(kind, T.NullType) for kind in kinds]
        kinds = [T.IntegerType() if null else kind for null, kind in zip(nulls, kinds, strict=True)]
        fields = [T.StructField(f"{_ARGUMENT}{place}", kind) for place, kind in enumerate(kinds)]
        columns = columns_of(self._lake.spark, T.StructType(fields or [T.StructField("none", T.IntegerType())]))
        given = [
            "NULL"
            if nulls[place]
            else f"CAST({text_literal(value)} AS {duckdb_type(columns[place])})"
            if value is not None and isinstance(kinds[place], _CONSTANTS)
            else duckdb_quoted(columns[place].name)
            for place, value in enumerate(items_of(constants))
        ]
        session = self._lake.spark._jsparkSession
        return translated_expression(
            f"{duckdb_quoted(macro.schema)}.{duckdb_quoted(macro.name)}({_arguments(items_of(words), given)})",
            Source("", columns),
            LakeObjects(self._lake, catalog, session),
            catalog,
            session_time_zone(self._lake.spark),
            what,
            macro.implementations[0].sql,
        )

    def is_table_macro(self, name: str) -> bool:
        """Whether a bare name is a table macro's."""
        return self._find([name], "table") is not None

    def table_macro(
        self, catalog: str, path: Sequence[str], names: Sequence[str | None], values: Sequence[Any]
    ) -> Any | None:
        """The plan of a table macro's rows; None where there is none of the name."""
        macro = self._find(path, "table")
        if macro is None:
            return None
        what = f"macro {macro.schema}.{macro.name}"
        arguments = _arguments(names, [duckdb_literal(value) for value in values])
        session = session_in_lake(self._lake.spark, catalog, self._id, DEFAULT_SCHEMA)
        query = f"FROM {duckdb_quoted(macro.schema)}.{duckdb_quoted(macro.name)}({arguments})"
        return query_execution(translated_frame(self._lake, catalog, session, query, what)).analyzed()

    def _find(self, path: Sequence[str], kind: str) -> Macro | None:
        *schema, name = path
        if len(schema) > 1:
            return None
        for macro in self._lake.macros():
            known = same_name(macro.name, name) and same_name(macro.schema, schema[0] if schema else DEFAULT_SCHEMA)
            if known and any(way.type == kind for way in macro.implementations):
                return macro
        return None


def _arguments(names: Sequence[str | None], given: Sequence[str]) -> str:
    return ", ".join(
        value if name is None else f"{duckdb_quoted(name)} := {value}" for name, value in zip(names, given, strict=True)
    )
