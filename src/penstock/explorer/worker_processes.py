"""Gives a task to a process of its own, and stops that when its time is over."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from penstock.errors import InvalidError
from penstock.explorer.query_worker import FilterTask, QueryTask

_WORKER = "from penstock.explorer.query_worker import main; main()"


def answered(task: QueryTask | FilterTask, seconds: float) -> Mapping[str, Any]:
    """What the task gives. Raises InvalidError where it takes longer, or more memory than there is."""
    process = subprocess.Popen(  # -P: a file of the current folder may have the name of a module
        [sys.executable, "-P", "-c", _WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        output, _ = process.communicate(pickle.dumps(task), timeout=seconds)
    except subprocess.TimeoutExpired:
        raise InvalidError(
            f"the query was stopped after {seconds:g} seconds; ask for less, or run it with `penstock sql`, which has "
            "no limit"
        ) from None
    finally:
        process.kill()
        process.communicate()
    if process.returncode or not output:
        raise InvalidError(
            "the process that ran the query has ended without an answer, as it does when memory runs out; ask for less"
        )
    answer: Mapping[str, Any] = json.loads(output)
    return answer
