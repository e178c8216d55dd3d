"""Deletes files that were scheduled for deletion: those of merges, and of snapshots that are expired."""

from __future__ import annotations

import logging

from penstock.ducklake.attachment import Attachment
from penstock.ducklake.catalog.file_paths import check_may_forget, forget_scheduled, named_files, scheduled_files
from penstock.ducklake.maintenance.cutoffs import file_cutoff
from penstock.spark.versions import Age
from penstock.storage.file_deletion import delete_all
from penstock.storage.paths import normalised

_log = logging.getLogger("penstock")


def cleanup_old_files(attachment: Attachment, older_than: Age | None, cleanup_all: bool, dry_run: bool) -> list[str]:
    """Delete scheduled files and give back their paths. One that some row names again, or could not go, is kept."""
    attachment.check_changes_at_once("cleanup_old_files")
    cutoff = file_cutoff(attachment, "cleanup_old_files", older_than, cleanup_all)
    catalog = attachment.catalog
    database, data_path = catalog.database, catalog.data_path
    with database.consistent():
        files = scheduled_files(database, data_path, cutoff)
        paths = {normalised(file.path) for file in files}
        named = (normalised(file.path) for file in named_files(database, data_path)) if paths else ()
        needed = {path for path in named if path in paths}
    free = [file for file in files if normalised(file.path) not in needed]
    if needed:
        _log.warning("%d files are scheduled for deletion and still belong to a table: they stay", len(needed))
    if dry_run:
        return [file.path for file in free]
    if free:
        check_may_forget(database)
    deleted = [file for file, gone in zip(free, delete_all([file.path for file in free]), strict=True) if gone]
    forget_scheduled(database, deleted)
    return [file.path for file in deleted]
