"""Merging rows into a table."""

from __future__ import annotations

from pyspark.sql import DataFrame

from penstock.catalog.writing.reliance import Reliance
from penstock.spark.changing import CONTROLS, change_rows
from penstock.spark.join_keys import On, join_condition
from penstock.spark.keeping import keeping
from penstock.spark.merging import Clause, Merging, check, numbered
from penstock.spark.scan import Contents, Scan
from penstock.spark.target_rows import target_rows
from penstock.statements import remove
from penstock.statements.change import change
from penstock.statements.insert import insert_assigned
from penstock.statements.target import Target
from penstock.storage.parquet import check_writable
from penstock.transaction import Transaction


def merge(
    transaction: Transaction,
    target: Target,
    scan: Scan,
    contents: Contents,
    source: DataFrame,
    on: On,
    clauses: tuple[Clause, ...],
) -> None:
    """First the rows that are there, then those of the source that matched none of them.

    These rely on what was not there: rows that come meanwhile and may match are a conflict.
    """
    check_writable(target.columns)
    rows = target_rows(scan, contents)
    name = target.info.full_name
    condition = join_condition(on, target.columns, source, name)
    check(name, rows, source, condition, clauses)
    with keeping() as keep:
        merging = Merging(name, target.columns, clauses, rows, numbered(source, keep), condition)
        changed = merging.changed_rows()
        if merging.writes:
            done = change(transaction, target, scan, changed, keep)
        else:
            done = [change_rows(changed.select(*CONTROLS), None, target.info.path, keep)]
            remove.stage(transaction, target.info, remove.removal_of(transaction, target, scan, done[0]))
        if merging.inserts:
            matched = done[0].sources
            for other in done[1:]:
                matched = matched.union(other.sources)
            if insert_assigned(transaction, target, merging.new_rows(matched)):
                reliance = Reliance(target.info.id, target.columns, tuple(scan.specs), merging.matchable())
                transaction.staging.rely(reliance)
