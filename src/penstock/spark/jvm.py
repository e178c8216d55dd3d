"""Compiles Penstock's few Java classes in the driver's JVM, with the compiler that Spark ships for its own code."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.column import Column as ClassicColumn
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.types import StructType

from penstock.spark.planning_errors import FAILED, note_error

_SOURCES = ("PlanningException", "FilterText", "CatalogFileIndex", "FollowFilters")
_EXPRESSIONS = "org.apache.spark.sql.classic.ExpressionUtils"
_loaders: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_lock = threading.Lock()


class _Function:
    """A Python callable as a `java.util.function.Function`; what it raises, Spark's caller will see raised."""

    class Java:
        implements = ["java.util.function.Function"]  # noqa: RUF012 - py4j reads a list

    def __init__(self, call: Callable[[str], str]) -> None:
        self._call = call

    def apply(self, argument: str) -> str:
        try:
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
) -> Any:
    """A Spark `FileIndex` that asks `planner` for files: filters as JSON in, records of files out."""
    gateway: Any = spark.sparkContext._gateway
    start_callbacks: Any = ensure_callback_server_started
    start_callbacks(gateway)
    index = _new(spark, "penstock.CatalogFileIndex")
    names = java_class(spark, "java.util.HashMap")()
    for sql, name in derived.items():
        names.put(sql, name)
    return index.init(_Function(planner), java_type(spark, constants), names, size_in_bytes, description)


def install_rules(spark: SparkSession) -> None:
    """Add Penstock's optimizer rule to a session, once."""
    rule: Any = _new(spark, "penstock.FollowFilters")
    rule.install(spark._jsparkSession)


def java_type(spark: SparkSession, schema: StructType) -> Any:
    """A schema as Spark's JVM has it."""
    return java_class(spark, "org.apache.spark.sql.types.DataType").fromJson(schema.json())


def java_class(spark: SparkSession, name: str) -> Any:
    """A class of the driver's JVM by its full name.

    Written as `jvm.org.apache...`, the JVM would look for a class `org` in each of Spark's JARs first, then for
    `org.apache`: two milliseconds every time.
    """
    return getattr(spark._jvm, name)


def _new(spark: SparkSession, name: str) -> Any:
    gateway: Any = spark.sparkContext._gateway
    constructor = _loader(spark).loadClass(name).getConstructors()[0]
    return constructor.newInstance(gateway.new_array(java_class(spark, "java.lang.Object"), 0))


def _loader(spark: SparkSession) -> Any:
    """The class loader that holds the compiled classes; each class sees those before it."""
    gateway: Any = spark.sparkContext._gateway
    with _lock:
        if gateway not in _loaders:
            loader = java_class(spark, "java.lang.Thread").currentThread().getContextClassLoader()
            for name in _SOURCES:
                compiler = java_class(spark, "org.codehaus.janino.SimpleCompiler")()
                compiler.setParentClassLoader(loader)
                compiler.cook(files("penstock.spark.java").joinpath(f"{name}.java").read_text())
                loader = compiler.getClassLoader()
            _loaders[gateway] = loader
        return _loaders[gateway]


def filter_text(frame: DataFrame, predicate: SparkColumn) -> str:
    """A predicate over a frame in the JSON that the planner reads filters in."""
    spark = frame.sparkSession
    jvm: Any = spark._jvm
    plan = query_execution(frame.where(predicate)).analyzed()
    folded = java_class(spark, "org.apache.spark.sql.catalyst.optimizer.ConstantFolding").apply(plan)
    filters = jvm.PythonUtils.toSeq([folded.condition()])
    text: str = _new(spark, "penstock.FilterText").all(filters, java_class(spark, "java.util.HashMap")())
    return text


def activate_session(spark: SparkSession) -> None:
    """Make a session the one of this thread, which Spark asks for settings when it plans."""
    java_class(spark, "org.apache.spark.sql.SparkSession").setActiveSession(spark._jsparkSession)


def in_session_with(frame: DataFrame, settings: Mapping[str, str]) -> DataFrame:
    """Move a query to a session of its own, with a few settings of its own: they change for no one else."""
    own = frame.sparkSession._jsparkSession.cloneSession()
    for key, value in settings.items():
        own.conf().set(key, value)
    return _in_session(frame, own)


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


def _in_session(frame: DataFrame, session: Any) -> DataFrame:
    datasets = java_class(frame.sparkSession, "org.apache.spark.sql.classic.Dataset")
    return ClassicDataFrame(datasets.ofRows(session, query_execution(frame).analyzed()), frame.sparkSession)


def query_execution(frame: DataFrame) -> Any:
    """Spark's execution of a query, with its plans."""
    jframe: Any = frame._jdf
    return jframe.queryExecution()


def catalyst_expression(spark: SparkSession, column: SparkColumn) -> Any:
    """The expression of Catalyst's behind a column."""
    return java_class(spark, _EXPRESSIONS).expression(column._jc)


def catalyst_column(spark: SparkSession, expression: Any) -> SparkColumn:
    """An expression of Catalyst's as a column, the names in it resolved or not."""
    return ClassicColumn(java_class(spark, _EXPRESSIONS).column(expression))
