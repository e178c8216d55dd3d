"""Writes rows anew that are there: for an update, and for the matched rows of a merge."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from penstock.ducklake.changing import deletes
from penstock.ducklake.changing.change_job import CONTROL_COLUMNS, ChangeResult, change_rows, find_rows
from penstock.ducklake.changing.placed_rows import are_few, placed_rows, second_pass_pays
from penstock.ducklake.changing.target_rows import ROW, TargetRows, target_rows
from penstock.ducklake.changing.target_table import TargetTable
from penstock.ducklake.transaction import Transaction
from penstock.ducklake.writing.inserts import note_files, stage_written
from penstock.ducklake.writing.write_target import write_job_for
from penstock.errors import ConflictError
from penstock.predicates import implied_by
from penstock.predicates.implication import Implication
from penstock.spark.column_assignment import assigned_values
from penstock.spark.expressions import is_repeatable
from penstock.spark.jvm import optimized_filter_text
from penstock.spark.kept_rows import Keep, row_keeper
from penstock.spark.write_job import WriteJob, run_write_job
from penstock.storage.parquet import check_writable


def update(
    transaction: Transaction, table: TargetTable, values: dict[str, SparkColumn], where: SparkColumn | None
) -> None:
    """Give columns of some rows new values. The rows keep their row ids."""
    rows = target_rows(table.scan, table.contents)
    chosen = rows.named if where is None else rows.named.where(where)
    computed = chosen.select(*values.values())  # errors of names come first
    assigned = assigned_values(rows.frame, table.target.columns, rows.with_new(values))
    new = [*(value.alias(f"v{i}") for i, value in enumerate(assigned)), F.col(ROW)]
    if where is not None and _finds_first(table, rows, values, where) and is_repeatable(computed):
        found = find_rows(rows.frame.where(where).select(*deletes.control_columns()))
        if are_few(table, found.count):
            _update_found(transaction, table, new, found)
            return
    frame = rows.frame if where is None else rows.frame.where(where)
    with row_keeper() as keep:
        apply_row_changes(transaction, table, frame.select(*new, *deletes.control_columns(written=True)), keep)


def _finds_first(table: TargetTable, rows: TargetRows, values: dict[str, SparkColumn], where: SparkColumn) -> bool:
    def possible() -> Implication:
        filters = json.loads(optimized_filter_text(rows.named, where) or "[]")
        return implied_by([json.dumps(item) for item in filters], table.scan.layout.columns)

    return table.has_places_at_hand and second_pass_pays(table, len(rows.unchanged_by([values])), possible)


def _update_found(transaction: Transaction, table: TargetTable, new: list[SparkColumn], found: ChangeResult) -> None:
    """Write the new values of rows that were found: by name, they are those of the rows at these places."""
    if found.removes:
        rows = placed_rows(table, found.at_hand or ())
        rewrite_found(transaction, table, rows.frame.select(*new), found, found.count)


def rewrite_found(
    transaction: Transaction, table: TargetTable, rows: DataFrame, found: ChangeResult, count: int
) -> None:
    """Write rows anew whose places were found, and remove these, as `apply_row_changes` does in one go.

    The rows have the table's columns and ROW, and there must be so many of them.
    """
    target = table.target
    check_writable(target.columns)
    done = []
    for job, frame in _runs(transaction, table, rows):
        done.append((job, run_write_job(frame, job)))
        note_files(transaction, target, done[-1][1])  # at once: what comes next may fail
    if sum(written.row_count for _, written in done) != count:
        raise ConflictError(
            f"rows of table {target.info.full_name} were found in files that have them no more; repeat what you did"
        )
    deletes.stage_removal(transaction, target.info, deletes.removal_of_changed(transaction, table, found))
    for job, written in done:
        stage_written(transaction, target, job, written)


def _runs(
    transaction: Transaction, table: TargetTable, rows: DataFrame, others: Sequence[str] = ()
) -> list[tuple[WriteJob, DataFrame]]:
    """The jobs that write rows anew, each with its rows.

    Rows that this transaction has added itself have no row ids yet: they are written as new ones.
    """
    first_own = transaction.staging.shown_row_ids.get(table.target.info.id)
    committed = rows if first_own is None else rows.where(F.col(ROW) < first_own)
    runs = [write_job_for(table.target, committed, "auto", row_id=ROW, others=others)]
    if first_own is not None:
        runs.append(write_job_for(table.target, rows.where(F.col(ROW) >= first_own), "auto", others=others))
    return runs


def apply_row_changes(
    transaction: Transaction,
    table: TargetTable,
    rows: DataFrame,
    keep: Keep,
    check: Callable[[ChangeResult], None] = lambda _: None,
) -> list[ChangeResult]:
    """Remove rows with the table's columns, ROW and the `CONTROL_COLUMNS`, and write those anew that these say.

    What tasks have done is checked before anything is staged.
    """
    target = table.target
    check_writable(target.columns)
    done = []
    for job, frame in _runs(transaction, table, rows, CONTROL_COLUMNS):
        changed = change_rows(frame, job, target.info.path, keep, table.has_places_at_hand)
        note_files(transaction, target, changed.written)  # at once: what comes next may fail
        check(changed)
        done.append((job, changed))
    removals = [deletes.removal_of_changed(transaction, table, changed) for _, changed in done]
    for removal in removals:
        deletes.stage_removal(transaction, target.info, removal)
    for job, changed in done:
        stage_written(transaction, target, job, changed.written)
    return [changed for _, changed in done]
