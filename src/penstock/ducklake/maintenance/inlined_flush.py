"""Flushes what the catalog keeps of a table: inlined rows become data files, inlined deletes become delete files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from penstock.ducklake.attachment import Attachment
from penstock.ducklake.catalog.commits.inlined_tables import REGISTRY
from penstock.ducklake.catalog.commits.removed_rows import RemovedRows
from penstock.ducklake.catalog.commits.staged_compactions import (
    FlushedFile,
    stage_flushed_deletes,
    stage_flushed_rows,
)
from penstock.ducklake.catalog.compactable_files import CompactableTable, compactable_table, inlined_positions
from penstock.ducklake.catalog.id_lists import id_lists
from penstock.ducklake.catalog.inlined_rows import (
    InlinedTable,
    forgotten_tables,
    inlined_delete_name,
    tables_of_inlined_rows,
)
from penstock.ducklake.catalog.objects import current_partition_spec
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.maintenance.compaction import compaction_transaction, repeated
from penstock.ducklake.maintenance.flushed_deletes import DeleteFlushJob, write_flushed_deletes
from penstock.ducklake.maintenance.flushed_rows import FlushPlan, write_flushed
from penstock.ducklake.model.objects import TableInfo
from penstock.ducklake.transaction import Transaction
from penstock.ducklake.writing.file_options import file_options
from penstock.ducklake.writing.sort_order import columns_of_key, sort_expressions
from penstock.ducklake.writing.write_target import WriteTarget, partition_keys, write_target
from penstock.errors import CatalogError
from penstock.partitioning import PartitionSpec, directory_names
from penstock.storage.parquet.names import new_write_id
from penstock.storage.progress import titled

_VERB = "flush_inlined_data"
FlushedTable = tuple[str, str, int]  # schema, table, rows


def flush_inlined_data(attachment: Attachment, tables: Sequence[TableInfo]) -> list[FlushedTable]:
    """Flush tables, each in a transaction of its own. Returns a line for each that had rows."""
    found = []
    for table in tables:
        with titled(f"{_VERB} {table.full_name}"):
            rows = repeated(attachment, _VERB, table, lambda table=table: _flush(attachment, table))  # type: ignore[misc]
        if rows:
            found.append((table.schema.name, table.name, rows))
    return found


def _flush(attachment: Attachment, info: TableInfo) -> int:
    database = attachment.catalog.database
    with compaction_transaction(attachment, _VERB) as transaction:
        base = At(transaction.staging.base.id)
        if not database.query(f"SELECT 1 FROM ducklake_table WHERE table_id = {info.id} AND {base.visible()}"):
            return 0  # dropped since it was listed
        forgotten = forgotten_tables(database, info.id)
        table = compactable_table(database, info)
        target = write_target(transaction, info, attachment.options)
        flush = _Flush(attachment, transaction, table, target, new_write_id())
        flush.deletes()
        rows = flush.rows()
    # Those of earlier flushes: of this one's, somebody may be about to read.
    for name in forgotten:
        with suppress(CatalogError):  # of a user who may not drop, or while somebody reads: it does no harm
            database.drop_table(name)
    return rows


@dataclass(frozen=True)
class _Flush:
    """One table that is flushed inside a transaction."""

    attachment: Attachment
    transaction: Transaction
    table: CompactableTable
    target: WriteTarget
    write_id: str

    def deletes(self) -> None:
        """Flush the inlined deletes of live files; those of files that have ended are for the snapshots before.

        Where a delete file took the place of another, they stay too: the extension would read two at once in between.
        """
        database, info = self.transaction.catalog.database, self.table.info
        files = {
            file.id: file
            for file in self.table.files
            if file.deletes and file.deletes.inlined_deletes and not file.has_ended_deletes
        }
        if not files:
            return
        inlined = inlined_positions(database, info.id, At(self.table.base), files)
        job = DeleteFlushJob(info.path, self.write_id, self.target.encrypted)
        wanted = [(files[number].deletes, inlined[number]) for number in sorted(inlined)]
        written = write_flushed_deletes(
            self.attachment.spark, job, [(file, positions) for file, positions in wanted if file is not None]
        )
        staging = self.transaction.staging
        staging.files.extend(info.path + one.delete.path for one in written)
        stage_flushed_deletes(staging, info, written)
        counts = {number: file.deletes.inlined_deletes for number, file in files.items() if file.deletes}
        for listed in id_lists(inlined):
            count = sum(counts[int(number)] for number in listed.split(", "))
            staging.removed.append(RemovedRows(inlined_delete_name(info.id), f"file_id IN ({listed})", count))

    def rows(self) -> int:
        """Flush the inlined rows, and forget the catalog's tables that hold none any more. Returns how many rows."""
        database, info, staging = self.transaction.catalog.database, self.table.info, self.transaction.staging
        tables = tables_of_inlined_rows(database, info.id, self.table.history.columns)
        total = 0
        for place, inlined in enumerate(tables):
            spec = current_partition_spec(database, At(inlined.begin_snapshot), info.id)
            counted = _Counted(inlined.batches(database, self.table.base))
            files = self._files(inlined, spec, counted)
            if files:
                stage_flushed_rows(staging, info, spec.partition_id if spec else None, files)
                where = f"begin_snapshot <= {self.table.base}"
                staging.removed.append(RemovedRows(inlined.name, where, counted.rows, counted.ended))
            total += counted.rows
            if place < len(tables) - 1 and (files or staging.changes) and self._is_emptied(inlined.name):
                registered = f"table_name = '{inlined.name}'"
                staging.removed.append(RemovedRows(REGISTRY, registered, 1))
        return total

    def _is_emptied(self, name: str) -> bool:
        database = self.transaction.catalog.database
        table = database.identifier(name)
        return not database.query(f"SELECT 1 FROM {table} WHERE begin_snapshot > {self.table.base} LIMIT 1")

    def _files(self, inlined: InlinedTable, spec: PartitionSpec | None, batches: _Counted) -> list[FlushedFile]:
        plan = self._plan(inlined, spec)
        files = []
        for flushed in write_flushed(plan, iter(batches)):
            directory = self.table.info.path
            self.transaction.staging.files.append(directory + flushed.file.path)
            if flushed.delete is not None:
                self.transaction.staging.files.append(directory + flushed.delete.path)
            files.append(flushed)
        return files

    def _plan(self, inlined: InlinedTable, spec: PartitionSpec | None) -> FlushPlan:
        target, columns = self.target, inlined.columns
        ids = {column.id for column in columns}
        used = {column.id for key in target.sort_order for column in columns_of_key(key, target.columns)}
        names = {column.id: column.name for column in target.columns}
        known = used <= ids and all(column.name == names[column.id] for column in columns if column.id in used)
        order = target.sort_order if known else ()  # by columns that these rows have, under the names of today
        sort = sort_expressions(order, target.columns, target.info.full_name, target.macros) if order else None
        return FlushPlan(
            columns,
            self.table.info.path,
            file_options(target.option),
            self.write_id,
            target.encrypted,
            partition_keys(spec, columns),
            directory_names(spec, columns) if spec else (),
            sort.keys if sort else (),
            sort.macros if sort else (),
        )


class _Counted:
    """Batches that are counted as they go by: all rows, and those that have ended."""

    def __init__(self, batches: Iterator[pa.Table]) -> None:
        self._batches = batches
        self.rows = self.ended = 0

    def __iter__(self) -> Iterator[pa.Table]:
        for batch in self._batches:
            self.rows += batch.num_rows
            self.ended += pc.count(batch["end_snapshot"]).as_py()
            yield batch
