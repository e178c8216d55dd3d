"""Expires snapshots: deletes them from the catalog, and with them every row that no kept snapshot sees."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from penstock.ducklake.catalog.catalog_tables import FILE_DETAILS
from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.catalog.file_paths import SCHEDULE, StoredPath, stored_directories
from penstock.ducklake.catalog.id_lists import id_lists
from penstock.ducklake.catalog.snapshots import latest_snapshot
from penstock.errors import CatalogError

_GAPS_A_STATEMENT = 100
# Rows of these end one by one, and whoever needs them looks at a snapshot. Those of columns and partitionings stay: a
# file is read by the columns of the snapshot that it was written at, however long ago that was.
_VERSIONED = ("ducklake_schema", "ducklake_view", "ducklake_tag", "ducklake_macro")
# All that is known of a table that no kept snapshot has.
_OF_TABLES = (
    "ducklake_table", "ducklake_column", "ducklake_column_tag", "ducklake_table_stats", "ducklake_table_column_stats",
    "ducklake_partition_info", "ducklake_partition_column", "ducklake_sort_info", "ducklake_sort_expression",
    "ducklake_schema_versions", "ducklake_inlined_data_tables", "ducklake_column_mapping",
)  # fmt: skip
_INLINED = re.compile(r"ducklake_inlined_(?:data_(\d+)_.*|delete_(\d+))")
_log = logging.getLogger("penstock")


def expire(database: Database, versions: Collection[int]) -> None:
    """Delete snapshots, and what no kept snapshot sees; files are scheduled for deletion. Never the newest snapshot.

    What an expiry that was broken off has left is deleted too.
    """
    with database.turn(), database.transaction():
        newest = latest_snapshot(database).id
        for listed in id_lists(version for version in versions if version != newest):
            for table in ("ducklake_snapshot", "ducklake_snapshot_changes"):
                database.execute(f"DELETE FROM {table} WHERE snapshot_id IN ({listed})")
        _Expiry(database, _gaps(database)).run()
    _drop_inlined_tables(database)


@dataclass(frozen=True)
class _Gap:
    """Numbers between two kept snapshots that are neighbours, or before the first: nobody looks at them any more."""

    after: int | None
    before: int

    def condition(self) -> str:
        """SQL that is true for rows that began and ended in the gap, by `begin_snapshot` and `end_snapshot`."""
        begun = "" if self.after is None else f"begin_snapshot > {self.after} AND "
        return f"({begun}end_snapshot <= {self.before})"


def _gaps(database: Database) -> list[_Gap]:
    runs = database.query(
        """SELECT min(snapshot_id), max(snapshot_id)
           FROM (SELECT snapshot_id, snapshot_id - row_number() OVER (ORDER BY snapshot_id) AS run
                 FROM ducklake_snapshot) runs
           GROUP BY run ORDER BY 1"""
    )
    ends = [None, *(int(last) for _, last in runs)]
    return [_Gap(after, int(first)) for after, (first, _) in zip(ends, runs, strict=False)]


@dataclass(frozen=True)
class _Expiry:
    """Deletes the rows that began and ended in a gap."""

    database: Database
    gaps: Sequence[_Gap]

    def run(self) -> None:
        gone = self._gone_tables()
        self._schedule("ducklake_data_file", "data_file_id", gone)
        self._schedule("ducklake_delete_file", "delete_file_id", gone)
        for listed in id_lists(gone):
            for table in (*FILE_DETAILS, *_OF_TABLES):
                self.database.execute(f"DELETE FROM {table} WHERE table_id IN ({listed})")
        self._delete_without("ducklake_name_mapping", "ducklake_column_mapping", "mapping_id")
        for table in _VERSIONED:
            self._delete_unseen(table)
        for table in ("ducklake_macro_impl", "ducklake_macro_parameters"):
            self._delete_without(table, "ducklake_macro", "macro_id")
        self._delete_inlined()
        self._delete_options()

    def _unseen(self) -> Iterator[str]:
        """SQL that is true for rows that no kept snapshot sees, each for a statement of its own."""
        for start in range(0, len(self.gaps), _GAPS_A_STATEMENT):
            yield f"({' OR '.join(gap.condition() for gap in self.gaps[start : start + _GAPS_A_STATEMENT])})"

    def _delete_unseen(self, table: str) -> None:
        for unseen in self._unseen():
            self.database.execute(f"DELETE FROM {table} WHERE {unseen}")

    def _delete_without(self, table: str, owner: str, key: str) -> None:
        """Delete rows whose owner is gone."""
        self.database.execute(
            f"DELETE FROM {table} WHERE NOT EXISTS (SELECT 1 FROM {owner} o WHERE o.{key} = {table}.{key})"
        )

    def _gone_tables(self) -> set[int]:
        """Tables that no kept snapshot has under any name."""
        every = "SELECT table_id, count(*) FROM ducklake_table WHERE {} GROUP BY table_id"
        unseen: Counter[int] = Counter()
        for condition in self._unseen():
            unseen.update(dict(self.database.query(every.format(condition))))
        rows: dict[int, int] = dict(self.database.query(every.format("1 = 1"))) if unseen else {}
        return {table_id for table_id, count in unseen.items() if rows[table_id] == count}

    def _schedule(self, table: str, key: str, gone: Collection[int]) -> None:
        """Schedule files that nobody sees, and forget them with all that is known of them."""
        conditions = [*self._unseen(), *(f"table_id IN ({listed})" for listed in id_lists(gone))]
        if table == "ducklake_delete_file":
            conditions.append(
                """NOT EXISTS (SELECT 1 FROM ducklake_data_file d
                               WHERE d.data_file_id = ducklake_delete_file.data_file_id)"""
            )
        directories = stored_directories(self.database)
        for condition in conditions:
            files: dict[int, list[int]] = {}
            for table_id, file_id in self.database.query(f"SELECT table_id, {key} FROM {table} WHERE {condition}"):
                files.setdefault(table_id, []).append(file_id)
            for table_id in sorted(files):
                self._schedule_of(table, key, table_id, condition, directories.get(table_id, StoredPath("", True)))
                if table == "ducklake_data_file" and table_id not in gone:
                    self._delete_details(table_id, files[table_id])
            if files:
                self.database.execute(f"DELETE FROM {table} WHERE {condition}")

    def _delete_details(self, table_id: int, files: Collection[int]) -> None:
        """Delete what is known of files, by their ids: others may be a thousand times as many."""
        for listed in id_lists(files):
            for table in FILE_DETAILS:
                self.database.execute(f"DELETE FROM {table} WHERE table_id = {table_id} AND data_file_id IN ({listed})")

    def _schedule_of(self, table: str, key: str, table_id: int, condition: str, directory: StoredPath) -> None:
        now = datetime.now(UTC)
        for parent, relative, kind in ((*directory, True), ("", False, False)):
            self.database.execute(
                f"""INSERT INTO {SCHEDULE} (data_file_id, path, path_is_relative, schedule_start)
                    SELECT {key}, ? || path, ?, ? FROM {table}
                    WHERE table_id = ? AND path_is_relative = ? AND {condition}""",
                [parent, relative, now, table_id, kind],
            )

    def _delete_inlined(self) -> None:
        """Delete inlined rows that nobody sees, and inlined deletes of files that are gone."""
        database = self.database
        known = _known_tables(database)
        for name, table_id in _inlined_tables(database):
            if table_id not in known:
                continue
            quoted = database.identifier(name)
            if name.startswith("ducklake_inlined_data_"):
                self._delete_unseen(quoted)
            else:
                database.execute(
                    f"""DELETE FROM {quoted} WHERE NOT EXISTS
                        (SELECT 1 FROM ducklake_data_file d WHERE d.data_file_id = {quoted}.file_id)"""
                )

    def _delete_options(self) -> None:
        scope = self.database.identifier("scope")
        for kind in ("table", "schema"):
            self.database.execute(
                f"""DELETE FROM ducklake_metadata WHERE {scope} = '{kind}'
                    AND scope_id NOT IN (SELECT {kind}_id FROM ducklake_{kind})"""
            )


def _known_tables(database: Database) -> set[int]:
    return {row[0] for row in database.query("SELECT table_id FROM ducklake_table")}


def _inlined_tables(database: Database) -> Iterator[tuple[str, int]]:
    """The tables of inlined rows and inlined deletes, each with the table that they are of."""
    for name in sorted(database.tables("ducklake_inlined_")):
        match = _INLINED.fullmatch(name)
        if match:
            yield name, int(match[1] or match[2])


def _drop_inlined_tables(database: Database) -> None:
    """Drop what tables that are gone have left. A user may delete rows and not be allowed to drop tables."""
    first_free = latest_snapshot(database).next_catalog_id  # before the others: tables are made before they are known
    tables = list(_inlined_tables(database))
    known = _known_tables(database)
    for name, table_id in tables:
        if table_id < first_free and table_id not in known:
            try:
                database.drop_table(name)
            except CatalogError as error:
                _log.warning("table %s of the catalog is not needed any more and could not be dropped: %s", name, error)
