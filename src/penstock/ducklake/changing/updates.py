"""Writes rows anew that are there: for an update, and for the matched rows of a merge."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from penstock.ducklake.changing import deletes
from penstock.ducklake.changing.change_job import CONTROL_COLUMNS, ChangeResult, change_rows
from penstock.ducklake.changing.completed_rows import completion_of
from penstock.ducklake.changing.completion import Completion
from penstock.ducklake.changing.target_rows import ROW, TargetRows, target_rows
from penstock.ducklake.changing.target_table import TargetTable
from penstock.ducklake.transaction import Transaction
from penstock.ducklake.writing.inserts import note_files, stage_written
from penstock.ducklake.writing.write_target import plain_job, write_job_for
from penstock.errors import ConflictError
from penstock.predicates import implied_by
from penstock.predicates.implication import Implication
from penstock.schema.columns import Column
from penstock.spark.arrow_transfer import with_decimals_as_longs
from penstock.spark.column_assignment import assigned_values
from penstock.spark.expressions import check_expressions
from penstock.spark.jvm import compares_columns, optimized_filter_text
from penstock.spark.kept_rows import Keep, row_keeper
from penstock.spark.write_job import WriteJob, has_at_most, in_few_tasks, run_write_job, stays_in_place
from penstock.storage.parquet import check_writable

_MOST_HELD = 100  # rows that come to the driver to be put together


def update(
    transaction: Transaction, table: TargetTable, values: dict[str, SparkColumn], where: SparkColumn | None
) -> None:
    """Give columns of some rows new values. The rows keep their row ids."""
    rows = _new_rows(table, values, where)
    completion = _completion(transaction, table, rows, where)
    with row_keeper() as keep:
        narrow = _narrow_run(table, rows, completion) if completion else None
        runs = [narrow] if narrow else _runs(transaction, table, rows.whole, CONTROL_COLUMNS)
        _apply(transaction, table, runs, keep)


@dataclass(frozen=True)
class _NewRows:
    """Rows that are to be written anew, and the new values of some columns.

    `checked` are no rows with the names that users know, filtered as the rows are.
    """

    target: TargetRows
    frame: DataFrame
    checked: DataFrame
    columns: Sequence[Column]
    given: dict[str, SparkColumn]

    @property
    def whole(self) -> DataFrame:
        """All columns, ROW and the `CONTROL_COLUMNS`."""
        return self.only(range(len(self.columns)))

    def only(self, places: Sequence[int]) -> DataFrame:
        """Some of the columns, ROW and the `CONTROL_COLUMNS`."""
        columns = [self.columns[place] for place in places]
        values = assigned_values(self.frame, columns, self.target.with_new(self.given, places))
        chosen = [value.alias(f"v{place}") for place, value in zip(places, values, strict=True)]
        return self.frame.select(*chosen, ROW, *deletes.control_columns(written=True))


def _new_rows(table: TargetTable, values: dict[str, SparkColumn], where: SparkColumn | None) -> _NewRows:
    rows = target_rows(table.scan, table.contents)
    checked = rows.named if where is None else rows.named.where(where)
    check_expressions(checked.select(*values.values()))  # errors of names come first
    chosen = rows.frame if where is None else rows.where(where)
    return _NewRows(rows, chosen, checked, table.target.columns, values)


def _completion(
    transaction: Transaction, table: TargetTable, rows: _NewRows, where: SparkColumn | None
) -> Completion | None:
    """What reads the columns of files that no value is assigned to; None where Spark does."""

    def possible() -> Implication:
        if where is None or not compares_columns(rows.checked):
            return implied_by([], table.scan.layout.columns)
        filters = json.loads(optimized_filter_text(rows.target.named, where) or "[]")
        return implied_by([json.dumps(item) for item in filters], table.scan.layout.columns)

    if _first_own(transaction, table) is not None:
        return None
    return completion_of(table, rows.target.untouched_by(rows.given), possible)


def _narrow_run(table: TargetTable, rows: _NewRows, completion: Completion) -> Run | None:
    """The job that writes rows which a completion completes; None where Spark moves them, or makes more of them."""
    job = plain_job(table.target, "auto", row_ids=True)
    if job is None:
        return None
    carried, decimals = with_decimals_as_longs(rows.only(completion.changed))
    if not stays_in_place(carried):
        return None
    spread = in_few_tasks(carried, job.plan.options.target_file_size, partitioned=bool(job.keys))
    if spread is None:
        return None
    in_one_go = table.has_places_at_hand and has_at_most(spread, _MOST_HELD // max(1, job.held_rows))
    return Run(job, spread, replace(completion, decimals=decimals), in_one_go)


def rewrite_found(
    transaction: Transaction, table: TargetTable, rows: DataFrame, found: ChangeResult, count: int
) -> None:
    """Write rows anew whose places were found, and remove these, as `apply_row_changes` does in one go.

    The rows have the table's columns and ROW, and there must be so many of them.
    """
    target = table.target
    check_writable(target.columns)
    done = []
    for run in _runs(transaction, table, rows):
        done.append((run.job, run_write_job(run.rows, run.job)))
        note_files(transaction, target, done[-1][1])  # at once: what comes next may fail
    if sum(written.row_count for _, written in done) != count:
        raise ConflictError(
            f"rows of table {target.info.full_name} were found in files that have them no more; repeat what you did"
        )
    deletes.stage_removal(transaction, target.info, deletes.removal_of_changed(transaction, table, found))
    for job, written in done:
        stage_written(transaction, target, job, written)


@dataclass(frozen=True)
class Run:
    """A job that writes rows, and the rows; a completion, where they are not whole."""

    job: WriteJob
    rows: DataFrame
    completion: Completion | None = None
    in_one_go: bool = False  # whether few tasks hold few rows


def _runs(transaction: Transaction, table: TargetTable, rows: DataFrame, others: Sequence[str] = ()) -> list[Run]:
    """The jobs that write rows anew, each with its rows.

    Rows that this transaction has added itself have no row ids yet: they are written as new ones.
    """
    first_own = _first_own(transaction, table)
    committed = rows if first_own is None else rows.where(F.col(ROW) < first_own)
    runs = [write_job_for(table.target, committed, "auto", row_id=ROW, others=others)]
    if first_own is not None:
        runs.append(write_job_for(table.target, rows.where(F.col(ROW) >= first_own), "auto", others=others))
    return [Run(*run) for run in runs]


def _first_own(transaction: Transaction, table: TargetTable) -> int | None:
    return transaction.staging.shown_row_ids.get(table.target.info.id)


def apply_row_changes(
    transaction: Transaction,
    table: TargetTable,
    rows: DataFrame,
    keep: Keep,
    check: Callable[[ChangeResult], None],
) -> list[ChangeResult]:
    """Remove rows with the table's columns, ROW and the `CONTROL_COLUMNS`, and write those anew that these say.

    What tasks have done is checked before anything is staged.
    """
    return _apply(transaction, table, _runs(transaction, table, rows, CONTROL_COLUMNS), keep, check)


def _apply(
    transaction: Transaction,
    table: TargetTable,
    runs: Sequence[Run],
    keep: Keep,
    check: Callable[[ChangeResult], None] = lambda _: None,
) -> list[ChangeResult]:
    target = table.target
    check_writable(target.columns)
    done = []
    for run in runs:
        changed = change_rows(
            run.rows,
            run.job,
            target.info.path,
            None if run.in_one_go else keep,
            table.has_places_at_hand,
            completion=run.completion,
        )
        note_files(transaction, target, changed.written)  # at once: what comes next may fail
        check(changed)
        done.append((run.job, changed))
    removals = [deletes.removal_of_changed(transaction, table, changed) for _, changed in done]
    for removal in removals:
        deletes.stage_removal(transaction, target.info, removal)
    for job, changed in done:
        stage_written(transaction, target, job, changed.written)
    return [changed for _, changed in done]
