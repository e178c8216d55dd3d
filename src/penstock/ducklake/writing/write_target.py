"""Looks up a table that rows are written to, and makes the job that writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from penstock.ducklake.catalog import objects
from penstock.ducklake.catalog.inlined_storage import inlinable
from penstock.ducklake.catalog.written_tables import WrittenTable, written_table
from penstock.ducklake.model.objects import Macro, SortKey, TableInfo
from penstock.ducklake.model.options import OptionValue, effective_value
from penstock.ducklake.transaction import Transaction
from penstock.ducklake.writing.file_options import file_options
from penstock.ducklake.writing.sort_order import Sorting, plain_column, plain_sorting, with_sort_columns
from penstock.partitioning import PartitionSpec, directory_names
from penstock.schema.columns import Column
from penstock.spark.arrow_transfer import with_decimals_as_longs
from penstock.spark.expressions import spark_quoted
from penstock.spark.write_job import Distribution, PartitionKey, WriteJob, distributed, grouping
from penstock.storage.parquet import WritePlan


@dataclass(frozen=True)
class WriteTarget:
    """A table that rows are written to, with all that decides how."""

    info: TableInfo
    columns: tuple[Column, ...]
    spec: PartitionSpec | None
    sort_order: tuple[SortKey, ...]
    options: tuple[OptionValue, ...]
    attached: Mapping[str, str]
    encrypted: bool
    inlines: bool  # whether its rows may be kept in the catalog
    macros: tuple[Macro, ...] = ()  # what its sort order may be made of

    def option(self, name: str) -> str | None:
        """The value of an option that holds for the table."""
        return effective_value(name, self.options, self.info.schema.id, self.info.id, self.attached)

    @property
    def inlined_deletes(self) -> int:
        """How many positions of a file a delete may keep in the catalog."""
        return int(self.option("data_inlining_row_limit") or 0)

    @property
    def sorts_inserts(self) -> bool:
        """Whether inserts are sorted."""
        return self.option("sort_on_insert") == "true"

    @property
    def sorts(self) -> bool:
        """Whether rows are sorted: where few may stay in the catalog, DuckLake sorts those that go to files anyway."""
        return bool(self.sort_order) and bool(self.sorts_inserts or self.inlined_rows)

    @property
    def inlined_rows(self) -> int:
        """How many rows an insert may keep in the catalog."""
        return int(self.option("data_inlining_row_limit") or 0) if self.inlines else 0


def write_target(transaction: Transaction, table: TableInfo, attached: Mapping[str, str]) -> WriteTarget:
    """Look up a table as the transaction sees it."""
    shown = transaction.shown()
    return target_of(transaction, written_table(shown.database, shown.at, table), attached)


def target_of(transaction: Transaction, table: WrittenTable, attached: Mapping[str, str]) -> WriteTarget:
    """A table that was looked up as the transaction sees it, with its options."""
    shown = transaction.shown()
    computed = any(plain_column(key.expression, table.columns) is None for key in table.sort_order)
    macros = tuple(objects.macros(shown.database, shown.at, shown.data_path)) if computed else ()
    options = transaction.options
    encrypted = effective_value("encrypted", options, None, None) == "true"
    inlines = inlinable(table.columns, shown.database.engine)
    return WriteTarget(
        table.info, table.columns, table.spec, table.sort_order, options, attached, encrypted, inlines, macros
    )


def new_target(
    transaction: Transaction,
    table: TableInfo,
    columns: tuple[Column, ...],
    options: tuple[OptionValue, ...],
    attached: Mapping[str, str],
) -> WriteTarget:
    """A table that the transaction has just made, without partitions or an order."""
    encrypted = effective_value("encrypted", options, None, None) == "true"
    inlines = inlinable(columns, transaction.catalog.database.engine)
    return WriteTarget(table, columns, None, (), options, attached, encrypted, inlines)


def write_job_for(
    target: WriteTarget,
    rows: DataFrame,
    distribution: Distribution,
    *,
    row_id: str | None = None,
    others: Sequence[str] = (),
) -> tuple[WriteJob, DataFrame]:
    """Make the job that writes rows, and bring the rows to it: with what it needs, on as many tasks as it takes.

    The first columns of the rows are the table's. The rows that come out have those, the row id where one is named,
    columns that are only sorted by, and the others.
    """
    columns = rows.columns[: len(target.columns)]
    keys = partition_keys(target.spec, target.columns)
    sorting = Sorting()
    before, known = len(columns) + (row_id is not None), set(rows.columns)
    if target.sorts:
        sorting, rows = with_sort_columns(
            rows, target.columns, target.sort_order, before + len(keys), target.info.full_name, target.macros
        )
    sorted_by = [name for name in rows.columns if name not in known]
    plan = _write_plan(target, sorting, len(sorted_by), row_ids=row_id is not None)
    ordered = rows.select(*columns, *([row_id] if row_id else []), *sorted_by, *others)
    carried, decimals = with_decimals_as_longs(ordered)
    if target.option("per_thread_output") == "true" and distribution == "auto":
        distribution = "none"
    spread = distributed(carried, _grouping(target, carried), plan.options.target_file_size, distribution)
    return WriteJob(plan, keys, target.inlined_rows, decimals, sorting.computed), spread


def plain_job(target: WriteTarget, distribution: Distribution, *, row_ids: bool = False) -> WriteJob | None:
    """Make the job that writes rows as they are; None where Spark is to sort or to spread them first."""
    sorting = plain_sorting(target.columns, target.sort_order) if target.sorts else Sorting()
    if sorting is None or distribution != "auto" or target.option("per_thread_output") == "true":
        return None
    keys = partition_keys(target.spec, target.columns)
    return WriteJob(_write_plan(target, sorting, row_ids=row_ids), keys, target.inlined_rows)


def job_as_is(target: WriteTarget) -> WriteJob:
    """Make the job that writes rows in the order and in the tasks that they come in."""
    return WriteJob(_write_plan(target, Sorting()), partition_keys(target.spec, target.columns), target.inlined_rows)


def _write_plan(target: WriteTarget, sorting: Sorting, sorted_by: int = 0, *, row_ids: bool = False) -> WritePlan:
    return WritePlan(
        columns=target.columns,
        directory=target.info.path,
        options=file_options(target.option),
        partition_names=directory_names(target.spec, target.columns) if target.spec else (),
        sort=sorting.by,
        extra_columns=sorted_by + (len(sorting.computed.keys) if sorting.computed else 0),
        encrypted=target.encrypted,
        row_ids=row_ids,
    )


def partition_keys(spec: PartitionSpec | None, columns: Sequence[Column]) -> tuple[PartitionKey, ...]:
    """What rows with these columns are partitioned by."""
    if spec is None:
        return ()
    places = {column.id: (position, column.type) for position, column in enumerate(columns)}
    return tuple(PartitionKey(*places[field.column_id], field.transform) for field in spec.fields)


def _grouping(target: WriteTarget, rows: DataFrame) -> list[SparkColumn]:
    """What brings the rows of a partition together."""
    if target.spec is None:
        return []
    names = {column.id: name for column, name in zip(target.columns, rows.columns, strict=False)}
    return [grouping(field.transform, F.col(spark_quoted(names[field.column_id]))) for field in target.spec.fields]
