"""Makes a table of Parquet files: its columns from theirs, and their rows linked or copied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.ducklake.attachment import Attachment
from penstock.ducklake.files.name_matching import MatchingRules
from penstock.ducklake.model.names import parse_table_name
from penstock.ducklake.model.objects import SortKey
from penstock.ducklake.model.schema_evolution import check_names
from penstock.ducklake.moving.files_schema import columns_of_files
from penstock.ducklake.reading.table_scan import table_scan
from penstock.ducklake.transaction import Transaction
from penstock.ducklake.writing import definitions
from penstock.ducklake.writing.added_files import add_files, located_path
from penstock.ducklake.writing.inserts import insert_assigned
from penstock.ducklake.writing.sort_order import check_sort_keys
from penstock.ducklake.writing.table_schemas import NewTable, without_default
from penstock.ducklake.writing.write_target import WriteTarget, write_target
from penstock.spark.stores import prepare_other_store
from penstock.spark.types import has_nanoseconds
from penstock.storage.parquet import check_writable
from penstock.storage.patterns import named_files


@dataclass(frozen=True)
class FileTable:
    """A table that is to be made of files."""

    name: str
    paths: Sequence[str]
    partitioned_by: Sequence[str]
    sorted_by: Sequence[SortKey]
    comment: str | None
    copy: bool
    rules: MatchingRules


def create_table_from_files(attachment: Attachment, table: FileTable) -> None:
    """Make the table, and link its files or write their rows anew."""
    attachment.check_writable()
    for path in table.paths:
        prepare_other_store(attachment.spark, path, attachment.catalog.data_path)
    files = list(dict.fromkeys(file for path in table.paths for file in named_files(located_path(path))))
    found = columns_of_files(
        attachment.spark, files,
        allow_missing=table.rules.allow_missing, hive_partitioning=table.rules.hive_partitioning,
    )  # fmt: skip
    columns = tuple(map(without_default, found))
    schema, name = parse_table_name(table.name)
    inlines = attachment.inlines(attachment.schema_id(schema))
    check_names(columns, inlining=inlines)
    check_sort_keys(attachment.spark, columns, list(table.sorted_by), f"{schema}.{name}")
    with attachment.statement() as transaction:
        info = definitions.create_table(
            transaction, table.name, NewTable(columns, {}), partitioned_by=table.partitioned_by,
            sorted_by=table.sorted_by, comment=table.comment, inlines=inlines,
        )  # fmt: skip
        target = write_target(transaction, info, attachment.options)
        if table.copy:
            _copy(attachment, transaction, target, files, table.rules)
        else:
            add_files(transaction, attachment.spark, target, files, table.rules)


def _copy(
    attachment: Attachment, transaction: Transaction, target: WriteTarget, files: Sequence[str], rules: MatchingRules
) -> None:
    """Insert the rows that the table would show if the files were linked, in a transaction that never ends."""
    check_writable(target.columns)
    linked = transaction.fork()
    add_files(linked, attachment.spark, target, files, rules)
    shown = linked.shown()
    with shown.database.consistent():
        nanoseconds = any(map(has_nanoseconds, target.columns))
        scan = table_scan(attachment, shown, target.info, nanoseconds=nanoseconds)
        rows = scan.frame(scan.contents())
    insert_assigned(transaction, target, rows)
