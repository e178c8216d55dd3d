"""Statements that write rows: append, overwrite and delete. Each commits one version and returns it."""

from __future__ import annotations

import json

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession

from penstock.delta.log.commits import writable_snapshot
from penstock.delta.log.conflicts import everything_read
from penstock.delta.log.table_log import TableLog
from penstock.delta.reading.file_scan import FileScan
from penstock.delta.writing.file_commits import commit_files, delete_new_files
from penstock.delta.writing.file_writer import FileWriter
from penstock.delta.writing.row_removal import remove_rows
from penstock.delta.writing.row_rules import satisfying
from penstock.spark.expressions import as_column
from penstock.spark.write_job import Distribution


def append(
    spark: SparkSession, log: TableLog, frame: DataFrame, txn: tuple[str, int] | None, distribution: Distribution
) -> int:
    """Adds rows, once for each `txn`: an application and its version."""
    base = writable_snapshot(log)
    if txn is not None and base.txns.get(txn[0], -1) >= txn[1]:
        return base.version
    writer = FileWriter.of(spark, log, base)
    added = writer.write(writer.to_table_columns(frame), distribution)
    return commit_files(log, base, added, [], "WRITE", {"mode": "Append"}, txn=txn)


def overwrite(spark: SparkSession, log: TableLog, frame: DataFrame, distribution: Distribution) -> int:
    """Replaces all rows."""
    base = writable_snapshot(log)
    writer = FileWriter.of(spark, log, base)
    added = writer.write(writer.to_table_columns(frame), distribution)
    removed = base.files.values()
    return commit_files(log, base, added, removed, "WRITE", {"mode": "Overwrite"}, read_set=everything_read)


def overwrite_where(
    spark: SparkSession, log: TableLog, frame: DataFrame, where: str | SparkColumn, distribution: Distribution
) -> int:
    """Replaces the rows that a predicate is true for by rows that it is true for."""
    base = writable_snapshot(log)
    writer = FileWriter.of(spark, log, base)
    rows, predicate = writer.to_table_columns(frame), as_column(where)
    removal = remove_rows(FileScan.of(spark, log, base), writer, predicate)
    try:
        added = writer.write(satisfying(rows, predicate, str(where)), distribution)
    except BaseException:
        delete_new_files(log, removal.rewritten)
        raise
    parameters = {"mode": "Overwrite", "predicate": str(where)}
    added = [*removal.rewritten, *added]
    return commit_files(log, base, added, removal.removed, "WRITE", parameters, read_set=removal.read_set)


def delete(spark: SparkSession, log: TableLog, where: str | SparkColumn) -> int:
    """Deletes the rows that a predicate is true for. Without any, nothing is committed."""
    base = writable_snapshot(log)
    removal = remove_rows(FileScan.of(spark, log, base), FileWriter.of(spark, log, base), as_column(where))
    if not removal.removed:
        return base.version
    parameters = {"predicate": json.dumps([str(where)])}
    return commit_files(log, base, removal.rewritten, removal.removed, "DELETE", parameters, read_set=removal.read_set)


def delete_all(log: TableLog) -> int:
    """Deletes all rows, by the log alone."""
    base = writable_snapshot(log)
    return commit_files(log, base, [], base.files.values(), "DELETE", {"predicate": "[]"}, read_set=everything_read)
