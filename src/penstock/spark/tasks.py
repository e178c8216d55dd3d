"""Jobs whose tasks write files: all of the files or none, and errors as they were raised."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock import errors
from penstock.errors import InvalidError, PenstockError
from penstock.spark.assignment import MISFIT
from penstock.storage.parquet import delete_written

_RAISED = re.compile(r"penstock\.errors\.(\w+): (.*?)(?: SQLSTATE: \w+)?$", re.MULTILINE)
_MISFIT = re.compile(re.escape(MISFIT) + r"(column .*? does not fit [\w(),]+)", re.DOTALL)
_LONGEST_WAIT = 30.0  # seconds, for tasks that are being killed


@contextmanager
def writing_tasks(spark: SparkSession, directory: str | None, write_id: str) -> Iterator[None]:
    """A job that fails leaves no file: not those of tasks that came through, nor of those that are still at it.

    The files are those in `directory` with `write_id` in their names; without one, the caller removes them.
    """
    context, tag = spark.sparkContext, f"penstock-{write_id}"
    context.addJobTag(tag)
    try:
        with raised_by_tasks():
            yield
    except BaseException:
        context.cancelJobsWithTag(tag)
        _wait_for_tasks(spark, tag)
        if directory is not None:
            with suppress(OSError):  # what failed first is the news
                delete_written(directory, write_id)
        raise
    finally:
        context.removeJobTag(tag)


def _wait_for_tasks(spark: SparkSession, tag: str) -> None:
    """Wait until no task of the jobs with a tag runs: Spark kills them in its own time."""
    tracker: Any = spark.sparkContext._jsc.sc().statusTracker()
    end = time.monotonic() + _LONGEST_WAIT
    running = True
    while running and time.monotonic() < end:
        time.sleep(0.1)
        jobs = [tracker.getJobInfo(number) for number in tracker.getJobIdsForTag(tag)]
        stages = [tracker.getStageInfo(number) for job in jobs if job.isDefined() for number in job.get().stageIds()]
        running = any(stage.isDefined() and stage.get().numActiveTasks() for stage in stages)


@contextmanager
def raised_by_tasks() -> Iterator[None]:
    """Errors that Penstock raised on purpose inside a task, or that Spark met when it planned, as themselves."""
    try:
        yield
    except PySparkException as error:
        raised = _raised(str(error))
        if raised is None:
            raise
        raise raised from None


def _raised(text: str) -> PenstockError | None:
    """The error that Spark's text of it tells of."""
    misfit = _MISFIT.search(text)
    if misfit:
        return InvalidError(f"{misfit[1]}; nothing was written")
    found = _RAISED.search(text)
    if found is None:
        return None
    kind: type[PenstockError] = getattr(errors, found[1])
    return kind(f"{found[2].strip()}; nothing was written")
