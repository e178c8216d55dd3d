"""Collects what a transaction changes before it commits: rows to add to the catalog, rows to end, files it wrote."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.ducklake.catalog.commits.compacted_sources import CompactedSources
from penstock.ducklake.catalog.commits.conflicts import CHECKED, DELETED, INSERTED
from penstock.ducklake.catalog.commits.merge_reliance import MergeReliance
from penstock.ducklake.catalog.commits.provisional_ids import ProvisionalIds, is_provisional
from penstock.ducklake.catalog.commits.removed_rows import RemovedRows
from penstock.ducklake.catalog.commits.stream_batches import StreamBatch
from penstock.ducklake.model.objects import ColumnVersion
from penstock.ducklake.model.snapshot_changes import SnapshotChange
from penstock.ducklake.model.snapshots import Snapshot
from penstock.schema.columns import Column
from penstock.schema.statistics import ColumnStatistics

DELETE_FILES = "ducklake_delete_file"
FILE_TABLES = ("ducklake_data_file", DELETE_FILES)
CatalogRow = Mapping[str, Any]
Where = Mapping[str, int | str | frozenset[int]]


@dataclass(frozen=True)
class Ending:
    """Rows of a catalog table that end with the transaction, by the values of some columns."""

    table: str
    where: Where

    @property
    def is_of_staged(self) -> bool:
        """Whether it can only be about rows that are not committed."""
        numbers = [value for value in self.where.values() if not isinstance(value, str)]
        return any(is_provisional(n) if isinstance(n, int) else all(map(is_provisional, n)) for n in numbers)

    def matches(self, row: CatalogRow) -> bool:
        """Whether a row is one of those that end."""
        return all(
            row.get(name) in wanted if isinstance(wanted, frozenset) else row.get(name) == wanted
            for name, wanted in self.where.items()
        )


@dataclass(frozen=True)
class InlinedRows:
    """Rows for the catalog itself, under the columns that their table has by now, in the types Spark shows.

    `numbers` are their row ids, where the rows `had_ids` before; else they count them among all new rows that the
    transaction adds to the table.
    """

    columns: tuple[Column, ...]
    rows: pa.Table
    numbers: pa.Int64Array
    had_ids: bool = False

    def row_ids(self, first_new: int) -> pa.Int64Array:
        """The row ids: those that the rows had, or ids counted from the first that is free."""
        return self.numbers if self.had_ids else pc.add(self.numbers, first_new)


@dataclass(frozen=True)
class ReplacedDelete:
    """A committed delete file, whose place a staged one takes.

    `expected` is the number that the staged file says for what the transaction itself deletes, if it deletes anything.
    """

    id: int
    begin_snapshot: int
    data_file: str  # absolute
    directory: str  # of the table
    expected: int | None = None


@dataclass
class TableGrowth:
    """What a transaction adds to one table, for its statistics."""

    records: int = 0
    row_ids: int = 0
    file_bytes: int = 0
    statistics: list[Sequence[ColumnStatistics]] = field(default_factory=list)  # one for each set of rows

    def copy(self) -> TableGrowth:
        """A copy that later changes do not reach."""
        return TableGrowth(self.records, self.row_ids, self.file_bytes, list(self.statistics))


@dataclass
class Staging:
    """The changes of one transaction on top of the snapshot that it began at."""

    base: Snapshot
    ids: ProvisionalIds = field(default_factory=ProvisionalIds)
    added: dict[str, list[CatalogRow]] = field(default_factory=dict, repr=False)  # keys of files are in it
    endings: list[Ending] = field(default_factory=list)
    inlined: dict[int, list[InlinedRows]] = field(default_factory=dict)
    inlined_ended: dict[str, set[int]] = field(default_factory=dict)
    growth: dict[int, TableGrowth] = field(default_factory=dict)
    reshaped: dict[int, tuple[Column, ...]] = field(default_factory=dict)
    changes: dict[SnapshotChange, None] = field(default_factory=dict)
    checked: set[int] = field(default_factory=set)  # tables whose rows were looked at, and may get no others meanwhile
    reliances: list[MergeReliance] = field(default_factory=list)
    removed: list[RemovedRows] = field(default_factory=list)
    sources: list[CompactedSources] = field(default_factory=list)
    replaced: dict[int, ReplacedDelete] = field(default_factory=dict)  # by the staged delete file in its place
    files: list[str] = field(default_factory=list)  # written by this transaction
    # The first row id of what is added to a table, as it is shown before the commit gives the real one.
    shown_row_ids: dict[int, int] = field(default_factory=dict)
    # Delete files that were written anew when the snapshot got its number, for DataFrames made before that too.
    dated: dict[int, CatalogRow] = field(default_factory=dict)
    # The versions of columns as they were when the transaction began, of tables that it has looked up by then.
    histories: dict[int, Sequence[ColumnVersion]] = field(default_factory=dict, repr=False)
    stream: StreamBatch | None = None  # the batch of a stream that the transaction writes
    attempted: Snapshot | None = None  # the snapshot that a commit wrote whole, so that only COMMIT was missing

    @property
    def own(self) -> int:
        """The number that staged rows begin and end with."""
        return self.ids.snapshot

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be committed."""
        return not (self.added or self.endings or self.inlined or self.inlined_ended or self.changes)

    @property
    def unlogged(self) -> tuple[SnapshotChange, ...]:
        """Changes that conflict with those of others, and that others do not have to know."""
        return (
            *self._renamed,
            *(SnapshotChange(CHECKED, str(number)) for number in self.checked if not is_provisional(number)),
        )

    @property
    def _renamed(self) -> tuple[SnapshotChange, ...]:
        """What renaming does to tables and views that others know, whose log only has the new name."""
        tables = {row["table_id"] for row in self.added.get("ducklake_table", ())}
        views = {row["view_id"] for row in self.added.get("ducklake_view", ())}
        return tuple(
            SnapshotChange(kind, str(number))
            for kind, numbers in (("altered_table", tables), ("altered_view", views))
            for number in sorted(numbers)
            if not is_provisional(number)
        )

    @property
    def written_tables(self) -> list[int]:
        """The tables that the transaction makes, or changes rows of."""
        changed = {int(change.value) for change in self.changes if change.kind in (*INSERTED, *DELETED)}
        gone = {int(change.value) for change in self.changes if change.kind == "dropped_table"}
        return sorted((changed | {row["table_id"] for row in self.added.get("ducklake_table", ())}) - gone)

    def unused_files(self) -> list[str]:
        """Files that were written and are not part of what is staged any more."""
        used = {_file_name(row["path"]) for table in FILE_TABLES for row in self.rows(table)}
        return [path for path in self.files if _file_name(path) not in used]

    def copy(self) -> Staging:
        """A copy that later changes do not reach."""
        return Staging(
            self.base,
            self.ids,
            {table: list(rows) for table, rows in self.added.items()},
            list(self.endings),
            {table_id: list(rows) for table_id, rows in self.inlined.items()},
            {table: set(rows) for table, rows in self.inlined_ended.items()},
            {table_id: growth.copy() for table_id, growth in self.growth.items()},
            dict(self.reshaped),
            dict(self.changes),
            set(self.checked),
            list(self.reliances),
            list(self.removed),
            list(self.sources),
            dict(self.replaced),
            list(self.files),
            self.shown_row_ids,
            self.dated,
            self.histories,
            self.stream,
        )

    def rows(self, table: str) -> Sequence[CatalogRow]:
        """The rows that are added to a catalog table; those of delete files as these were written last."""
        rows = self.added.get(table, ())
        if table != DELETE_FILES or not self.dated:
            return rows
        return [{**row, **self.dated.get(row["delete_file_id"], {})} for row in rows]

    def add(self, table: str, **values: Any) -> None:
        """Add a row to a catalog table."""
        self.added.setdefault(table, []).append(values)

    def add_versioned(self, table: str, **values: Any) -> None:
        """Add a row that holds from this transaction's snapshot on."""
        self.add(table, begin_snapshot=self.own, end_snapshot=None, **values)

    def end(self, table: str, **where: int | str | Iterable[int]) -> None:
        """End rows; those that this very transaction added are as if they had never been."""
        given = {k: v if isinstance(v, int | str) else frozenset(v) for k, v in where.items()}
        ending = Ending(table, given)
        kept = [row for row in self.added.get(table, ()) if not ending.matches(row)]
        self._replace(table, kept)
        if not ending.is_of_staged and ending not in self.endings:
            self.endings.append(ending)

    def remove(self, table: str, key: str, values: Collection[int]) -> None:
        """Take back rows that this transaction added."""
        if values and table in self.added:
            self._replace(table, [row for row in self.added[table] if row.get(key) not in values])

    def forget(self, table_id: int) -> None:
        """Take back everything about a table that this transaction made."""
        for table in list(self.added):
            kept = [row for row in self.added[table] if table_id not in (row.get("table_id"), row.get("object_id"))]
            self._replace(table, kept)
        self.inlined.pop(table_id, None)
        self.growth.pop(table_id, None)
        self.reshaped.pop(table_id, None)
        self.reliances = [reliance for reliance in self.reliances if reliance.table_id != table_id]
        self.changes = {change: None for change in self.changes if change.value != str(table_id)}

    def log(self, kind: str, value: int | str) -> None:
        """Note a change for other writers; a table that is new needs no note of being altered."""
        new = isinstance(value, int) and is_provisional(value)
        if not (new and kind in ("altered_table", "altered_view")):
            self.changes[SnapshotChange(kind, str(value))] = None

    def unlog(self, kind: str, value: int | str) -> None:
        """Take back the note of a change."""
        self.changes.pop(SnapshotChange(kind, str(value)), None)

    def rely_on(self, reliance: MergeReliance) -> None:
        """Note rows that must not come meanwhile; a table that is new gets no rows of others."""
        if not is_provisional(reliance.table_id):
            self.reliances.append(reliance)

    def new_schema_version(self, table_id: int) -> None:
        """Note that the table is another from this snapshot on: in its columns, partitioning or name."""
        rows = self.added.setdefault("ducklake_schema_versions", [])
        if not any(row["table_id"] == table_id for row in rows):
            version = self.ids.schema_version
            rows.append({"begin_snapshot": self.own, "schema_version": version, "table_id": table_id})

    def growing(self, table_id: int) -> TableGrowth:
        """The growth of a table, to count on."""
        return self.growth.setdefault(table_id, TableGrowth())

    def _replace(self, table: str, rows: Sequence[CatalogRow]) -> None:
        if rows:
            self.added[table] = list(rows)
        else:
            self.added.pop(table, None)


def _file_name(path: str) -> str:
    return path.rpartition("/")[2]
