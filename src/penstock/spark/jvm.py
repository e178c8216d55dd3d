"""Reaches into the driver's JVM: Penstock's own classes there, and what Spark shows of its plans to Java alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from penstock.spark.connect import frames as connect_frames
from penstock.spark.connect import predicates
from penstock.spark.connect.file_lists import NO_FILTERS, FileList
from penstock.spark.connect.sessions import is_connect
from penstock.spark.java_classes import class_loader, java_class
from penstock.spark.planning_errors import FAILED, note_error, raise_as_themselves

_SOURCES = (
    "PlanningException", "FilterText", "CatalogFileIndex", "FileChain", "CatalogAggregates", "FollowFilters",
    "Projection", "Frames", "LocalRows",
)  # fmt: skip
_AGGREGATES = "\x02"  # a question that begins with it is not for files: see CatalogAggregates.java
STATEMENT = "_penstock_statement"  # see StatementNames.java
_OWN_SESSION = "penstock.session.own"  # set in sessions that only one query runs in
_EXPRESSIONS = "org.apache.spark.sql.classic.ExpressionUtils"
_frames: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()  # by JVM


class _Function:
    """A Python callable as a `java.util.function.Function`; what it raises, Spark's caller will see raised."""

    class Java:
        implements = ["java.util.function.Function"]  # noqa: RUF012 - py4j reads a list

    def __init__(self, call: Callable[[str], str]) -> None:
        self._call = call

    def apply(self, argument: str) -> str:
        try:
            if argument.startswith(_AGGREGATES):
                known = getattr(self._call, "aggregates", None)
                return known(argument[1:]) if known else ""
            return self._call(argument)
        except Exception as error:
            return FAILED + note_error(error)


def file_index(
    spark: SparkSession,
    planner: Callable[[str], str],
    constants: StructType,
    derived: Mapping[str, str],
    size_in_bytes: int,
    description: str,
    filters: str = NO_FILTERS,
) -> Any:
    """A Spark `FileIndex` that asks `planner` for files: filters as JSON in, records of files out.

    A planner with a method `aggregates` is also asked what is known of aggregates over its rows.

    `derived`: the SQL of columns that are computed from what is in the files, as `projected` takes it, each with the
    name by which the planner knows it. `filters` are what a Spark Connect session chooses files by, at once.
    """
    if is_connect(spark):
        return FileList(planner, constants, filters)
    from pyspark.java_gateway import ensure_callback_server_started

    gateway: Any = spark.sparkContext._gateway
    start_callbacks: Any = ensure_callback_server_started
    start_callbacks(gateway)
    return frames(spark).index(_Function(planner), constants.json(), json.dumps(derived), size_in_bytes, description)


def frames(spark: SparkSession) -> Any:
    """What makes the parts of a scan in the JVM, each in one call: see Frames.java."""
    gateway: Any = spark.sparkContext._gateway
    if gateway not in _frames:
        _frames[gateway] = new_object(spark, "penstock.Frames")
    return _frames[gateway]


def install_rules(spark: SparkSession) -> None:
    """Add Penstock's optimizer rules to a session, once."""
    rule: Any = new_object(spark, "penstock.FollowFilters")
    rule.install(spark._jsparkSession)


def new_object(spark: SparkSession, name: str, sources: tuple[str, ...] = _SOURCES) -> Any:
    """An object of one of Penstock's classes, whose sources are compiled if they were not yet."""
    raise_as_themselves()
    gateway: Any = spark.sparkContext._gateway
    constructor = class_loader(spark, "penstock.spark.java", sources).loadClass(name).getConstructors()[0]
    return constructor.newInstance(gateway.new_array(java_class(spark, "java.lang.Object"), 0))


def filter_text(frame: DataFrame, predicate: SparkColumn) -> str:
    """A predicate over a frame in the JSON that the planner reads filters in."""
    spark = frame.sparkSession
    if is_connect(spark):
        return predicates.filter_text(frame, predicate)
    plan = query_execution(frame.where(predicate)).analyzed()
    folded = java_class(spark, "org.apache.spark.sql.catalyst.optimizer.ConstantFolding").apply(plan)
    return _text_of(spark, folded.condition())


