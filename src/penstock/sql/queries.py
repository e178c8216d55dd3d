"""Runs statements in which a lake is the current catalog, without a change of the user's session."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from penstock.ducklake.lake import DuckLake
from penstock.ducklake.model.names import DEFAULT_SCHEMA
from penstock.errors import InvalidError
from penstock.spark.connect.sessions import refuse_on_connect
from penstock.spark.jvm import frame_of_plan, query_execution
from penstock.sql.bridge import sql_class
from penstock.sql.duckdb_dialect.stand_ins import DIALECT as DUCKDB
from penstock.sql.duckdb_queries import translated_frame
from penstock.sql.registration import door_to
from penstock.sql.sessions import session_in_lake
from penstock.sql.views import DIALECT as SPARK

_UNNAMED = "penstock_lake_"  # and its number: a name that no other catalog of the session has
# Statements that are only about the session, which would be gone with the clone that they run in.
_OF_SESSIONS = (
    "CreateViewCommand", "CreateTempViewUsing", "SetCommand", "ResetCommand", "SetCatalogAndNamespace",
    "SetCatalogCommand", "SetNamespaceCommand", "CreateFunctionCommand", "DropFunctionCommand", "AddJarsCommand",
    "AddFilesCommand", "CreateVariable", "DropVariable", "SetVariable", "CreateUserDefinedFunctionCommand",
)  # fmt: skip


def lake_query(lake: DuckLake, query: str, args: dict[str, Any] | list[Any] | None, dialect: str) -> DataFrame:
    """The rows of a statement; names without a catalog are the lake's."""
    if dialect not in (SPARK, DUCKDB):
        raise InvalidError(f"{dialect!r} is no dialect that Penstock knows; there are {SPARK!r} and {DUCKDB!r}")
    refuse_on_connect(
        lake.spark, "lake.sql", "call createOrReplaceTempView on what `lake.table(...).read()` gives, and spark.sql"
    )
    door = door_to(lake)
    sql_class(lake.spark, "Installation").into(lake.spark._jsparkSession)
    name = next((name for session, name in door.registered if session is lake.spark), f"{_UNNAMED}{door.id}")
    own = session_in_lake(lake.spark, name, door.id, DEFAULT_SCHEMA)
    if dialect == DUCKDB:
        frame = translated_frame(lake, name, own, query, "the query", args)
        return frame_of_plan(DataFrame(frame._jdf, lake.spark), query_execution(frame).analyzed())
    kind = own.sessionState().sqlParser().parsePlan(query).getClass().getSimpleName()
    if kind in _OF_SESSIONS:
        raise InvalidError(f"{query!r} changes the session and not the lake; use spark.sql, which keeps the change")
    frame = SparkSession(lake.spark.sparkContext, own).sql(query, args)
    done = query_execution(frame).commandExecuted()  # a command has run; its plan would run it again
    return frame_of_plan(DataFrame(frame._jdf, lake.spark), done)
