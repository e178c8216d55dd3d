"""Runs jobs whose tasks write files: all of the files or none are left, and errors arrive as they were raised."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock import errors
from penstock.errors import InvalidError, PenstockError
from penstock.spark.arrow_transfer import WIDE_ROW_MARKER, WideRowError
from penstock.spark.column_assignment import MISFIT_MARKER
from penstock.spark.connect.jobs import tagged_job
from penstock.spark.connect.sessions import is_connect
from penstock.spark.java_errors import Py4JError, Py4JJavaError
from penstock.spark.job_progress import Work, job_progress
from penstock.spark.job_status import are_running, stages_of
from penstock.spark.jvm import session_tag
from penstock.spark.workers import other_python
from penstock.storage.parquet import delete_written

_RAISED = re.compile(r"penstock\.errors\.(\w+): (.*?)(?: SQLSTATE: \w+)?$", re.MULTILINE)
_MISFIT = re.compile(re.escape(MISFIT_MARKER) + r"(column .*? does not fit [\w(),]+)", re.DOTALL)
_DENIED = re.compile(
    r"^(?:OSError|PermissionError): (.*(?:ACCESS_DENIED|AccessDenied).*?)(?: SQLSTATE: \w+)?$", re.MULTILINE
)
_LOST = re.compile(r"CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND|Checkpoint block \w+ not found")
_UNKNOWN = Work()
_LONGEST_WAIT = 30.0  # seconds, for tasks that are being killed
_LONGEST_WAIT_FOR_NEWS = 5.0  # seconds, for what Spark tells its listeners


@dataclass
class TaskFiles:
    """The files that a job reports, by their paths in its directory; None before it does."""

    reported: frozenset[str] | None = None

    def report(self, paths: Iterable[str]) -> None:
        """Report the files of the job: those that are to stay."""
        self.reported = frozenset(paths)


@contextmanager
def file_writing_job(
    spark: SparkSession, directory: str | None, write_id: str, work: Work = _UNKNOWN
) -> Iterator[TaskFiles]:
    """Delete the files of a job that fails: those of tasks that came through, and of those that are still at it.

    One that comes through leaves those that it reported: where a task was tried more than once, what the other attempts
    wrote goes. The files are those in `directory` with `write_id` in their names; without one, the caller removes them,
    when no task is at it any more.
    """
    began = time.time()
    try:
        with interruptible_job(spark, work) as tag:
            files = TaskFiles()
            yield files
            if _tried_again(spark, tag, began):
                _wait_for_tasks(spark, tag)
                if directory is not None and files.reported is not None:
                    with suppress(OSError):  # the rows are all there
                        delete_written(directory, write_id, files.reported)
    except BaseException:
        if directory is not None:
            with suppress(OSError):  # what failed first is the news
                delete_written(directory, write_id)
        raise


@contextmanager
def interruptible_job(spark: SparkSession, work: Work = _UNKNOWN) -> Iterator[str]:
    """Run a job that is found by what interrupts its session, and that ends when it is left; gives its tag."""
    if is_connect(spark):
        with original_errors(), tagged_job(spark) as tag, job_progress(spark, tag, work):
            yield tag
        return
    context, tag = spark.sparkContext, f"penstock-{uuid4()}"
    present: Any = context.getJobTags()  # of Java: asked, as going through it ends with an error, which takes long
    tags = [one for one in (tag, session_tag(spark)) if one not in present]  # jobs may run in a session of their own
    for one in tags:
        context.addJobTag(one)
    try:
        with original_errors(), job_progress(spark, tag, work):
            yield tag
    except BaseException:
        with suppress(Py4JError):  # of a context that has stopped, and its tasks with it
            context.cancelJobsWithTag(tag)
            _wait_for_tasks(spark, tag)
        raise
    finally:
        with suppress(Py4JError):
            for one in tags:
                context.removeJobTag(one)


def _tried_again(spark: SparkSession, tag: str, began: float) -> bool:
    """Whether a task of the jobs with a tag was tried more than once; also where Spark does not say so in time.

    Also where an executor was lost since they began: Spark runs tasks again whose results it had, without telling.
    Of the tasks of a Spark Connect server nothing is known.
    """
    if is_connect(spark):
        return True
    tracker: Any = spark.sparkContext._jsc.sc().statusTracker()
    end = time.monotonic() + _LONGEST_WAIT_FOR_NEWS
    while are_running(tracker, tag):
        if time.monotonic() > end:
            return True
        time.sleep(0.005)
    store: Any = spark.sparkContext._jsc.sc().statusStore()
    for stage in stages_of(tracker, tag):
        told = store.lastStageAttempt(stage.stageId())
        if told.attemptId() or told.numFailedTasks() or told.numKilledTasks() or told.numActiveTasks():
            return True
    return _has_lost_executor(store, began)


def _has_lost_executor(store: Any, since: float) -> bool:
    executors = store.executorList(False)
    for number in range(executors.size()):
        gone = executors.apply(number).removeTime()
        if gone.isDefined() and gone.get().getTime() >= since * 1000:
            return True
    return False


def _wait_for_tasks(spark: SparkSession, tag: str) -> None:
    """Wait until no task of the jobs with a tag runs: Spark kills them in its own time.

    Their workers may outlive them, and remove then what they have written since (`check_task`).
    """
    if is_connect(spark):
        return
    tracker: Any = spark.sparkContext._jsc.sc().statusTracker()
    end = time.monotonic() + _LONGEST_WAIT
    running = True
    while running and time.monotonic() < end:
        time.sleep(0.1)
        running = are_running(tracker, tag) or any(stage.numActiveTasks() for stage in stages_of(tracker, tag))


@contextmanager
def original_errors() -> Iterator[None]:
    """Raise errors that Penstock raised inside a task, or that Spark met when it planned, as themselves."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        if WIDE_ROW_MARKER in str(error):
            raise WideRowError from None
        raised = _raised(str(error))
        if raised is None:
            raise
        raise raised from None


def _raised(text: str) -> PenstockError | None:
    """The error that Spark's text of it tells of."""
    if _LOST.search(text):
        return PenstockError(
            "an executor was lost, and with it rows that it kept between two steps of this statement; nothing was"
            " written: run it again, or set a checkpoint directory before (spark.sparkContext.setCheckpointDir),"
            " which keeps them safe"
        )
    other = other_python(text)
    if other:
        return PenstockError(f"{other}; nothing was written")
    denied = _DENIED.search(text)
    if denied:
        return PenstockError(
            f"the store refused a request of a task: {denied[1]}; this key needs s3:GetObject, s3:PutObject and"
            " s3:DeleteObject below the table's folder; nothing was written"
        )
    misfit = _MISFIT.search(text)
    if misfit:
        return InvalidError(f"{misfit[1]}; nothing was written")
    found = _RAISED.search(text)
    if found is None:
        return None
    kind: type[PenstockError] = getattr(errors, found[1])
    return kind(f"{found[2].strip()}; nothing was written")