def optimized_filter_text(frame: DataFrame, predicate: SparkColumn) -> str | None:
    """The same of what Spark makes of the predicate when it plans; None where that is no filter of the frame's rows."""
    if is_connect(frame):
        return predicates.filter_text(frame, predicate)
    plan = query_execution(frame.where(predicate)).optimizedPlan()
    return _text_of(frame.sparkSession, plan.condition()) if plan.getClass().getSimpleName() == "Filter" else None


def _text_of(spark: SparkSession, condition: Any) -> str:
    jvm: Any = spark._jvm
    filters = jvm.PythonUtils.toSeq([condition])
    text: str = new_object(spark, "penstock.FilterText").all(filters, java_class(spark, "java.util.HashMap")())
    return text


def activate_session(spark: SparkSession) -> None:
    """Make a session the one of this thread, which Spark asks for settings when it plans."""
    java_class(spark, "org.apache.spark.sql.SparkSession").setActiveSession(spark._jsparkSession)


def in_session_with(frame: DataFrame, settings: Mapping[str, str]) -> DataFrame:
    """Move a query to a session of its own, with a few settings of its own: they change for no one else."""
    own = frame.sparkSession._jsparkSession.cloneSession()
    for key, value in {**settings, _OWN_SESSION: "true"}.items():
        own.conf().set(key, value)
    return _in_session(frame, own)


def own_session(frame: DataFrame) -> Any | None:
    """The session (in the JVM) that a query was moved to by `in_session_with`; None for one of its user's."""
    session: Any = frame._jdf.sparkSession()
    return session if session.conf().get(_OWN_SESSION, "") else None


def can_change_sessions(frame: DataFrame) -> bool:
    """Whether a query does the same in another session.

    Not if it is observed, which its own session is told of, nor if it runs Python functions of its user's, whose
    batches have the settings of the session.
    """
    patterns = java_class(frame.sparkSession, "org.apache.spark.sql.catalyst.trees.TreePattern")
    plan = query_execution(frame).analyzed()
    return not plan.containsPattern(patterns.PYTHON_UDF()) and "CollectMetrics" not in plan.toString()


def session_tag(spark: SparkSession) -> str:
    """The tag of all jobs of a session, by which `interruptAll` finds them."""
    session: Any = spark._jsparkSession
    return str(session.sessionJobTag())


def in_own_session(frame: DataFrame) -> DataFrame:
    """Move a query back to the session of its user."""
    return _in_session(frame, frame.sparkSession._jsparkSession)


def frame_of_plan(frame: DataFrame, plan: Any) -> DataFrame:
    """A DataFrame of a plan, in the session of another one."""
    return _of_plan(frame, frame.sparkSession._jsparkSession, plan)


def _in_session(frame: DataFrame, session: Any) -> DataFrame:
    return _of_plan(frame, session, query_execution(frame).analyzed())


def _of_plan(frame: DataFrame, session: Any, plan: Any) -> DataFrame:
    datasets = java_class(frame.sparkSession, "org.apache.spark.sql.classic.Dataset")
    return DataFrame(datasets.ofRows(session, plan), frame.sparkSession)


def qualified(frame: DataFrame, name: str, columns: Sequence[tuple[str, int]] | None = None) -> DataFrame:
    """A DataFrame by a name, as `alias`; and by a longer one, `_penstock_statement.NAME`, which nothing else has.

    If given, its columns are those at places, under other names.
    """
    spark = frame.sparkSession
    if is_connect(spark):
        return connect_frames.qualified(frame, name, columns)
    placed = None if columns is None else json.dumps(columns)
    return DataFrame(frames(spark).qualified(frame._jdf, name, STATEMENT, placed), spark)


def compares_columns(filtered: DataFrame) -> bool:
    """Whether the condition that rows were just filtered by compares a column with something.

    If not, `optimized_filter_text` says nothing of it.
    """
    return is_connect(filtered) or bool(frames(filtered.sparkSession).comparesColumns(filtered._jdf))


def query_execution(frame: DataFrame) -> Any:
    """Spark's execution of a query, with its plans."""
    jframe: Any = frame._jdf
    return jframe.queryExecution()


def catalyst_expression(spark: SparkSession, column: SparkColumn) -> Any:
    """The expression of Catalyst's behind a column."""
    return java_class(spark, _EXPRESSIONS).expression(column._jc)


def catalyst_column(spark: SparkSession, expression: Any) -> SparkColumn:
    """An expression of Catalyst's as a column, the names in it resolved or not."""
    return SparkColumn(java_class(spark, _EXPRESSIONS).column(expression))
