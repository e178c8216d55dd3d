"""Tells how far Spark is with the jobs that have a tag."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from penstock.spark.java_errors import Py4JJavaError


@dataclass(frozen=True)
class JobStatus:
    """How many tasks there are as far as is known yet, how many of them are done, and the rows that were read."""

    tasks: int = 0
    done: int = 0
    rows: int = 0


def job_status(spark: SparkSession, tag: str) -> JobStatus:
    """How far the jobs with a tag are."""
    context: Any = spark.sparkContext._jsc.sc()
    tracker, store = context.statusTracker(), context.statusStore()
    known = {number: _stage_data(store, number) for number in _stage_ids(tracker, tag)}
    stages = [stage for stage in _needed(known) if stage is not None]
    return JobStatus(
        sum(stage.numTasks() for stage in stages),
        sum(stage.numCompleteTasks() for stage in stages),
        sum(stage.inputRecords() for stage in stages),
    )


def _needed(stages: Mapping[int, Any]) -> Iterator[Any]:
    """The stages that have begun, and those after them; what waits before one that has begun is skipped."""
    begun = {number for number, stage in stages.items() if stage and str(stage.status()) not in ("PENDING", "SKIPPED")}
    last = max(begun, default=-1)
    return (stage for number, stage in stages.items() if number in begun or number > last)


def are_running(tracker: Any, tag: str) -> bool:
    """Whether jobs with a tag run."""
    return any(job.status().toString() == "RUNNING" for job in _jobs(tracker, tag))


def stages_of(tracker: Any, tag: str) -> list[Any]:
    """What Spark knows of the stages of the jobs with a tag."""
    found = [tracker.getStageInfo(number) for number in _stage_ids(tracker, tag)]
    return [stage.get() for stage in found if stage.isDefined()]


def _jobs(tracker: Any, tag: str) -> list[Any]:
    found = [tracker.getJobInfo(number) for number in tracker.getJobIdsForTag(tag)]
    return [job.get() for job in found if job.isDefined()]


def _stage_ids(tracker: Any, tag: str) -> list[int]:
    """A stage that several jobs need is one."""
    return sorted({int(number) for job in _jobs(tracker, tag) for number in job.stageIds()})


def _stage_data(store: Any, number: int) -> Any:
    try:
        return store.lastStageAttempt(number)
    except Py4JJavaError:  # it has not begun, or it was so long ago that Spark has forgotten it
        return None
