"""Tells a worker of Spark's that its task has ended: nobody else does, and what it writes from then on would stay."""

from __future__ import annotations

import select
import sys
import threading
from collections.abc import Iterable, Iterator
from typing import TypeVar

Rows = TypeVar("Rows")


class TaskEndedError(Exception):
    """Raised in a worker whose task has ended, so that it removes its files; nobody is there to hear it."""


def check_task() -> None:
    """Raise a TaskEndedError in a worker whose task has failed or was killed; elsewhere, do nothing.

    Spark closes its connection to the worker before it says that the task has ended, and to the worker that looks as if
    all of its rows had come. So a worker asks at the end of its rows, and after each file: those that were complete
    while the task ran are there for the driver to find, which removes them when no task runs; later ones it removes.
    """
    connection = _connection()
    if connection is None:
        return
    poll = select.poll()
    poll.register(connection, select.POLLRDHUP)  # bytes that are not read yet do not hide it
    if poll.poll(0):
        raise TaskEndedError("Spark has ended the task that this worker writes files for")


def complete(rows: Iterable[Rows]) -> Iterator[Rows]:
    """All rows of a task, and an error where they end only because the task did."""
    yield from rows
    check_task()


def _connection() -> int | None:
    """The descriptor that this process, if it is a worker, reads its rows from. Only Linux tells of a closed one."""
    if sys.platform != "linux":
        return None
    # PySpark gives it to no function of ours; files may be written in other threads than its own.
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None:
        if frame.f_globals.get("__package__") == "pyspark" and "infile" in frame.f_code.co_varnames:
            descriptor: int = frame.f_locals["infile"].fileno()
            return descriptor
        frame = frame.f_back
    return None
