"""Writes rows anew that are there: for an update, and for the matched rows of a merge."""

from __future__ import annotations

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from penstock.ducklake.changing import deletes
from penstock.ducklake.changing.change_job import CONTROL_COLUMNS, ChangeResult, change_rows
from penstock.ducklake.changing.target_rows import ROW, target_rows
from penstock.ducklake.changing.target_table import TargetTable
from penstock.ducklake.transaction import Transaction
from penstock.ducklake.writing.inserts import note_files, stage_written
from penstock.ducklake.writing.write_target import write_job_for
from penstock.spark.column_assignment import assigned_values
from penstock.spark.kept_rows import Keep, row_keeper
from penstock.storage.parquet import check_writable


def update(
    transaction: Transaction, table: TargetTable, values: dict[str, SparkColumn], where: SparkColumn | None
) -> None:
    """Give columns of some rows new values. The rows keep their row ids."""
    target = table.target
    rows = target_rows(table.scan, table.contents)
    (rows.named if where is None else rows.named.where(where)).select(*values.values())  # errors of names come first
    frame = rows.frame if where is None else rows.frame.where(where)
    new = assigned_values(frame, target.columns, rows.with_new(values))
    named = [value.alias(f"v{i}") for i, value in enumerate(new)]
    with row_keeper() as keep:
        apply_row_changes(transaction, table, frame.select(*named, ROW, *deletes.control_columns(written=True)), keep)


def apply_row_changes(transaction: Transaction, table: TargetTable, rows: DataFrame, keep: Keep) -> list[ChangeResult]:
    """Remove rows with the table's columns, ROW and the `CONTROL_COLUMNS`, and write those anew that these say.

    Rows that this transaction has added itself have no row ids yet: they are written as new ones.
    """
    target = table.target
    check_writable(target.columns)
    first_own = transaction.staging.shown_row_ids.get(target.info.id)
    committed = rows if first_own is None else rows.where(F.col(ROW) < first_own)
    runs = [write_job_for(target, committed, "auto", row_id=ROW, others=CONTROL_COLUMNS)]
    if first_own is not None:
        runs.append(write_job_for(target, rows.where(F.col(ROW) >= first_own), "auto", others=CONTROL_COLUMNS))
    done = []
    for job, frame in runs:
        changed = change_rows(frame, job, target.info.path, keep)
        note_files(transaction, target, changed.written)  # at once: what comes next may fail
        done.append((job, changed))
    removals = [deletes.removal_of_changed(transaction, table, changed) for _, changed in done]
    for removal in removals:
        deletes.stage_removal(transaction, target.info, removal)
    for job, changed in done:
        stage_written(transaction, target, job, changed.written)
    return [changed for _, changed in done]
