"""Statements that add rows to a table, and that put rows in the place of others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from penstock.catalog import objects
from penstock.catalog.inlining import inlinable, inlined_statistics, rows_fit
from penstock.catalog.writing.files import add_files, add_inlined
from penstock.catalog.writing.inlined_tables import keeps_every_value
from penstock.model.columns import Column
from penstock.model.objects import SortKey, TableInfo
from penstock.model.options import OptionValue, effective
from penstock.partitioning import PartitionSpec, directory_names
from penstock.spark.assignment import assigned, quoted
from penstock.spark.crossing import with_decimals_as_longs
from penstock.spark.sorting import with_sort_columns
from penstock.spark.writing import Distribution, Job, PartitionKey, Written, distributed, grouping, run
from penstock.storage.parquet import FileOptions, SortColumn, WritePlan, check_writable
from penstock.storage.parquet.values import check_not_null
from penstock.transaction import Transaction


@dataclass(frozen=True)
class Target:
    """A table as rows are written to it."""

    info: TableInfo
    columns: tuple[Column, ...]
    spec: PartitionSpec | None
    sort_order: tuple[SortKey, ...]
    options: tuple[OptionValue, ...]
    attached: Mapping[str, str]
    encrypted: bool
    inlines: bool  # whether its rows may be kept in the catalog

    def option(self, name: str) -> str | None:
        return effective(name, self.options, self.info.schema.id, self.info.id, self.attached)

    @property
    def inlined_deletes(self) -> int:
        """How many positions of a file a delete may keep in the catalog."""
        return int(self.option("data_inlining_row_limit") or 0)

    @property
    def inlined_rows(self) -> int:
        """How many rows an insert may keep in the catalog."""
        return int(self.option("data_inlining_row_limit") or 0) if self.inlines else 0


def target_of(transaction: Transaction, table: TableInfo, attached: Mapping[str, str]) -> Target:
    shown = transaction.shown()
    database, at = shown.database, shown.at
    with database.consistent():
        columns = objects.columns_at(objects.column_versions(database, table.id), at)
        spec = objects.current_partition_spec(database, at, table.id)
        order = objects.sort_order(database, at, table.id)
    options = tuple(transaction.catalog.options())
    encrypted = effective("encrypted", options, None, None) == "true"
    inlines = inlinable(columns, database.engine)
    return Target(table, columns, spec, order, options, attached, encrypted, inlines)


def insert(
    transaction: Transaction, target: Target, frame: DataFrame, *, by_name: bool, distribution: Distribution
) -> None:
    """Write the rows and stage them: few of them for the catalog itself, others as files."""
    check_writable(target.columns)
    rows = assigned(frame, target.columns, target.info.full_name, by_name=by_name)
    job, rows = _job(target, rows)
    if target.option("per_thread_output") == "true" and distribution == "auto":
        distribution = "none"
    spread = distributed(rows, _keys(target, rows), job.plan.options.target_file_size, distribution)
    written = run(spread, job)
    directory = target.info.path
    transaction.staging.files.extend(directory + file.path for file in written.files)
    if not written.files and _inlined(transaction, target, job, written):
        return
    files = list(written.files)
    if written.held:
        own = list(job.files(written.held))
        transaction.staging.files.extend(directory + file.path for file in own)
        files += own
    add_files(transaction.staging, target.info.id, target.spec.partition_id if target.spec else None, files)


def _inlined(transaction: Transaction, target: Target, job: Job, written: Written) -> bool:
    """Stage rows for the catalog, if they are few enough and it can hold them."""
    if not written.held:
        return True
    if written.held_count > target.inlined_rows:
        return False
    rows = job.in_order(written.held)
    check_not_null(target.columns, rows)
    if not _catalog_holds(transaction, target, rows):
        return False
    statistics = inlined_statistics(target.columns, rows)
    add_inlined(transaction.staging, target.info.id, target.columns, rows, statistics)
    return True


def _catalog_holds(transaction: Transaction, target: Target, rows: pa.Table) -> bool:
    database = transaction.catalog.database
    return rows_fit(target.columns, rows, database.engine) and keeps_every_value(
        database, transaction.staging, target.info.id, target.columns
    )


def _job(target: Target, rows: DataFrame) -> tuple[Job, DataFrame]:
    """What the tasks do, and the rows with what they need for it besides the table's columns."""
    positions = {column.id: position for position, column in enumerate(target.columns)}
    keys: tuple[PartitionKey, ...] = ()
    if target.spec:
        leaves = {column.id: column for column in target.columns}
        keys = tuple(
            PartitionKey(positions[field.column_id], leaves[field.column_id].type, field.transform)
            for field in target.spec.fields
        )
    sort: tuple[SortColumn, ...] = ()
    columns = len(rows.columns)
    if target.sort_order and target.option("sort_on_insert") == "true":
        first_extra = columns + len(keys)
        sort, rows = with_sort_columns(rows, target.columns, target.sort_order, first_extra, target.info.full_name)
    plan = WritePlan(
        columns=target.columns,
        directory=target.info.path,
        options=FileOptions.of(target.option),
        partition_names=directory_names(target.spec, target.columns) if target.spec else (),
        sort=sort,
        extra_columns=len(rows.columns) - columns,
        encrypted=target.encrypted,
    )
    carried, decimals = with_decimals_as_longs(rows)
    return Job(plan, keys, target.inlined_rows, decimals), carried


def _keys(target: Target, rows: DataFrame) -> list[SparkColumn]:
    """What brings the rows of a partition together."""
    if target.spec is None:
        return []
    names = {column.id: name for column, name in zip(target.columns, rows.columns, strict=False)}
    return [grouping(field.transform, F.col(quoted(names[field.column_id]))) for field in target.spec.fields]
