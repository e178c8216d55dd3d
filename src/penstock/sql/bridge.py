"""Answers Spark's catalog in Python: each question that the Java classes ask is a method of one of several objects."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from pyspark.sql import SparkSession

from penstock.errors import AlreadyExistsError
from penstock.spark.java_classes import class_loader, java_class
from penstock.spark.planning_errors import FAILED, note_error, raise_as_themselves
from penstock.spark.releases import has_views_of_catalogs
from penstock.sql.names import NoSuchSchemaError

_SOURCES = (
    "Lakes", "LakeException", "Values", "LakeRows", "LakeTable", "ScanCopy", "KeptPlans", "ReadLakeTables",
    "PinnedQuery", "Statement", "CommonExpressions", "StatementNames", "LakeCache", "ChangeLakeTables",
    "LakeProcedure", "TableChanges", "LakeCatalog", "LakeMacros", "LakeNames", "LakeSource", "LakeSink", "LakeFormat",
    "StreamLakeTables", "Installation",
)  # fmt: skip
_SERVICES = {"org.apache.spark.sql.sources.DataSourceRegister": "penstock.sql.LakeFormat"}
# Errors that Spark has exceptions of its own for, which its IF [NOT] EXISTS and its messages go by.
_KINDS: tuple[tuple[type[Exception], str], ...] = ((AlreadyExistsError, "exists"), (NoSuchSchemaError, "no schema"))


def items_of(items: Any) -> list[Any]:
    """The items of a Java list, by their places: its iterator ends with an exception, which takes PySpark 70 ms."""
    return [items[place] for place in range(len(items))]


Caller = Callable[[int, str | None], AbstractContextManager[None]]


def _anybody(java_thread: int, transaction: str | None) -> AbstractContextManager[None]:
    return nullcontext()


class Answers:
    """The answers for one lake, as the `java.util.function.Function` that its catalogs call.

    `caller` gives a thread of this process what the one in the JVM has, for which it answers.
    """

    class Java:
        implements = ["java.util.function.Function"]  # noqa: RUF012 - py4j reads a list

    def __init__(self, answering: Sequence[object], caller: Caller = _anybody) -> None:
        self._caller = caller
        self._verbs = {
            name: getattr(answers, name)
            for answers in answering
            for name in dir(type(answers))
            if not name.startswith("_")
        }

    def apply(self, call: Any) -> Any:
        """Answers [the JVM's thread, its transaction, verb, argument...], which may be JSON of it.

        An error is noted, and told by its number.
        """
        thread, transaction, verb, *arguments = json.loads(call) if isinstance(call, str) else items_of(call)
        try:
            with self._caller(thread, transaction):
                answer: Callable[..., Any] = self._verbs[verb]
                return answer(*arguments)
        except Exception as error:
            kind = next((kind for of, kind in _KINDS if isinstance(error, of)), "-")
            return f"{FAILED}{kind.replace(' ', '_')} {note_error(error)}"


def load_classes(spark: SparkSession) -> None:
    """Bring the Java classes into the JVM, where Spark finds the catalog by its name."""
    from pyspark.java_gateway import ensure_callback_server_started

    raise_as_themselves()
    gateway: Any = spark.sparkContext._gateway
    start_callbacks: Any = ensure_callback_server_started
    start_callbacks(gateway)
    class_loader(spark, "penstock.sql.java", (*_SOURCES, _catalog_source(spark)), _SERVICES)


def _catalog_source(spark: SparkSession) -> str:
    return "LakeRelations" if has_views_of_catalogs(spark.version) else "LakeViews"


def catalog_class(spark: SparkSession) -> str:
    """The name of the class that Spark makes a lake's catalog of."""
    return f"penstock.sql.{_catalog_source(spark)}"


def sql_class(spark: SparkSession, name: str) -> Any:
    """One of the Java classes."""
    return java_class(spark, f"penstock.sql.{name}")
