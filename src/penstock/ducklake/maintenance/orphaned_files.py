"""Deletes files that lie in the lake's folders and that its catalog does not know."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from penstock.ducklake.attachment import Attachment
from penstock.ducklake.catalog.file_paths import named_files, scheduled_files, schema_directories, table_directories
from penstock.ducklake.maintenance.cutoffs import file_cutoff
from penstock.spark.versions import Age
from penstock.storage.file_deletion import delete_all
from penstock.storage.filesystems import list_subdirectories, stored_files
from penstock.storage.paths import normalised
from penstock.storage.s3_objects import Upload, end_upload, has_s3_client, unfinished_uploads

# A writer may be about to commit them: no listing tells.
YOUNG = timedelta(hours=1)
# A task may write to many files for as long as it runs.
YOUNG_UPLOAD = timedelta(days=1)
_LISTERS = 16
_log = logging.getLogger("penstock")
_NAME = re.compile(r"ducklake-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:-delete)?\.(?:parquet|puffin)")


def delete_orphaned_files(
    attachment: Attachment, older_than: Age | None, cleanup_all: bool, dry_run: bool
) -> list[str]:
    """Delete files of the lake's own form that no row names, and give back their paths. Young ones always stay."""
    attachment.check_changes_at_once("delete_orphaned_files")
    cutoff = file_cutoff(attachment, "delete_orphaned_files", older_than, cleanup_all)
    youngest = datetime.now(UTC) - YOUNG
    limit = youngest if cutoff is None else min(cutoff, youngest)
    directories = sorted(_directories(attachment))
    uploads = _old_uploads(attachment, directories, min(limit, datetime.now(UTC) - YOUNG_UPLOAD))
    if not dry_run:
        uploads = [upload for upload in uploads if end_upload(upload)]
    found = _orphans(attachment, _old_files(directories, limit), dry_run)
    return sorted({*found, *(upload.path for upload in uploads)})


def _orphans(attachment: Attachment, candidates: list[str], dry_run: bool) -> list[str]:
    """Those of the files that no row names; deleted, and then those alone that are gone, if it is not a dry run."""
    if not candidates:
        return []
    # After the listing: what a writer commits meanwhile is in the catalog then.
    catalog = attachment.catalog
    with catalog.database.consistent():
        known = {normalised(path) for path in named_files(catalog.database, catalog.data_path)}
        known.update(normalised(file.path) for file in scheduled_files(catalog.database, catalog.data_path))
    orphans = sorted(path for path in candidates if normalised(path) not in known)
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
    return [upload for upload in uploads if any(_is_own(upload.path, directory) for directory in directories)]


def _old_files(directories: list[str], limit: datetime) -> list[str]:
    with ThreadPoolExecutor(_LISTERS) as pool:
        listed = pool.map(lambda directory: _own_files(directory, limit), directories)
        return sorted({path for paths in listed for path in paths})


def _own_files(directory: str, limit: datetime) -> list[str]:
    """The old files of a table's folder: right in it, or in folders of partitions."""
    return [file.path for file in stored_files(directory) if file.modified < limit and _is_own(file.path, directory)]


def _is_own(path: str, directory: str) -> bool:
    """Whether a file has a name that DuckLake gives, right in a table's folder or in folders of partitions."""
    if not path.startswith(directory):
        return False
    *folders, name = path.removeprefix(directory).split("/")
    return _NAME.fullmatch(name) is not None and all("=" in part for part in folders)


def _directories(attachment: Attachment) -> Iterator[str]:
    """The folders of the lake's tables, also of those that never came to be: whatever is right in a schema's folder.

    So folders of other lakes below the same data path are not looked at.
    """
    catalog = attachment.catalog
    schemas = schema_directories(catalog.database, catalog.data_path)
    yield from table_directories(catalog.database, catalog.data_path)
    for schema in schemas:
        yield from list_subdirectories(schema)
