"""Answers queries as a transaction sees the database: the catalog, and on top of it what the transaction has staged."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Any

import pyarrow as pa

from penstock.ducklake.catalog.commits.staged_statements import add_rows, end_rows, first_row_ids, table_totals
from penstock.ducklake.catalog.commits.staging import Staging
from penstock.ducklake.catalog.databases import Database, Row
from penstock.ducklake.catalog.databases.base import InlinedColumn
from penstock.schema.columns import Column

_ATTEMPTS = 5
_CATALOG_TABLE = re.compile(r"ducklake_\w+")


def _as_it_is(value: Any) -> Any:
    return value


class StagedDatabase(Database):
    """Answers every query inside a database transaction that holds the staged rows and is then rolled back.

    So nothing that reads the catalog needs to know about transactions, and no lock outlives a question.
    """

    def __init__(self, database: Database, staging: Staging) -> None:
        super().__init__(database.location)
        self.inner = database
        self.staging = staging
        self.engine, self.dialect = database.engine, database.dialect
        self._added: set[str] | None = None  # the catalog tables that hold their staged rows, inside a transaction

    @contextmanager
    def consistent(self) -> Iterator[None]:
        with self._lock:
            if self._added is not None:
                yield
                return
            with self._ended():
                self._added = set()
                try:
                    self._number_rows()
                    yield
                finally:
                    self._added = None

    @contextmanager
    def _ended(self) -> Iterator[None]:
        """Open a transaction with the staged ends of rows; again, where another writer is changing the same ones."""
        # By now others, or this transaction itself, may have ended them for good.
        which = f"(end_snapshot IS NULL OR end_snapshot > {self.staging.base.id})"
        for attempt in range(1, _ATTEMPTS + 1):
            with self.inner.scratch():
                try:
                    end_rows(self.inner, self.staging, _as_it_is, which)
                except Exception as error:
                    if attempt == _ATTEMPTS or not self.inner.is_collision(error):
                        raise
                    continue
                yield
                return

    def _number_rows(self) -> None:
        known = self.staging.shown_row_ids
        if self.staging.growth.keys() - known.keys():
            totals = table_totals(self.inner, self.staging)
            known.update({**first_row_ids(self.staging, totals), **known})

    def _add(self, sql: str) -> None:
        """Add the staged rows of the tables that a query names: those that are only added need not be there before."""
        assert self._added is not None
        for table in set(_CATALOG_TABLE.findall(sql)) - self._added:
            add_rows(self.inner, self.staging, table, _as_it_is, self.staging.shown_row_ids)
            self._added.add(table)

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        with self.consistent():
            self._add(sql)
            return self.inner.query(sql, parameters)

    def staged_inlined(self, table_id: int) -> Sequence[tuple[tuple[Column, ...], pa.Table, pa.Int64Array]]:
        with self.consistent():
            first = self.staging.shown_row_ids.get(table_id, 0)
        return [
            (staged.columns, staged.rows, staged.row_ids(first)) for staged in self.staging.inlined.get(table_id, ())
        ]

    def tables(self, prefix: str) -> set[str]:
        with self.consistent():
            return self.inner.tables(prefix)

    def existing(self, names: Collection[str]) -> set[str]:
        with self.consistent():
            return self.inner.existing(names)

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

    def _is_collision(self, error: BaseException) -> bool:
        return self.inner.is_collision(error)

    def _fetched(self, sql: str, parameters: Sequence[Any]) -> list[Row]:
        return self.query(sql, parameters)

    def _run(self, sql: str, parameters: Sequence[Any]) -> None:
        raise TypeError("staged rows are changed by Staging, not by statements")

    def _cursor(self, sql: str) -> AbstractContextManager[Any]:
        raise TypeError("staged rows are read all at once")

    def _insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        raise TypeError("staged rows are added by Staging")

    def _close(self) -> None:
        self.inner.close()
