"""Spark's Python daemon, with what its workers import imported before they are forked.

`spark.python.daemon.module` names this module. PySpark's own daemon imports nothing, as other people's packages may
start threads; a worker then takes 1.5 seconds to import PyArrow, pandas and Penstock, and the tests start hundreds.
"""

from __future__ import annotations

import gc

import pandas  # noqa: F401
import pyarrow.parquet  # noqa: F401
import pyspark.sql.pandas.serializers
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import penstock  # noqa: F401

if __name__ == "__main__":
    gc.freeze()  # PySpark collects garbage after every task
    manager()
