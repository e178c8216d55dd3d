"""Sends functions to the Python of Spark's workers, which may be another than this program's."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from penstock.spark.contexts import running_context
from penstock.spark.shipping import is_on_this_machine, ship_where_needed
from penstock.storage.options import known_stores

Mapping = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
_LACKS = "penstock: these workers run another Python"
_MISSING = re.compile(rf"{_LACKS}: (\S+ \([\d.]+\)) has no module '(\w+)'")
_NEEDED = ("penstock", "lance", "duckdb", "numpy", "mmh3", "pyiceberg_core", "pyroaring")
# What a worker needs before it comes to any function of ours.
_MISSING_BEFORE = re.compile(r"ModuleNotFoundError: No module named '(penstock|pyarrow|pyspark|pandas|numpy)'")
_OTHER_VERSION = re.compile(r"PYTHON_VERSION_MISMATCH\].*?in worker[^:]*: ([\d.]+)")


def map_in_workers(frame: DataFrame, job: Mapping, schema: str | StructType) -> DataFrame:
    """Run `DataFrame.mapInArrow`, with a job that says so where the workers' Python lacks what it needs."""
    ship_where_needed(frame.sparkSession)
    return frame.mapInArrow(_for_any_python(job), schema)


def _for_any_python(job: Mapping) -> Mapping:
    """The job in a function that travels whole, with what it needs to reach the buckets that this process knows.

    To take it out, Penstock must be there.
    """
    packed: bytes = cloudpickle.dumps((job, known_stores()))  # type: ignore[no-untyped-call]
    lacks, needed = _LACKS, _NEEDED

    def call(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pickle
        import sys

        try:
            unpacked, stores = pickle.loads(packed)
        except ModuleNotFoundError as error:
            if error.name not in needed:
                raise
            python = f"{sys.executable} ({'.'.join(map(str, sys.version_info[:3]))})"
            raise RuntimeError(f"{lacks}: {python} has no module '{error.name}'; set PYSPARK_PYTHON") from None
        from penstock.storage.ended_tasks import complete
        from penstock.storage.options import receive_stores

        receive_stores(stores)
        yield from unpacked(complete(batches))

    return call


def other_python(text: str) -> str | None:
    """What an error of Spark's says about the workers' Python, in one line; None where it is about something else."""
    missing, before, version = _MISSING.search(text), _MISSING_BEFORE.search(text), _OTHER_VERSION.search(text)
    if missing:
        what = f"{missing[1]}, which has no module {missing[2]!r}"
    elif version:
        what = f"{_python_of_workers()} (Python {version[1]}), and this program Python {sys.version.split()[0]}"
    elif before and not _is_this_python(_python_of_workers()):
        what = f"{_python_of_workers()}, which has no module {before[1]!r}"
    else:
        return None
    return f"Spark's workers run {what}: set the environment variable PYSPARK_PYTHON to {_better_python()}"


def _better_python() -> str:
    context = running_context()
    if context is None or is_on_this_machine(str(context.master)):
        return f"{sys.executable} before the session starts"
    version = ".".join(map(str, sys.version_info[:2]))
    return (
        f"a Python {version} of theirs that has what penstock depends on, before the session starts, or send them one"
        " (docs/guides/clusters.md)"
    )


def _is_this_python(program: str) -> bool:
    """Whether the workers run what this program does: then a module that is missing is one of the user's own making."""
    return os.path.abspath(shutil.which(program) or program) == os.path.abspath(sys.executable)


def _python_of_workers() -> str:
    context = running_context()
    return str(context.pythonExec) if context is not None else "another Python"
