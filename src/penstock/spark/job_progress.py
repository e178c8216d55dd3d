"""Tells on a terminal how far the tasks of a job are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from pyspark.sql import SparkSession

from penstock.spark.connect.sessions import is_connect
from penstock.spark.file_tasks import tasks_done
from penstock.spark.java_errors import Py4JError
from penstock.storage.progress import is_terminal, progress

_SECONDS = 1.0


@contextmanager
def job_progress(spark: SparkSession, tag: str, verb: str, files: int, size: int) -> Iterator[None]:
    """A progress line for the jobs with a tag, as long as the block runs. Without a terminal there is none."""
    if not is_terminal() or is_connect(spark):
        yield
        return
    ended = Event()
    with progress(verb, files, size) as line:

        def watch() -> None:
            while not ended.wait(_SECONDS):
                try:
                    done, all_tasks = tasks_done(spark, tag)
                except (Py4JError, AttributeError, OSError):  # of a context that has stopped
                    return
                if all_tasks:
                    line.reach(min(1.0, done / all_tasks))

        watcher = Thread(target=watch, name="penstock-progress", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()
