"""Overwrites partitions: rows take the place of all rows that are in the same partitions as they."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from penstock.ducklake.catalog.visible_files import partitions_of_files
from penstock.ducklake.changing.change_job import CONTROL_COLUMNS
from penstock.ducklake.changing.deletes import (
    Removal,
    control_columns,
    removal_of_all,
    removal_of_rows,
    stage_removal,
)
from penstock.ducklake.changing.target_rows import target_rows
from penstock.ducklake.changing.target_table import TargetTable
from penstock.ducklake.reading.scan_columns import FILE
from penstock.ducklake.transaction import Transaction
from penstock.ducklake.writing.insert_defaults import default_value
from penstock.ducklake.writing.inserts import insert, note_files, stage_written
from penstock.ducklake.writing.write_target import partition_keys, write_job_for
from penstock.partitioning import PartitionSpec
from penstock.spark.arrow_transfer import Decimals, with_decimals, with_decimals_as_longs
from penstock.spark.column_assignment import assigned_rows, assigned_values
from penstock.spark.workers import map_in_workers
from penstock.spark.write_job import Distribution, PartitionKey, WriteJob, Written, run_write_job
from penstock.storage.parquet import check_writable

Values = tuple[str | None, ...]  # of a partition


def overwrite_partitions(
    transaction: Transaction, table: TargetTable, frame: DataFrame, *, by_name: bool, distribution: Distribution
) -> None:
    """Write the rows, then remove what was in their partitions. A table without partitions is one, unless no row comes.

    Files of the table's partitioning go whole or stay, by what the catalog says of them. Only rows of files that were
    written under another one, and those that the catalog itself keeps, are read.
    """
    target = table.target
    if target.spec is None:
        stage_removal(transaction, target.info, removal_of_all(transaction, target.info))
        insert(transaction, target, frame, by_name=by_name, distribution=distribution)
        return
    check_writable(target.columns)
    default = partial(default_value, frame.sparkSession)
    rows = assigned_rows(frame, target.columns, target.info.full_name, by_name=by_name, default=default)
    job, spread = write_job_for(target, rows, distribution)
    written = run_write_job(spread, job)
    note_files(transaction, target, written)
    partitions = _partitions(job, written)
    stage_removal(transaction, target.info, _removal(transaction, table, target.spec, partitions))
    stage_written(transaction, target, job, written)


def _partitions(job: WriteJob, written: Written) -> frozenset[Values]:
    """The partitions of what was written, and of rows that the tasks have given back."""
    held = (values for batch in written.held for values in _values(job.keys, batch))
    return frozenset([*(tuple(file.partition_values) for file in written.files), *held])


def _values(keys: tuple[PartitionKey, ...], batch: pa.RecordBatch) -> Iterator[Values]:
    columns = [key.transform.values(batch.column(key.position), key.type).to_pylist() for key in keys]
    return zip(*columns, strict=True)


def _removal(
    transaction: Transaction, table: TargetTable, spec: PartitionSpec, partitions: frozenset[Values]
) -> Removal:
    scope = table.scan.scope
    known = partitions_of_files(scope.database, scope.at, scope.table_id, spec)
    whole = frozenset(file for file, values in known.items() if values in partitions)
    others = [file for file in _files(table) if file not in known]
    if not partitions or not (others or table.contents.inlined):
        return Removal(whole)
    found = target_rows(table.scan, table.contents)
    elsewhere = found.frame.where(F.col(FILE).isNull() | F.col(FILE).isin(*others))
    values = assigned_values(elsewhere, table.target.columns, found.unchanged())
    given = elsewhere.select(*(value.alias(f"v{i}") for i, value in enumerate(values)), *control_columns())
    carried, decimals = with_decimals_as_longs(given)
    chosen = _InPartitions(partition_keys(spec, table.target.columns), partitions, decimals)
    controls = given.select(*CONTROL_COLUMNS).schema
    return removal_of_rows(transaction, table, map_in_workers(carried, chosen, controls), whole)


@dataclass(frozen=True)
class _InPartitions:
    """Leaves the control columns of rows that are in some partitions."""

    keys: tuple[PartitionKey, ...]
    partitions: frozenset[Values]
    decimals: Decimals

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            whole = with_decimals(batch, self.decimals)
            mask = pa.array([values in self.partitions for values in _values(self.keys, whole)], pa.bool_())
            yield batch.select(CONTROL_COLUMNS).filter(mask)


def _files(table: TargetTable) -> list[int]:
    scope = table.scan.scope
    sql = f"SELECT data_file_id FROM ducklake_data_file WHERE table_id = ? AND {scope.at.visible()}"
    return [file for (file,) in scope.database.query(sql, [scope.table_id])]
