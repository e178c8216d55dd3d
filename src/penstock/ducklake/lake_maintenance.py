"""The maintenance of a lake: verbs that forget old snapshots and delete the files that nothing needs any more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from penstock.ducklake.catalog.snapshots import reserved_words
from penstock.ducklake.lake_definition import LakeDefinition
from penstock.ducklake.maintenance import old_files, orphaned_files, snapshot_expiry
from penstock.ducklake.maintenance.cutoffs import Age
from penstock.ducklake.model.snapshot_changes import parse_changes, summarise
from penstock.ducklake.model.snapshots import Snapshot, Version

_SNAPSHOTS = """snapshot_id long, snapshot_time timestamp, schema_version long, changes map<string,array<string>>,
                author string, commit_message string, commit_extra_info string"""
_PATHS = "path string"


@dataclass(frozen=True, repr=False, eq=False)
class LakeMaintenance(LakeDefinition):
    """What keeps a lake small and quick. These verbs make no snapshot, and are not part of transactions."""

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

    def _snapshot_frame(self, snapshots: Sequence[Snapshot]) -> DataFrame:
        reserved = reserved_words()
        rows = [
            (s.id, s.time, s.schema_version, summarise(parse_changes(s.changes_made), reserved), s.author,
             s.commit_message, s.commit_extra_info)
            for s in snapshots
        ]  # fmt: skip
        return self._frame(rows, _SNAPSHOTS)

    def _frame(self, rows: Sequence[tuple[Any, ...]], schema: str) -> DataFrame:
        return self._attachment.spark.createDataFrame(list(rows), schema)
