"""Keeps the rows that a statement computes once and looks at several times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from pyspark.sql import DataFrame

from penstock.spark.connect.sessions import is_connect
from penstock.spark.file_tasks import original_errors
from penstock.spark.java_classes import java_class
from penstock.spark.java_errors import Py4JJavaError
from penstock.spark.jvm import in_own_session, own_session, query_execution

_CONSTRAINTS = "spark.sql.constraintPropagation.enabled"
Keep = Callable[[DataFrame], DataFrame]


@contextmanager
def row_keeper() -> Iterator[Keep]:
    """Keep rows of DataFrames until the block ends: in the executors, or in files, if there is a checkpoint directory.

    Rows that only executors keep are lost with them: then the statement fails, with an error that says so.
    """
    kept: list[DataFrame] = []

    def keep(frame: DataFrame) -> DataFrame:
        if is_connect(frame):
            return frame.localCheckpoint()  # which the server forgets when nobody has the frame any more
        safe = frame.sparkSession.sparkContext.getCheckpointDir() is not None
        planned = _without_constraints(frame)
        kept.append(in_own_session(planned.checkpoint() if safe else planned.localCheckpoint()))
        return kept[-1]

    try:
        with original_errors():
            yield keep
    finally:
        for frame in kept:
            with suppress(Py4JJavaError):  # what was done is done; Spark's cleaner may come to it
                _delete_files(frame)


def _without_constraints(frame: DataFrame) -> DataFrame:
    """The frame, planned; if its session is its own, a checkpoint does not ask there what holds for all rows.

    Spark finds that out column by column, and for each has twice as much to go through as for the one before where an
    expression is about all of them, as `run_in_batches` has one: with a hundred columns it does not come to an end.
    """
    own = own_session(frame)
    if own is not None:
        query_execution(frame).executedPlan()
        own.conf().set(_CONSTRAINTS, "false")
    return frame


def _delete_files(frame: DataFrame) -> None:
    """Remove the checkpoint of a DataFrame, if it has files."""
    file = query_execution(frame).analyzed().rdd().getCheckpointFile()
    if file.isDefined():
        path = java_class(frame.sparkSession, "org.apache.hadoop.fs.Path")(file.get())
        path.getFileSystem(frame.sparkSession._jsc.hadoopConfiguration()).delete(path, True)
