"""The maintenance of a lake: verbs that forget old snapshots and delete the files that nothing needs any more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from penstock.ducklake.catalog.indexes import optimize_catalog
from penstock.ducklake.catalog.snapshots import reserved_words
from penstock.ducklake.inspection.health import Finding, lake_health
from penstock.ducklake.lake_definition import LakeDefinition
from penstock.ducklake.maintenance import compacted_tables, inlined_flush, old_files, orphaned_files, snapshot_expiry
from penstock.ducklake.model.snapshot_changes import parse_changes, summarise
from penstock.ducklake.model.snapshots import Snapshot, Version
from penstock.ducklake.table_maintenance import compacted_frame, flushed_frame
from penstock.errors import InvalidError
from penstock.spark.local_rows import local_frame
from penstock.spark.versions import Age

_SNAPSHOTS = """snapshot_id long, snapshot_time timestamp, schema_version long, changes map<string,array<string>>,
                author string, commit_message string, commit_extra_info string"""
_PATHS = "path string"
_CHECKPOINT = "step string, things string, count long"
_INDEXES = "table_name string, index_name string"
_FINDINGS = """check string, severity string, schema_name string, table_name string, message string,
               numbers map<string,string>, remedy string, verb string"""


@dataclass(frozen=True, repr=False, eq=False)
class LakeMaintenance(LakeDefinition):
    """What keeps a lake small and quick. These verbs are not part of transactions."""

    def flush_inlined_data(self, *, schema: str | None = None, table: str | None = None) -> DataFrame:
        """Writes rows and deletes that the catalog keeps to files. Snapshots, feed and row ids show what they did.

        Rows come from the catalog some at a time, whatever their number. Each table is a snapshot of its own.

        Args:
            schema: The schema of the table, by default `main`; without a table, all tables of this schema.
            table: The table's name; by default all tables whose option `auto_compact` is not false.

        Returns:
            A row for each table that had rows: schema_name, table_name, rows_flushed, with rows that were deleted.

        Raises:
            NotFoundError: There is no such table or schema.
            InvalidError: The thread is inside a transaction.
            ConflictError: Other writers changed the same rows, again and again.
        """
        attachment = self._attachment
        attachment.check_changes_at_once("flush_inlined_data")
        tables = compacted_tables.compacted_tables(attachment, table, schema)
        return flushed_frame(attachment, inlined_flush.flush_inlined_data(attachment, tables))

    def checkpoint(self) -> DataFrame:
        """Does all of the maintenance, by the lake's options: what DuckDB's CHECKPOINT does, in one round.

        Inlined data is flushed, snapshots expire, files with deleted rows are written anew, small files are merged, old
        files and orphans are deleted; each as its verb does it without arguments. What was done stays where a later
        step fails.

        Returns:
            A row for each step: step, things (what is counted), count.

        Raises:
            InvalidError: The thread is inside a transaction, or an option is not understood.
            ConflictError: Other writers changed the same things, again and again.
        """
        self._attachment.check_changes_at_once("checkpoint")
        lines = [
            ("flush_inlined_data", "rows", sum(row.rows_flushed for row in self.flush_inlined_data().collect())),
            ("expire_snapshots", "snapshots", self.expire_snapshots().count()),
            ("rewrite_data_files", "files", _processed(self.rewrite_data_files())),
            ("merge_adjacent_files", "files", _processed(self.merge_adjacent_files())),
            ("cleanup_old_files", "files", self.cleanup_old_files().count()),
            ("delete_orphaned_files", "files", self.delete_orphaned_files().count()),
        ]
        return self._frame(lines, _CHECKPOINT)

    def merge_adjacent_files(
        self,
        table: str | None = None,
        *,
        schema: str | None = None,
        min_file_size: int | None = None,
        max_file_size: int | None = None,
        max_compacted_files: int | None = None,
        where: str | None = None,
    ) -> DataFrame:
        """Merges small files into large ones. Snapshots, the change feed and row ids show what they did before.

        Files of a partition and of a schema version are merged in the order in which they came, each time until they
        reach the option `target_file_size` together; those that have lost rows are left (`rewrite_data_files`). Files
        of versions that are older than all snapshots that are kept are merged too. Each table is a snapshot of its own.
        The merged files are scheduled for deletion, and go when `cleanup_old_files` is called.

        Args:
            table: The table's name; by default all tables whose option `auto_compact` is not false.
            schema: The schema of the table, by default `main`; without a table, all tables of this schema.
            min_file_size: The bytes from which on files take part.
            max_file_size: The bytes from which on they do not; by default the option `target_file_size`.
            max_compacted_files: How many files are made at most, of each table.
            where: A predicate: files take part whose partition values and statistics allow rows that it is true for.

        Returns:
            A row for each file that was made: schema_name, table_name, files_processed, files_created.

        Raises:
            NotFoundError: There is no such table or schema.
            InvalidError: A size or number is out of range, or the thread is inside a transaction.
            ConflictError: Other writers changed the same files, again and again.
        """
        attachment = self._attachment
        attachment.check_changes_at_once("merge_adjacent_files")
        tables = compacted_tables.compacted_tables(attachment, table, schema)
        lines = compacted_tables.merge_adjacent_files(
            attachment, tables, min_file_size, max_file_size, max_compacted_files, where
        )
        return compacted_frame(attachment, lines)

    def rewrite_data_files(
        self,
        table: str | None = None,
        *,
        schema: str | None = None,
        delete_threshold: float | None = None,
        where: str | None = None,
    ) -> DataFrame:
        """Writes files anew that have lost many of their rows, without those. Rows keep their row ids.

        The old files stay for the snapshots that show them, until these expire. Each table is a snapshot of its own.

        Args:
            table: The table's name; by default all tables whose option `auto_compact` is not false.
            schema: The schema of the table, by default `main`; without a table, all tables of this schema.
            delete_threshold: The part of a file's rows that must be deleted; by default the option
                `rewrite_delete_threshold`, or 0.95.
            where: A predicate: files take part whose partition values and statistics allow rows that it is true for.

        Returns:
            A row for each file that was made: schema_name, table_name, files_processed, files_created; 0 of these where
            no row is left.

        Raises:
            NotFoundError: There is no such table or schema.
            InvalidError: The threshold is not between 0 and 1, or the thread is inside a transaction.
            ConflictError: Other writers changed the same files, again and again.
        """
        attachment = self._attachment
        attachment.check_changes_at_once("rewrite_data_files")
        tables = compacted_tables.compacted_tables(attachment, table, schema)
        return compacted_frame(
            attachment, compacted_tables.rewrite_data_files(attachment, tables, delete_threshold, where)
        )

    def expire_snapshots(
        self,
        *,
        versions: Sequence[Version] | None = None,
        older_than: Age | None = None,
        keep_last: int | None = None,
        dry_run: bool = False,
    ) -> DataFrame:
        """Forgets snapshots: nobody can read the lake as it was then any more. The newest one always stays.

        What no other snapshot sees goes with them: rows of the catalog at once, files when `cleanup_old_files` is
        called. Without arguments, those expire that are older than the lake's option `expire_older_than`, if it is set.

        Args:
            versions: The snapshots by number; those that there are not are passed over.
            older_than: The moment that they are older than, as text or a datetime, or an age as a timedelta.
            keep_last: How many of the newest are kept.
            dry_run: Whether nothing is done but to tell which would expire.

        Returns:
            The snapshots, as `snapshots()` lists them.

        Raises:
            InvalidError: More than one choice was given, or the thread is inside a transaction.
        """
        attachment = self._attachment
        return self._snapshot_frame(
            snapshot_expiry.expire_snapshots(attachment, versions, older_than, keep_last, dry_run)
        )

    def cleanup_old_files(
        self, *, older_than: Age | None = None, cleanup_all: bool = False, dry_run: bool = False
    ) -> DataFrame:
        """Deletes files that merges and expired snapshots have left, which were scheduled for deletion.

        A file that some table names again stays, and one that cannot be deleted is tried again next time. Without
        arguments, those go that were scheduled longer ago than the lake's option `delete_older_than` says, or 2 days.

        Args:
            older_than: The moment before which they were scheduled, as text or a datetime, or an age as a timedelta.
            cleanup_all: Whether all go, however young. Whoever still reads them fails.
            dry_run: Whether nothing is done but to tell which would go.

        Returns:
            The column `path`, with the absolute paths of the deleted files.

        Raises:
            InvalidError: Both older_than and cleanup_all were given, or the thread is inside a transaction.
        """
        paths = old_files.cleanup_old_files(self._attachment, older_than, cleanup_all, dry_run)
        return self._frame([(path,) for path in paths], _PATHS)

    def delete_orphaned_files(
        self, *, older_than: Age | None = None, cleanup_all: bool = False, dry_run: bool = False
    ) -> DataFrame:
        """Deletes files in the folders of the lake's tables that the catalog does not know: of writers that crashed.

        Only files of the names that DuckLake gives are looked at, and none that are younger than an hour, which a
        writer may be about to commit. Two lakes over one data path see each other's files as orphans where their
        schemas and tables have the same names: do not call this there. Without arguments, those go that are older than
        the lake's option `delete_older_than` says, or 2 days.

        Args:
            older_than: The moment that they were last modified before, as text or a datetime, or an age as a timedelta.
            cleanup_all: Whether all go that are older than an hour.
            dry_run: Whether nothing is done but to tell which would go.

        Returns:
            The column `path`, with the absolute paths of the deleted files.

        Raises:
            InvalidError: Both older_than and cleanup_all were given, or the thread is inside a transaction.
        """
        paths = orphaned_files.delete_orphaned_files(self._attachment, older_than, cleanup_all, dry_run)
        return self._frame([(path,) for path in paths], _PATHS)

    def optimize_catalog(self) -> DataFrame:
        """Makes the indexes in the catalog's database that lakes of very many files need.

        Lakes that Penstock makes have them. Those that DuckDB made get them here, once; what is there already stays.
        Readers go on meanwhile, writers wait for one index at a time. A catalog in a DuckDB file needs none.

        Returns:
            A row for each index that was made: table_name, index_name.

        Raises:
            CatalogError: This user may not make indexes, or others hold the tables.
            InvalidError: The lake was attached read-only or at a snapshot, or the thread is inside a transaction.
        """
        self._attachment.check_changes_at_once("optimize_catalog")
        made = optimize_catalog(self._attachment.catalog.database)
        return self._frame([(index.table, index.name) for index in made], _INDEXES)

    def health(self, *, store: bool = True) -> DataFrame:
        """Tells what is wrong or slow in the lake, and what mends it: what `penstock doctor` shows.

        Nothing is changed, and Spark has nothing to do: the catalog is asked, and the lake's folders are listed.

        Args:
            store: Whether the folders are listed, to find files that the catalog does not know, and files that are
                gone. Without it nothing is asked but the catalog.

        Returns:
            A row for each finding, the worst first: check, severity (`problem`, `advice` or `fine`), schema_name and
            table_name where it is of one table, message, numbers as texts by their names, remedy (a command, in which
            `LAKE` stands for the lake), verb (the same in Python).

        Raises:
            InvalidError: The thread is inside a transaction.
        """
        attachment = self._attachment
        if attachment.in_transaction:
            raise InvalidError("health looks at what is committed and cannot be part of a transaction; call it outside")
        found = lake_health(attachment.catalog, attachment.shown().at, store=store)
        return self._frame([_finding_row(one) for one in found], _FINDINGS)

    def _snapshot_frame(self, snapshots: Sequence[Snapshot]) -> DataFrame:
        reserved = reserved_words()
        rows = [
            (s.id, s.time, s.schema_version, summarise(parse_changes(s.changes_made), reserved), s.author,
             s.commit_message, s.commit_extra_info)
            for s in snapshots
        ]  # fmt: skip
        return self._frame(rows, _SNAPSHOTS)

    def _frame(self, rows: Sequence[tuple[Any, ...]], schema: str) -> DataFrame:
        return local_frame(self._attachment.spark, rows, schema)


def _processed(lines: DataFrame) -> int:
    return sum(row.files_processed for row in lines.collect())


def _finding_row(one: Finding) -> tuple[Any, ...]:
    numbers = {name: str(number) for name, number in one.numbers.items()}
    return (
        one.check, one.severity, one.schema, one.table, one.message, numbers, one.remedy or None, one.verb or None
    )  # fmt: skip
