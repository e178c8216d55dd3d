"""Deletes files that lie in the lake's folders and that its catalog does not know."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

from penstock.ducklake.attachment import Attachment
from penstock.ducklake.inspection.lake_folders import YOUNG, files_in, is_own, lake_folders, own_files, unnamed
from penstock.ducklake.maintenance.cutoffs import file_cutoff
from penstock.spark.versions import Age
from penstock.storage.file_deletion import delete_all
from penstock.storage.filesystems import StoredFile
from penstock.storage.s3_objects import Upload, end_upload, has_s3_client, unfinished_uploads

# A task may write to many files for as long as it runs.
YOUNG_UPLOAD = timedelta(days=1)
_log = logging.getLogger("penstock")


def delete_orphaned_files(
    attachment: Attachment, older_than: Age | None, cleanup_all: bool, dry_run: bool
) -> list[str]:
    """Delete files of the lake's own form that no row names, and give back their paths. Young ones always stay."""
    attachment.check_changes_at_once("delete_orphaned_files")
    cutoff = file_cutoff(attachment, "delete_orphaned_files", older_than, cleanup_all)
    youngest = datetime.now(UTC) - YOUNG
    limit = youngest if cutoff is None else min(cutoff, youngest)
    directories = lake_folders(attachment.catalog)
    uploads = _old_uploads(attachment, directories, min(limit, datetime.now(UTC) - YOUNG_UPLOAD))
    if not dry_run:
        uploads = [upload for upload in uploads if end_upload(upload)]
    found = _orphans(attachment, own_files(files_in(directories), limit), dry_run)
    return sorted({*found, *(upload.path for upload in uploads)})


def _orphans(attachment: Attachment, candidates: list[StoredFile], dry_run: bool) -> list[str]:
    """Those of the files that no row names; deleted, and then those alone that are gone, if it is not a dry run."""
    orphans = [file.path for file in unnamed(attachment.catalog, candidates)] if candidates else []
    if dry_run:
        return orphans
    return [path for path, gone in zip(orphans, delete_all(orphans), strict=True) if gone]


def _old_uploads(attachment: Attachment, directories: list[str], limit: datetime) -> list[Upload]:
    """What writers that were killed had begun to send to the tables' folders: no listing of files shows it."""
    data_path = attachment.catalog.data_path
    if not has_s3_client(data_path):
        return []
    try:
        uploads = [upload for upload in unfinished_uploads(data_path) if upload.started < limit]
    except OSError as error:  # a key may have no right to see them
        _log.warning("unfinished uploads below %s could not be listed: %s", data_path, error)
        return []
    return [upload for upload in uploads if any(is_own(upload.path, directory) for directory in directories)]
