"""Shows how far the tasks of a job are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass
from threading import Event, Thread, get_ident
from typing import Any

from pyspark.sql import SparkSession

from penstock.spark.connect.sessions import is_connect
from penstock.spark.java_errors import Py4JError
from penstock.spark.job_status import job_status
from penstock.storage.progress import SILENT_SECONDS, ProgressBar, in_notebook, is_shown, progress

_SECONDS = 0.5


@dataclass(frozen=True)
class Work:
    """What a job has to do, as far as it is known before: the files that it goes through, and their rows."""

    files: int | None = None
    rows: int | None = None

    def show(self, bar: ProgressBar, done: int, tasks: int, rows_read: int) -> None:
        """Show how far it is, by the tasks that are done."""
        part = done / tasks
        rows = f"{int(self.rows * part):,} of {self.rows:,} rows" if self.rows else f"{rows_read:,} rows"
        note = rows if self.rows or rows_read else ""
        bar.reach(*((done, tasks) if self.files is None else (int(self.files * part), self.files)), note)

    @property
    def unit(self) -> str:
        """What it is counted in."""
        return "tasks" if self.files is None else "files"


@contextmanager
def job_progress(spark: SparkSession, tag: str, work: Work) -> Iterator[None]:
    """A progress bar for the jobs with a tag, as long as the block runs, where somebody may be looking."""
    if not is_shown() or _spark_shows_its_own(spark):
        yield
        return
    shown = _shown_by_server if is_connect(spark) else _shown_by_tracker
    with progress("write", work.files or 0, work.unit) as bar:
        with shown(spark, tag, work, bar):
            yield
        bar.complete()


def _spark_shows_its_own(spark: SparkSession) -> bool:
    """Whether Spark draws its bar on the same terminal; in notebooks that is elsewhere."""
    if is_connect(spark) or in_notebook():
        return False
    return spark.sparkContext.getConf().get("spark.ui.showConsoleProgress", "false") == "true"


@contextmanager
def _shown_by_tracker(spark: SparkSession, tag: str, work: Work, bar: ProgressBar) -> Iterator[None]:
    """Ask the JVM, from a thread of its own: this one waits for it."""
    ended, seen = Event(), Event()

    def look() -> None:
        with suppress(Py4JError, AttributeError, OSError):  # of a context that has stopped
            status = job_status(spark, tag)
            if status.tasks:
                seen.set()
                work.show(bar, status.done, status.tasks, status.rows)

    def watch() -> None:
        wait = SILENT_SECONDS
        while not ended.wait(wait):
            wait = _SECONDS
            look()

    # In the context of this thread: a notebook finds the cell by it.
    watcher = Thread(target=copy_context().run, args=(watch,), name="penstock-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
    if seen.is_set():  # what the last tasks have read, too
        look()


@contextmanager
def _shown_by_server(spark: Any, tag: str, work: Work, bar: ProgressBar) -> Iterator[None]:
    """Listen to what a Spark Connect server tells whoever waits for it."""
    waiting = get_ident()

    def told(stages: Iterable[Any] | None, **_: object) -> None:
        known = list(stages or ())
        tasks = sum(stage.num_tasks for stage in known)
        if tasks and get_ident() == waiting:
            work.show(bar, sum(stage.num_completed_tasks for stage in known), tasks, 0)

    spark.registerProgressHandler(told)
    try:
        yield
    finally:
        with suppress(ValueError):  # the program has cleared all of them meanwhile
            spark.removeProgressHandler(told)
