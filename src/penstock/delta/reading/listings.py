"""Lists the commits and the data files of a table as DataFrames."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from penstock.delta.format.actions import AddFile
from penstock.delta.format.times import from_milliseconds
from penstock.delta.log.snapshot import LogSnapshot
from penstock.delta.log.table_log import HistoryEntry, TableLog
from penstock.spark.local_rows import local_frame

_HISTORY = "version bigint, timestamp timestamp, operation string, parameters map<string,string>, info string"
_FILES = "path string, partition map<string,string>, size bigint, rows bigint, modified timestamp, deleted bigint"


def list_history(spark: SparkSession, log: TableLog) -> DataFrame:
    """Returns a row for each commit, the newest first."""
    return local_frame(spark, [_history_row(entry) for entry in log.history()], _HISTORY)


def list_files(spark: SparkSession, snapshot: LogSnapshot) -> DataFrame:
    """Returns a row for each data file of a version."""
    return local_frame(spark, [_file_row(file) for file in snapshot.files.values()], _FILES)


def _history_row(entry: HistoryEntry) -> tuple[object, ...]:
    info = entry.info
    parameters = _texts(info.get("operationParameters"))
    return entry.version, entry.timestamp, info.get("operation"), parameters, json.dumps(info)


def _texts(parameters: object) -> dict[str, str]:
    if not isinstance(parameters, Mapping):
        return {}
    return {str(key): value if isinstance(value, str) else json.dumps(value) for key, value in parameters.items()}


def _file_row(file: AddFile) -> tuple[object, ...]:
    told = json.loads(file.stats) if file.stats else {}
    deleted = file.deletion_vector.cardinality if file.deletion_vector else 0
    modified = from_milliseconds(file.modification_time)
    return file.decoded_path, dict(file.partition_values), file.size, told.get("numRecords"), modified, deleted
