"""A Spark driver, a process of its own, that runs one statement after the other on a cluster when it is told to."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import SparkSession

import penstock
from support import s3_server
from support.cluster_statements import BATCH_ROWS
from support.processes import LONGEST, READY, Child

_TAG = "of-tests"
_MOST_TASKS = 1000  # of a stage
_SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.cores.max": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH_ROWS),
    # Tests kill a task's processes more than once.
    "spark.task.maxFailures": "8",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.5",
    "spark.speculation.interval": "100ms",
}


@dataclass(frozen=True)
class Outcome:
    """What came of a statement: an error, if there was one, and what became of tasks on the way."""

    error: str | None
    failed_tasks: int  # or killed
    speculative_tasks: int  # begun beside one that was slow


class ClusterDriver:
    """The driver, as the tests see it."""

    def __init__(self, master: str, python: Path, **settings: str) -> None:
        self._child = Child(_drive, (master, str(python), settings))
        self._child.is_ready()

    def begin(self, statement: Callable[..., None], *arguments: Any) -> None:
        """Begin a function of a module in `support`, which gets the session before its arguments."""
        self._child.pipe.send((statement, arguments))

    @property
    def is_done(self) -> bool:
        """Whether something has come of it."""
        return self._child.pipe.poll()

    def outcome(self) -> Outcome:
        """Wait for what comes of it."""
        told: Outcome = self._child.told()
        return told

    def run(self, statement: Callable[..., None], *arguments: Any) -> None:
        """Run a statement that comes through."""
        self.begin(statement, *arguments)
        outcome = self.outcome()
        assert outcome.error is None, outcome.error

    def stop(self) -> None:
        self._child.pipe.send(None)
        self._child.process.join(LONGEST)
        self._child.kill()


def _drive(master: str, python: str, settings: dict[str, str], pipe: Connection) -> None:
    os.environ["PYSPARK_PYTHON"] = python
    jars = {"spark.jars": ",".join(s3_server.jars())}
    with penstock.session(master, **{**_SETTINGS, **jars, **settings}) as spark:
        spark.sparkContext.addJobTag(_TAG)
        pipe.send(READY)
        while (told := pipe.recv()) is not None:
            statement, arguments = told
            cloudpickle.register_pickle_by_value(sys.modules[statement.__module__])  # the workers do not have it
            (failed, speculative), error = _counted_tasks(spark), None
            try:
                statement(spark, *arguments)
            except Exception as raised:
                error = f"{type(raised).__name__}: {raised}"
            now_failed, now_speculative = _counted_tasks(spark)
            pipe.send(Outcome(error, now_failed - failed, now_speculative - speculative))


def _counted_tasks(spark: SparkSession) -> tuple[int, int]:
    """How many tasks of all jobs so far came to nothing, and how many were begun beside a slow one."""
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()  # what is counted comes later than the job's end
    tracker, store = context.statusTracker(), context.statusStore()
    jobs = [tracker.getJobInfo(number) for number in tracker.getJobIdsForTag(_TAG)]
    numbers = {number for job in jobs if job.isDefined() for number in job.get().stageIds()}
    stages = [store.lastStageAttempt(number) for number in numbers if tracker.getStageInfo(number).isDefined()]
    failed = sum(stage.numFailedTasks() + stage.numKilledTasks() + stage.attemptId() for stage in stages)
    lists = [store.taskList(stage.stageId(), stage.attemptId(), _MOST_TASKS) for stage in stages]
    return failed, sum(tasks.apply(place).speculative() for tasks in lists for place in range(tasks.size()))
