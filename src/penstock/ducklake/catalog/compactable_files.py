"""Lists the live data files of a table with all that decides which of them are compacted together."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.catalog.deleted_rows import deletable_files
from penstock.ducklake.catalog.id_lists import id_lists
from penstock.ducklake.catalog.inlined_rows import inlined_delete_table
from penstock.ducklake.catalog.objects import column_versions
from penstock.ducklake.catalog.snapshots import latest_snapshot, oldest_snapshot
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.catalog.visible_files import UNKNOWN_FILE
from penstock.ducklake.files.delete_files import DatedPositions, DeletableFile
from penstock.ducklake.model.objects import ColumnVersion, TableInfo
from penstock.storage.paths import resolve


@dataclass(frozen=True)
class CompactableFile:
    """A live data file: its row of the catalog, what it has lost, and the snapshot whose columns it has."""

    id: int
    path: str  # absolute
    stored_path: str
    path_is_relative: bool  # to the table's directory
    record_count: int
    size: int
    row_id_start: int | None
    begin_snapshot: int
    partition_id: int | None
    mapping_id: int | None
    partial_max: int | None
    encryption_key: str | None = field(repr=False)
    partition_values: tuple[str | None, ...] = ()
    deletes: DeletableFile | None = None  # None where nothing was ever deleted
    delete_count: int = 0
    has_ended_deletes: bool = False  # delete files that others took the place of

    @property
    def last_snapshot(self) -> int:
        """The newest snapshot that a row of it is of."""
        return self.begin_snapshot if self.partial_max is None else self.partial_max


@dataclass(frozen=True)
class TableHistory:
    """How a table came to be what it is: its columns, its schema versions, and the oldest snapshot that is kept."""

    columns: Sequence[ColumnVersion]
    versions: Sequence[int]  # the snapshots that each began with, in their order
    oldest: int

    def version(self, snapshot: int) -> int:
        """The snapshot that began the schema version of a snapshot."""
        return self.versions[max(0, bisect_right(self.versions, snapshot) - 1)] if self.versions else 0

    @property
    def forgotten(self) -> int:
        """The snapshot that began the newest version that none of the kept snapshots is older than, or 0.

        Files of older versions may be written as of this one: nobody sees what their columns were before.
        """
        return max((begin for begin in self.versions if begin < self.oldest), default=0)

    def columns_since(self, snapshot: int) -> int:
        """The snapshot since which the columns were what they are at a snapshot."""
        return max((change for change in self._column_changes if change <= snapshot), default=0)

    @cached_property
    def _column_changes(self) -> frozenset[int]:
        ends = {version.end_snapshot for version in self.columns if version.end_snapshot is not None}
        return frozenset(ends | {version.column.begin_snapshot for version in self.columns})

    def knows(self, snapshot: int) -> bool:
        """Whether it is known which schema version a snapshot had."""
        return bool(self.versions) and self.versions[0] <= snapshot


@dataclass(frozen=True)
class CompactableTable:
    """A table as a compaction finds it: `base` is the newest snapshot."""

    info: TableInfo
    base: int
    history: TableHistory
    files: Sequence[CompactableFile]


def compactable_table(database: Database, table: TableInfo) -> CompactableTable:
    """Ask the catalog for a table's live files, in one consistent state: a line a file.

    Those are left out of which nobody knows how their columns are found: they may lack field ids.
    """
    with database.consistent():
        base = latest_snapshot(database).id
        versions = database.query(
            "SELECT DISTINCT begin_snapshot FROM ducklake_schema_versions WHERE table_id = ? ORDER BY 1", [table.id]
        )
        history = TableHistory(
            column_versions(database, table.id), [row[0] for row in versions], oldest_snapshot(database)
        )
        return CompactableTable(table, base, history, _files(database, table, At(base)))


def _files(database: Database, table: TableInfo, at: At) -> list[CompactableFile]:
    rows = database.query(
        f"""SELECT data_file_id, path, path_is_relative, record_count, file_size_bytes, row_id_start, begin_snapshot,
                   partition_id, mapping_id, partial_max, encryption_key
            FROM ducklake_data_file d WHERE table_id = ? AND {at.visible()} AND NOT ({UNKNOWN_FILE})
            ORDER BY begin_snapshot, row_id_start, data_file_id""",
        [table.id],
    )
    files = [
        CompactableFile(r[0], resolve(table.path, r[1], bool(r[2])), r[1], bool(r[2]), *r[3:7], *r[7:11]) for r in rows
    ]
    values = _partition_values(database, table.id)
    deletes = {file.id: file for file in deletable_files(database, table, at, _ever_deleted(database, table.id))}
    counts = _delete_counts(database, table.id, at)
    sql = "SELECT DISTINCT data_file_id FROM ducklake_delete_file WHERE table_id = ? AND end_snapshot IS NOT NULL"
    ended = {row[0] for row in database.query(sql, [table.id])}
    return [
        replace(
            file,
            partition_values=values.get(file.id, ()) if file.partition_id is not None else (),
            deletes=deletes.get(file.id),
            delete_count=counts.get(file.id, 0),
            has_ended_deletes=file.id in ended,
        )
        for file in files
    ]


def _partition_values(database: Database, table_id: int) -> dict[int, tuple[str | None, ...]]:
    rows = database.query(
        """SELECT data_file_id, partition_value FROM ducklake_file_partition_value WHERE table_id = ?
           ORDER BY data_file_id, partition_key_index""",
        [table_id],
    )
    found: dict[int, list[str | None]] = defaultdict(list)
    for file_id, value in rows:
        found[file_id].append(value)
    return {file_id: tuple(values) for file_id, values in found.items()}


def _ever_deleted(database: Database, table_id: int) -> set[int]:
    """The files that have a delete file or inlined deletes, also ones that have ended."""
    rows = database.query("SELECT DISTINCT data_file_id FROM ducklake_delete_file WHERE table_id = ?", [table_id])
    name = inlined_delete_table(database, table_id)
    if name is not None:
        rows += database.query(f"SELECT DISTINCT file_id FROM {database.identifier(name)}")
    return {row[0] for row in rows}


def _delete_counts(database: Database, table_id: int, at: At) -> dict[int, int]:
    """How many rows each file has lost, by its delete file and in the catalog."""
    counts: dict[int, int] = defaultdict(int)
    for file_id, count in database.query(
        f"SELECT data_file_id, delete_count FROM ducklake_delete_file WHERE table_id = ? AND {at.visible()}", [table_id]
    ):
        counts[file_id] += count
    for file_id, positions in inlined_positions(database, table_id, at).items():
        counts[file_id] += len(positions.positions)
    return counts


def inlined_positions(
    database: Database, table_id: int, at: At, ids: Collection[int] | None = None
) -> dict[int, DatedPositions]:
    """The positions that are deleted in the catalog itself, by file: of all files, or of some."""
    name = inlined_delete_table(database, table_id)
    if name is None:
        return {}
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    sql = f"SELECT file_id, row_id, begin_snapshot FROM {database.identifier(name)} WHERE {at.begun()}"
    for condition in ("1 = 1",) if ids is None else tuple(f"file_id IN ({listed})" for listed in id_lists(ids)):
        for file_id, position, snapshot in database.query(f"{sql} AND {condition}"):
            found[file_id].append((position, snapshot))
    return {file_id: DatedPositions.of(*np.array(pairs, np.int64).reshape(-1, 2).T) for file_id, pairs in found.items()}


def files_with_nan(
    database: Database, table_id: int, ids: Collection[int], columns: Collection[int]
) -> dict[int, set[int]]:
    """Of some columns, those that may have NaN in each of some files: the catalog does not say that they have none."""
    found: dict[int, set[int]] = {file_id: set(columns) for file_id in ids}
    wanted = ", ".join(map(str, columns))
    for listed in id_lists(ids) if columns else ():
        for file_id, column_id, contains_nan in database.query(
            f"""SELECT data_file_id, column_id, contains_nan FROM ducklake_file_column_stats
                WHERE table_id = ? AND column_id IN ({wanted}) AND data_file_id IN ({listed})""",
            [table_id],
        ):
            if contains_nan is not None and not contains_nan:
                found[file_id].discard(column_id)
    return found
