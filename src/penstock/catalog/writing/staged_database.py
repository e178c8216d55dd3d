"""A database as a transaction sees it: the catalog, and on top of it what the transaction has staged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pyarrow as pa

from penstock.catalog.databases import Database, Row
from penstock.catalog.databases.base import InlinedColumn
from penstock.catalog.writing.apply import apply, first_row_ids
from penstock.catalog.writing.staging import Staging
from penstock.model.columns import Column


class StagedDatabase(Database):
    """Answers every query inside a database transaction that holds the staged rows and is then rolled back.

    So nothing that reads the catalog needs to know about transactions, and no lock outlives a question.
    """

    def __init__(self, database: Database, staging: Staging) -> None:
        super().__init__(database.location)
        self.inner = database
        self.staging = staging
        self.engine, self.dialect = database.engine, database.dialect
        self._shown = 0

    @contextmanager
    def consistent(self) -> Iterator[None]:
        with self._lock:
            if self._shown:
                yield
                return
            with self.inner.scratch():
                self._shown += 1
                try:
                    apply(self.inner, self.staging, lambda value: value, first_row_ids(self.inner, self.staging))
                    yield
                finally:
                    self._shown -= 1

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        with self.consistent():
            return self.inner.query(sql, parameters)

    def staged_inlined(self, table_id: int) -> Sequence[tuple[tuple[Column, ...], pa.Table, int]]:
        with self.consistent():
            first = first_row_ids(self.inner, self.staging).get(table_id, 0)
        return [
            (staged.columns, staged.rows, first + staged.first_row) for staged in self.staging.inlined.get(table_id, ())
        ]

    def tables(self, prefix: str) -> set[str]:
        with self.consistent():
            return self.inner.tables(prefix)

    def columns(self, table: str) -> list[str]:
        with self.consistent():
            return self.inner.columns(table)

    def inlined(
        self, table: str, columns: Sequence[InlinedColumn], where: str, parameters: Sequence[Any], select: str
    ) -> pa.Table:
        with self.consistent():
            return self.inner.inlined(table, columns, where, parameters, select)

    def identifier(self, name: str) -> str:
        return self.inner.identifier(name)

    def time(self, value: Any) -> datetime:
        return self.inner.time(value)

    def time_parameter(self, value: datetime) -> Any:
        return self.inner.time_parameter(value)

    def inlined_text(
        self, table: str, columns: Sequence[InlinedColumn], where: str, parameters: Sequence[Any]
    ) -> list[Row]:
        with self.consistent():
            return self.inner.inlined_text(table, columns, where, parameters)

    def is_collision(self, error: BaseException) -> bool:
        return self.inner.is_collision(error)

    def _query(self, sql: str, parameters: Sequence[Any]) -> list[Row]:
        return self.query(sql, parameters)

    def _execute(self, sql: str, parameters: Sequence[Any]) -> None:
        raise TypeError("staged rows are changed by Staging, not by statements")

    def _insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        raise TypeError("staged rows are added by Staging")

    def _close(self) -> None:
        self.inner.close()
