"""Inserts rows into a table."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame

from penstock.ducklake.catalog.commits.inlined_tables import can_inline_rows
from penstock.ducklake.catalog.commits.staged_files import add_files, add_inlined
from penstock.ducklake.catalog.inlined_storage import inlined_statistics, rows_fit
from penstock.ducklake.transaction import Transaction
from penstock.ducklake.writing.insert_defaults import default_value
from penstock.ducklake.writing.write_target import WriteTarget, write_job_for
from penstock.spark.column_assignment import assigned_rows
from penstock.spark.write_job import Distribution, WriteJob, Written, run_write_job
from penstock.storage.parquet import check_writable
from penstock.storage.parquet.values import check_not_null


def insert(
    transaction: Transaction, target: WriteTarget, frame: DataFrame, *, by_name: bool, distribution: Distribution
) -> None:
    """Write the rows and stage them: few of them for the catalog itself, others as files."""
    check_writable(target.columns)
    default = partial(default_value, frame.sparkSession)
    rows = assigned_rows(frame, target.columns, target.info.full_name, by_name=by_name, default=default)
    insert_assigned(transaction, target, rows, distribution)


def insert_assigned(
    transaction: Transaction, target: WriteTarget, rows: DataFrame, distribution: Distribution = "auto"
) -> bool:
    """Insert rows with exactly the table's columns, in the writer's types. Returns whether there were any."""
    job, spread = write_job_for(target, rows, distribution)
    written = run_write_job(spread, job)
    note_files(transaction, target, written)
    stage_written(transaction, target, job, written)
    return bool(written.files or written.held)


def note_files(transaction: Transaction, target: WriteTarget, written: Written) -> None:
    """Note files that are deleted if the transaction fails."""
    transaction.staging.files.extend(target.info.path + file.path for file in written.files)


def stage_written(transaction: Transaction, target: WriteTarget, job: WriteJob, written: Written) -> None:
    """Stage what was written: rows too few for a file go to the catalog, if all of them can; else to a file too."""
    if not written.files and _inlined(transaction, target, job, written):
        return
    rest = Written(list(job.files(written.held)))
    note_files(transaction, target, rest)
    partition_id = target.spec.partition_id if target.spec else None
    files = [*written.files, *rest.files]
    add_files(transaction.staging, target.info.id, partition_id, files, with_row_ids=job.plan.row_ids)


def _inlined(transaction: Transaction, target: WriteTarget, job: WriteJob, written: Written) -> bool:
    """Stage rows for the catalog, if it can hold them: the tasks give back no more than it may."""
    if not written.held:
        return True
    rows, row_ids = job.in_order(written.held, sort=target.sorts_inserts)
    check_not_null(target.columns, rows)
    if not _catalog_holds(transaction, target, rows):
        return False
    statistics = inlined_statistics(target.columns, rows)
    add_inlined(transaction.staging, target.info.id, target.columns, rows, statistics, row_ids)
    return True


def _catalog_holds(transaction: Transaction, target: WriteTarget, rows: pa.Table) -> bool:
    database = transaction.catalog.database
    return rows_fit(target.columns, rows, database.engine) and can_inline_rows(
        database, transaction.staging, target.info.id, target.columns
    )
