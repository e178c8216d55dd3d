"""Runs jobs on a Spark Connect server so that they end when they are left."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from uuid import uuid4

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

# Seconds for tasks that are being killed: no client is told when they are. Spark gives each of their Python workers two
# (spark.python.task.killTimeout), in which it may still end a file.
_TIME_TO_END = 4.0


@contextmanager
def tagged_job(spark: SparkSession) -> Iterator[str]:
    """Give what runs on the server meanwhile a tag, and interrupt it by that where the block fails."""
    tag = f"penstock-{uuid4()}"
    spark.addTag(tag)
    try:
        yield tag
    except BaseException as error:
        with suppress(Exception):  # what failed first is the news; the server may be gone
            if spark.interruptTag(tag) or _failed_in_a_task(error):
                time.sleep(_TIME_TO_END)
        raise
    finally:
        spark.removeTag(tag)


def _failed_in_a_task(error: BaseException) -> bool:
    """Whether a job failed while it ran: other tasks of it go on until Spark has killed them, and may end a file."""
    return isinstance(error, PySparkException) and not isinstance(error, AnalysisException)
