"""Gives a task to a process of its own, and stops that when its time is over, or nobody waits for it."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

from penstock.errors import InvalidError
from penstock.explorer.query_worker import FilterTask, QueryTask
from penstock.explorer.readers import LOOK, has_left

_WORKER = "from penstock.explorer.query_worker import main; main()"


def answered(task: QueryTask | FilterTask, seconds: float) -> Mapping[str, Any]:
    """What the task gives. Raises InvalidError where it takes longer, more memory than there is, or its reader left."""
    process = subprocess.Popen(  # -P: a file of the current folder may have the name of a module
        [sys.executable, "-P", "-c", _WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        output = _output(process, pickle.dumps(task), seconds)
    finally:
        process.kill()
        process.communicate()
    if process.returncode or not output:
        raise InvalidError(
            "the process that ran the query has ended without an answer, as it does when memory runs out; ask for less"
        )
    answer: Mapping[str, Any] = json.loads(output)
    return answer


def _output(process: subprocess.Popen[bytes], task: bytes, seconds: float) -> bytes:
    end = time.monotonic() + seconds
    given: bytes | None = task
    while True:
        try:
            return process.communicate(given, timeout=min(LOOK, max(0.0, end - time.monotonic())))[0]
        except subprocess.TimeoutExpired:
            given = None  # what was not written yet is kept
            if has_left():
                raise InvalidError("the query was stopped, since nobody waits for it") from None
            if time.monotonic() >= end:
                raise InvalidError(
                    f"the query was stopped after {seconds:g} seconds; ask for less, or run it with `penstock sql`, "
                    "which has no limit"
                ) from None
