"""Merges rows into a table."""

from __future__ import annotations

from pyspark.sql import DataFrame

from penstock.ducklake.catalog.commits.merge_reliance import MergeReliance
from penstock.ducklake.changing import deletes
from penstock.ducklake.changing.change_job import CONTROL_COLUMNS, change_rows
from penstock.ducklake.changing.merge_keys import On, join_condition
from penstock.ducklake.changing.merge_rows import Clause, Merging, check_merge, numbered_source
from penstock.ducklake.changing.target_rows import target_rows
from penstock.ducklake.changing.target_table import TargetTable
from penstock.ducklake.changing.updates import apply_row_changes
from penstock.ducklake.transaction import Transaction
from penstock.ducklake.writing.inserts import insert_assigned
from penstock.spark.kept_rows import row_keeper
from penstock.storage.parquet import check_writable


def merge(transaction: Transaction, table: TargetTable, source: DataFrame, on: On, clauses: tuple[Clause, ...]) -> None:
    """Change the rows that are there, then insert those of the source that matched none of them.

    These rely on what was not there: rows that come meanwhile and may match are a conflict.
    """
    target = table.target
    check_writable(target.columns)
    rows = target_rows(table.scan, table.contents)
    name = target.info.full_name
    condition = join_condition(on, target.columns, source, name)
    check_merge(name, rows, source, condition, clauses)
    with row_keeper() as keep:
        merging = Merging(name, target.columns, clauses, rows, numbered_source(source, keep), condition)
        changed = merging.changed_rows()
        if merging.writes:
            done = apply_row_changes(transaction, table, changed, keep)
        else:
            done = [change_rows(changed.select(*CONTROL_COLUMNS), None, target.info.path, keep)]
            deletes.stage_removal(transaction, target.info, deletes.removal_of_changed(transaction, table, done[0]))
        if merging.inserts:
            matched = done[0].sources
            for other in done[1:]:
                matched = matched.union(other.sources)
            if insert_assigned(transaction, target, merging.new_rows(matched)):
                reliance = MergeReliance(target.info.id, target.columns, tuple(table.scan.specs), merging.matchable())
                transaction.staging.rely_on(reliance)
