"""Looks up tables as rows are written to them, and keeps what it found for as long as the lake's definitions stay."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.catalog.objects import (
    column_versions,
    columns_at,
    current_partition_spec,
    find_table,
    sort_order,
)
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.model.objects import ColumnVersion, SortKey, TableInfo
from penstock.ducklake.model.snapshots import Snapshot
from penstock.partitioning import PartitionSpec
from penstock.schema.columns import Column


@dataclass(frozen=True)
class WrittenTable:
    """A table with all of its definition that decides how rows are written to it."""

    info: TableInfo
    history: tuple[ColumnVersion, ...]
    columns: tuple[Column, ...]
    spec: PartitionSpec | None
    sort_order: tuple[SortKey, ...]


def written_table(database: Database, at: At, info: TableInfo) -> WrittenTable:
    """Look up how rows are written to a table."""
    with database.consistent():
        history = tuple(column_versions(database, info.id))
        spec = current_partition_spec(database, at, info.id)
        order = sort_order(database, at, info.id)
    return WrittenTable(info, history, columns_at(history, at), spec, order)


class KnownTables:
    """The tables of one lake that were written to lately.

    A snapshot's schema version is another whenever a definition is, whoever changed it: DuckDB's extension relies on
    that as well.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._version = self._newest = -1
        self._tables: dict[tuple[str, str], WrittenTable] = {}

    def find(self, database: Database, base: Snapshot, data_path: str, schema: str, name: str) -> WrittenTable:
        """The table of this name at a snapshot that was the newest a moment ago."""
        with self._lock:
            if base.schema_version != self._version or base.id < self._newest:  # or a backup took the lake's place
                self._tables = {}
            self._version, self._newest, tables = base.schema_version, base.id, self._tables
        found = tables.get((schema, name))
        if found is None:
            at = At(base.id)
            found = written_table(database, at, find_table(database, at, data_path, schema, name))
            tables[schema, name] = found
        return found
