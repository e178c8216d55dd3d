"""Runs queries over the lake by Spark, for lakes that DuckDB cannot read, or not from here."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from uuid import uuid4

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from penstock.attaching import attach
from penstock.ducklake.model.objects import TableInfo
from penstock.errors import InvalidError
from penstock.explorer.lake_source import LakeSource, View
from penstock.explorer.queries import Limits, Rows, table_at
from penstock.explorer.query_rules import LakeNames, checked_query
from penstock.explorer.readers import LOOK, has_left
from penstock.lake import Lake
from penstock.spark.expressions import spark_quoted
from penstock.spark.java_errors import Py4JError, Py4JJavaError

_STOPPED = (Py4JError, AttributeError, OSError)  # what a context raises that has stopped


@dataclass
class SparkQueries:
    """Queries by Spark, one at a time. The lake is attached for each, so that its catalog is free between them."""

    source: LakeSource
    limits: Limits = field(default_factory=Limits)
    session: SparkSession | None = None
    engine: str = "Spark"
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def sample(self, view: View, table: TableInfo, offset: int, count: int) -> Rows:
        """Some rows of a table at the snapshot that is looked at."""
        with self._attached(view.attached_version) as lake:
            rows = lake.table(_name(table)).read(version=view.snapshot.id, nanoseconds="truncate")
            return self._collected(rows.offset(offset), count)

    def changes(self, view: View, table: TableInfo, first: int, last: int, offset: int, count: int) -> Rows:
        """Some of the rows that a span of snapshots changed, oldest first."""
        then = table_at(view, table, last)
        with self._attached(last) as lake:
            rows = lake.table(_name(then)).changes(first, last, nanoseconds="truncate")
            return self._collected(rows.orderBy("snapshot_id", "rowid", "change_type").offset(offset), count)

    def select(self, view: View, sql: str) -> Rows:
        """The first rows of a query that somebody wrote, over the snapshot that is looked at."""
        query = checked_query(sql, LakeNames.of(view.shown))
        with self._attached(view.attached_version) as lake:
            return self._collected(lake.sql(query, dialect="duckdb"), self.limits.rows)

    @contextmanager
    def _attached(self, version: int | None = None) -> Iterator[Lake]:
        options = self.source.options
        with self._turn:
            lake = attach(
                self.source.uri, data_path=options.data_path, create_if_not_exists=False, read_only=True,
                metadata_schema=options.metadata_schema, metadata_parameters=options.metadata_parameters,
                storage_options=self.source.storage_options or None, override_data_path=options.override_data_path,
                snapshot_version=version, spark=self.session,
            )  # fmt: skip
            with lake:
                yield lake

    def _collected(self, frame: DataFrame, count: int) -> Rows:
        names, types = frame.columns, [field.dataType.simpleString() for field in frame.schema.fields]
        numbered = frame.toDF(*(f"c{place}" for place in range(len(names))))
        letters = self.limits.letters
        texts = [F.col(name).cast("string") for name in numbered.columns]
        began = time.monotonic()
        with self._limited(frame.sparkSession):
            found = numbered.select(*(F.substring(text, 1, letters + 1) for text in texts)).limit(count + 1).collect()
        rows = [tuple(_cut(value, letters) for value in row) for row in found]
        seconds = time.monotonic() - began
        return Rows(tuple(names), tuple(types), tuple(rows[:count]), len(rows) > count, seconds)

    @contextmanager
    def _limited(self, spark: SparkSession) -> Iterator[None]:
        """Stops the jobs of this thread when their time is over, or nobody waits for them."""
        context, tag = spark.sparkContext, f"explorer-{uuid4().hex}"
        ended, stopped = threading.Event(), threading.Event()
        end, reader = time.monotonic() + self.limits.seconds, copy_context()

        def watch() -> None:
            while not ended.wait(LOOK):
                if time.monotonic() >= end or reader.run(has_left):
                    stopped.set()
                    # Again and again: between two jobs of a query there is nothing to end. Tags of the session
                    # (`interruptTag`) are only known to the thread that set them.
                    with suppress(*_STOPPED):
                        context.cancelJobsWithTag(tag)

        context.addJobTag(tag)
        context.setInterruptOnCancel(True)
        watching = threading.Thread(target=watch, daemon=True)
        watching.start()
        try:
            yield
        except (PySparkException, Py4JError) as error:
            if stopped.is_set():
                raise InvalidError(f"the query was stopped after {self.limits.seconds:g} seconds") from None
            raise InvalidError(f"Spark says: {self.source.without_secrets(_first_line(error))}") from None
        finally:
            ended.set()
            with suppress(*_STOPPED):
                context.removeJobTag(tag)


def _first_line(error: Exception) -> str:
    """What Spark says, without where in the JVM."""
    said = error.java_exception.toString() if isinstance(error, Py4JJavaError) else str(error)
    return next(iter(said.splitlines()), type(error).__name__)


def _name(table: TableInfo) -> str:
    return f"{spark_quoted(table.schema.name)}.{spark_quoted(table.name)}"


def _cut(value: str | None, letters: int) -> str | None:
    return value if value is None or len(value) <= letters else value[:letters] + "…"
