"""Deletes rows of a table: all of them, or those that a predicate is true for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from penstock.ducklake.catalog.commits import staged_deletes, staged_files
from penstock.ducklake.catalog.commits.provisional_ids import is_provisional
from penstock.ducklake.catalog.deleted_rows import deletable_files
from penstock.ducklake.catalog.inlined_rows import live_inlined_rows
from penstock.ducklake.changing.change_job import POSITION, SOURCE, WRITTEN, ChangeResult, change_rows, find_rows
from penstock.ducklake.changing.delete_job import DeleteJob, FileRemoval, files_covered_whole, write_delete_files
from penstock.ducklake.changing.target_rows import target_rows
from penstock.ducklake.changing.target_table import TargetTable
from penstock.ducklake.files.delete_files import DeletableFile
from penstock.ducklake.model.objects import TableInfo
from penstock.ducklake.reading.scan_columns import FILE
from penstock.ducklake.transaction import Transaction
from penstock.errors import ConflictError
from penstock.spark.connect.sessions import is_connect
from penstock.spark.expressions import check_expressions, has_subquery
from penstock.spark.jvm import compares_columns
from penstock.spark.kept_rows import row_keeper


@dataclass(frozen=True)
class Removal:
    """What a statement removes: whole files, rows of others, and inlined rows by the catalog table that holds them."""

    whole_files: frozenset[int] = frozenset()
    removed: Sequence[FileRemoval] = ()
    files: dict[int, DeletableFile] = field(default_factory=dict)
    inlined: dict[str, set[int]] = field(default_factory=dict)
    own_inlined: set[int] | None = field(default_factory=set)  # row ids; None for all of them


def removal_of_all(transaction: Transaction, table: TableInfo) -> Removal:
    """The removal of all rows that the transaction sees: no file is read."""
    shown = transaction.shown()
    sql = f"SELECT data_file_id FROM ducklake_data_file WHERE table_id = ? AND {shown.at.visible()}"
    with shown.database.consistent():
        files = frozenset(row[0] for row in shown.database.query(sql, [table.id]))
        inlined = live_inlined_rows(shown.database, table.id, shown.at)
    return Removal(files, inlined=inlined, own_inlined=None)


def removal_where(transaction: Transaction, table: TargetTable, where: SparkColumn) -> Removal:
    """The removal of the rows that a predicate is true for: finds them, and writes their delete files.

    Files that the statistics prove to hold no other row go whole, unread; of the others only those are read that can
    hold a match.
    """
    scan, contents = table.scan, table.contents
    found = target_rows(scan, contents)
    named = found.named
    checked = named.where(where)
    check_expressions(checked)
    may_cover = not has_subquery(checked) and compares_columns(checked)
    whole = files_covered_whole(scan, contents, named, where) if may_cover else frozenset[int]()
    return removal_of_rows(transaction, table, found.where(where, whole), whole)


def control_columns(written: bool = False) -> list[SparkColumn]:
    """The `CONTROL_COLUMNS` of target rows that are removed and, if `written`, written anew."""
    made = (f"{'true' if written else 'false'} AS {WRITTEN}", f"CAST(NULL AS BIGINT) AS {SOURCE}")
    return [F.expr(text) for text in (FILE, POSITION, *made)]


def removal_of_rows(
    transaction: Transaction, table: TargetTable, rows: DataFrame, whole_files: frozenset[int] = frozenset()
) -> Removal:
    """The removal of rows by their files and positions: finds them, and writes their delete files."""
    if table.has_places_at_hand:
        found = _found_by_workers(table, rows) if is_connect(rows) else find_rows(rows)
        return removal_of_changed(transaction, table, found, whole_files)
    with row_keeper() as keep:
        changed = change_rows(rows.select(*control_columns()), None, table.target.info.path, keep)
        return removal_of_changed(transaction, table, changed, whole_files)


def _found_by_workers(table: TargetTable, rows: DataFrame) -> ChangeResult:
    """The places of rows, as `find_rows` has them."""
    return change_rows(rows.select(*control_columns()), None, table.target.info.path, None, at_hand=True)


def removal_of_changed(
    transaction: Transaction, changing: TargetTable, changed: ChangeResult, whole_files: frozenset[int] = frozenset()
) -> Removal:
    """The removal of rows whose places the tasks have returned: writes their delete files."""
    if not changed.removes:
        return Removal(whole_files)
    target, scope = changing.target, changing.scan.scope
    database, at, table = scope.database, scope.at, target.info
    known = {file.id: file for file in deletable_files(database, table, at, changed.touched)}
    if not changed.touched <= known.keys():
        raise _moved(table)
    keeps = not is_provisional(table.id) and staged_deletes.keeps_deletes(transaction.catalog.database, table.id)
    limit = target.inlined_deletes if keeps else 0
    vectors = target.option("write_deletion_vectors") == "true"
    staging = transaction.staging
    dated = frozenset(file.id for file in known.values() if staged_deletes.replaced_delete(staging, table, file))
    job = DeleteJob(table.path, known, limit, vectors, target.encrypted, dated, _expected(transaction))
    removed = write_delete_files(changed.places, job)
    staging.files.extend(table.path + item.delete.path for item in removed if item.delete)
    row_ids = {position for item in removed if item.file_id is None for position in item.positions}
    live = live_inlined_rows(database, table.id, at) if row_ids else {}
    inlined = {name: ids & row_ids for name, ids in live.items()}
    own = row_ids.difference(*inlined.values())
    if not own <= staged_files.own_inlined(staging, table.id):
        raise _moved(table)
    return Removal(whole_files, removed, known, inlined, own)


def _moved(table: TableInfo) -> ConflictError:
    return ConflictError(
        f"rows of table {table.full_name} were written elsewhere by another writer while they were changed; repeat "
        "what you did"
    )


def _expected(transaction: Transaction) -> int:
    """The number that the transaction's snapshot has, unless another writer is faster."""
    return transaction.staging.base.id + 1


def stage_removal(transaction: Transaction, table: TableInfo, removal: Removal) -> None:
    """Stage a removal."""
    staging = transaction.staging
    ended = {item.file_id for item in removal.removed if item.all_rows and item.file_id is not None}
    staged_files.remove_files(staging, table, removal.whole_files | ended)
    deletes = [
        (removal.files[item.file_id], item.delete)
        for item in removal.removed
        if item.delete is not None and item.file_id is not None
    ]
    staged_deletes.add_delete_files(staging, table, deletes, _expected(transaction))
    few = [(item.file_id, item.positions) for item in removal.removed if item.file_id is not None and item.positions]
    if few:
        staged_deletes.add_inlined_deletes(staging, transaction.catalog.database, table.id, few)
    staged_files.remove_inlined(staging, table.id, removal.inlined)
    if removal.own_inlined is None or removal.own_inlined:
        staged_files.remove_own_inlined(staging, table.id, removal.own_inlined)
