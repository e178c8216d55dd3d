"""Writers that need no Spark: they stage rows and files themselves, and commit them as every statement does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import pyarrow as pa

from penstock.ducklake.catalog import objects
from penstock.ducklake.catalog.commits import staged_tables as staged_tables
from penstock.ducklake.catalog.commits.commit import CommitInfo, RetryPolicy
from penstock.ducklake.catalog.commits.staged_files import add_files, add_inlined
from penstock.ducklake.catalog.inlined_storage import inlined_statistics
from penstock.ducklake.catalog.opening import AttachOptions, open_catalog
from penstock.ducklake.model.objects import TableInfo
from penstock.ducklake.model.schema_evolution import column_rows
from penstock.ducklake.transaction import Transaction
from penstock.schema.columns import Column
from penstock.schema.statistics import WrittenFile
from penstock.schema.types import Type
from penstock.storage.parquet import FileOptions, WritePlan, write_files

ID = (Column(1, "id", Type("int64"), 0),)


class Writer:
    """One connection to a lake; the lake is made if it is not there."""

    def __init__(self, uri: str, data_path: str, retries: RetryPolicy | None = None) -> None:
        self.catalog = open_catalog(uri, AttachOptions(data_path))
        self.retries = retries or RetryPolicy()

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.catalog.database.close()

    @contextmanager
    def transaction(self, **info: str) -> Iterator[Transaction]:
        transaction = Transaction(self.catalog, CommitInfo(**info), self.retries)
        try:
            yield transaction
            transaction.commit()
        except BaseException:
            if transaction.is_open:
                transaction.roll_back()
            raise

    def create_table(self, name: str, columns: Sequence[Column] = ID) -> None:
        with self.transaction() as transaction:
            self.stage_table(transaction, name, columns)

    def stage_table(self, transaction: Transaction, name: str, columns: Sequence[Column] = ID) -> None:
        shown = transaction.shown()
        [main] = objects.schemas(shown.database, shown.at, shown.data_path)
        table = staged_tables.create_table(transaction.staging, main, name, column_rows(columns))
        transaction.staging.reshaped[table.id] = tuple(columns)

    def table(self, transaction: Transaction, name: str) -> TableInfo:
        shown = transaction.shown()
        return objects.find_table(shown.database, shown.at, shown.data_path, "main", name)

    def append(self, name: str, *values: Any, **info: str) -> None:
        """One snapshot with rows that are kept in the catalog."""
        with self.transaction(**info) as transaction:
            self.stage_inlined(transaction, name, *values)

    def stage_inlined(self, transaction: Transaction, name: str, *values: Any) -> None:
        rows = pa.table({"id": pa.array(values, pa.int64())})
        add_inlined(transaction.staging, self.table(transaction, name).id, ID, rows, inlined_statistics(ID, rows))

    def append_file(self, name: str, *values: Any, **info: str) -> None:
        """One snapshot with rows that are in a file."""
        with self.transaction(**info) as transaction:
            self.stage_file(transaction, name, *values)

    def stage_file(self, transaction: Transaction, name: str, *values: Any) -> None:
        table = self.table(transaction, name)
        plan = WritePlan(ID, table.path, FileOptions())
        batch = pa.RecordBatch.from_arrays([pa.array(values, pa.int64())], names=["id"])
        files: list[WrittenFile] = list(write_files(plan, [batch]))
        transaction.staging.files.extend(table.path + file.path for file in files)
        add_files(transaction.staging, table.id, None, files)
