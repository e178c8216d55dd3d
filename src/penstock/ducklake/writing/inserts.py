"""Inserts rows into a table."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from penstock.ducklake.catalog.commits.inlined_tables import can_inline_rows
from penstock.ducklake.catalog.commits.staged_files import add_files, add_inlined
from penstock.ducklake.catalog.inlined_storage import inlined_statistics, rows_fit
from penstock.ducklake.model.column_defaults import has_default
from penstock.ducklake.transaction import Transaction
from penstock.ducklake.writing.insert_defaults import default_value
from penstock.ducklake.writing.write_target import WriteTarget, plain_job, write_job_for
from penstock.schema.columns import Column
from penstock.spark.arrow_assignment import assigned_arrow, frame_of, no_values, plain_rows
from penstock.spark.column_assignment import assigned_rows
from penstock.spark.local_rows import held_rows
from penstock.spark.python_rows import given_rows
from penstock.spark.write_job import Distribution, WriteJob, Written, run_write_job, written_by_driver
from penstock.storage.parquet import check_writable
from penstock.storage.parquet.values import check_not_null

# What the driver writes itself, of rows that it holds.
_FEW_ROWS = 4096
_FEW_BYTES = 16 * 2**20


def insert(
    transaction: Transaction, target: WriteTarget, frame: DataFrame, *, by_name: bool, distribution: Distribution
) -> None:
    """Write the rows of a DataFrame and stage them: few of them for the catalog itself, others as files."""
    check_writable(target.columns)
    default = partial(default_value, frame.sparkSession)
    rows = assigned_rows(frame, target.columns, target.info.full_name, by_name=by_name, default=default)
    insert_assigned(transaction, target, rows, distribution)


def insert_given(
    transaction: Transaction,
    target: WriteTarget,
    rows: object,
    spark: SparkSession,
    *,
    by_name: bool,
    distribution: Distribution,
) -> None:
    """Write rows of the program's own, or of Arrow's: few of them without Spark, if they need no conversion."""
    check_writable(target.columns)
    columns, table = target.columns, target.info.full_name
    given = given_rows(rows, columns, by_name=by_name)
    if given is None:
        return
    plain = plain_rows(given.table, columns, table, by_name=given.by_name)
    job = plain_job(target, distribution) if _are_few(target, plain) else None
    assigned = assigned_arrow(plain, columns, table, by_name=given.by_name, fill=_filled) if job else None
    if job is None or assigned is None:
        insert(transaction, target, frame_of(spark, plain), by_name=given.by_name, distribution=distribution)
        return
    _stage(transaction, target, job, written_by_driver(job, assigned))


def _filled(column: Column, count: int) -> pa.Array | None:
    """The values of a column that rows do not give; None where Spark computes its default."""
    return None if has_default(column) else no_values(column, count)


def insert_assigned(
    transaction: Transaction, target: WriteTarget, rows: DataFrame, distribution: Distribution = "auto"
) -> bool:
    """Insert rows with exactly the table's columns, in the writer's types. Returns whether there were any."""
    own = plain_job(target, distribution)
    held = held_rows(rows, _most_rows(target), _FEW_BYTES) if own else None
    if own is not None and held is not None:
        return _stage(transaction, target, own, written_by_driver(own, held))
    job, spread = write_job_for(target, rows, distribution)
    return _stage(transaction, target, job, run_write_job(spread, job))


def _are_few(target: WriteTarget, rows: pa.Table) -> bool:
    return bool(rows.num_rows <= _most_rows(target) and rows.nbytes <= _FEW_BYTES)


def _most_rows(target: WriteTarget) -> int:
    """How many rows the driver writes itself, where it has them: a job takes longer."""
    return max(_FEW_ROWS, target.inlined_rows)


def _stage(transaction: Transaction, target: WriteTarget, job: WriteJob, written: Written) -> bool:
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
