"""Merges rows into a table."""

from __future__ import annotations

from pyspark.sql import DataFrame

from penstock.ducklake.catalog.commits.merge_reliance import Reliance
from penstock.ducklake.changing import deletes
from penstock.ducklake.changing.change_job import CONTROLS, change_rows
from penstock.ducklake.changing.merge_keys import On, join_condition
from penstock.ducklake.changing.merge_rows import Clause, Merging, check, numbered
from penstock.ducklake.changing.target_rows import target_rows
from penstock.ducklake.changing.target_table import TargetTable
from penstock.ducklake.changing.updates import change
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
    check(name, rows, source, condition, clauses)
    with row_keeper() as keep:
        merging = Merging(name, target.columns, clauses, rows, numbered(source, keep), condition)
        changed = merging.changed_rows()
        if merging.writes:
            done = change(transaction, table, changed, keep)
        else:
            done = [change_rows(changed.select(*CONTROLS), None, target.info.path, keep)]
            deletes.stage(transaction, target.info, deletes.removal_of(transaction, table, done[0]))
        if merging.inserts:
            matched = done[0].sources
            for other in done[1:]:
                matched = matched.union(other.sources)
            if insert_assigned(transaction, target, merging.new_rows(matched)):
                reliance = Reliance(target.info.id, target.columns, tuple(table.scan.specs), merging.matchable())
                transaction.staging.rely(reliance)
