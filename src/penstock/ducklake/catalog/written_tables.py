"""Looks up tables as rows are written to them, and keeps what it found for as long as the lake's definitions stay."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.catalog.objects import (
    column_versions,
    columns_at,
    current_partition_spec,
    find_table,
    sort_order,
)
from penstock.ducklake.catalog.remembered_answers import Moment
from penstock.ducklake.catalog.snapshots import has_snapshot
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


@dataclass(frozen=True)
class _Known:
    """Tables as they are at a moment, and as long as the schema version stays."""

    version: int
    moment: Moment
    tables: dict[tuple[str, str], WrittenTable] = field(default_factory=dict)

    def holds_at(self, database: Database, base: Snapshot) -> bool:
        """Whether a snapshot came after the moment, in the same catalog, and has the same definitions."""
        if base.schema_version != self.version or base.id < self.moment.snapshot:
            return False
        return self.moment == _moment(base) or has_snapshot(database, self.moment)


class KnownTables:
    """The tables of one lake that were written to lately.

    A snapshot's schema version is another whenever a definition is, whoever changed it: DuckDB's extension relies on
    that as well. Only a backup that took the lake's place, and went on, may have the same one for something else.
    """

    def __init__(self) -> None:
        self._known: _Known | None = None  # another one takes its place: threads need no lock

    def find(self, database: Database, base: Snapshot, data_path: str, schema: str, name: str) -> WrittenTable:
        """The table of this name at a snapshot that was the newest a moment ago."""
        known = self._known
        tables = known.tables if known is not None and known.holds_at(database, base) else {}
        self._known = _Known(base.schema_version, _moment(base), tables)
        found = tables.get((schema, name))
        if found is None:
            at = At(base.id)
            found = written_table(database, at, find_table(database, at, data_path, schema, name))
            tables[schema, name] = found
        return found

    def note_commit(self, base: Snapshot, made: Snapshot) -> None:
        """A snapshot was made on another one: nobody needs to ask whether it came after that."""
        known = self._known
        if known is not None and known.moment == _moment(base) and known.version == made.schema_version:
            self._known = _Known(known.version, _moment(made), known.tables)


def _moment(snapshot: Snapshot) -> Moment:
    return Moment(snapshot.id, snapshot.time)
