"""Merges rows into a table."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from penstock.ducklake.catalog.commits.merge_reliance import MergeReliance
from penstock.ducklake.changing import deletes
from penstock.ducklake.changing.change_job import CONTROL_COLUMNS, ChangeResult, change_rows
from penstock.ducklake.changing.merge_keys import On, join_condition
from penstock.ducklake.changing.merge_rows import Clause, Merging, check_merge, numbered_source
from penstock.ducklake.changing.placed_rows import matched_rows
from penstock.ducklake.changing.target_rows import target_rows
from penstock.ducklake.changing.target_table import TargetTable
from penstock.ducklake.changing.updates import apply_row_changes, rewrite_found
from penstock.ducklake.transaction import Transaction
from penstock.ducklake.writing.inserts import insert_assigned
from penstock.spark.kept_rows import Keep, row_keeper
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
        if not table.has_places_at_hand:
            merging.refuse_second_matches()
        done = _change_matched(transaction, table, merging, keep)
        if merging.inserts and insert_assigned(transaction, target, merging.new_rows(done)):
            reliance = MergeReliance(target.info.id, target.columns, tuple(table.scan.specs), merging.matchable())
            transaction.staging.rely_on(reliance)


def _change_matched(
    transaction: Transaction, table: TargetTable, merging: Merging, keep: Keep
) -> Sequence[ChangeResult]:
    """Change the rows that are there, and tell which rows of the source match."""
    info, at_hand = table.target.info, table.has_places_at_hand
    if merging.finds_first(table):
        found = change_rows(merging.matches(), None, info.path, keep, at_hand, matches=True)
        merging.check_once(found)
        if found.match_count:
            rows = matched_rows(table, found.matches, found.touched)
            rewrite_found(transaction, table, merging.updated_rows(rows), found, found.match_count)
            return [found]
    elif merging.writes:
        return apply_row_changes(transaction, table, merging.changed_rows(), keep, merging.check_once)
    else:
        found = change_rows(merging.changed_rows().select(*CONTROL_COLUMNS), None, info.path, keep, at_hand)
        merging.check_once(found)
    deletes.stage_removal(transaction, info, deletes.removal_of_changed(transaction, table, found))
    return [found]
