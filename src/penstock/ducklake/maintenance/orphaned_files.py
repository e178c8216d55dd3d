"""Deletes files that lie in the lake's folders and that its catalog does not know."""

from __future__ import annotations

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

# A writer may be about to commit them: no listing tells.
YOUNG = timedelta(hours=1)
_LISTERS = 16
_NAME = re.compile(r"ducklake-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:-delete)?\.(?:parquet|puffin)")


def delete_orphaned_files(
    attachment: Attachment, older_than: Age | None, cleanup_all: bool, dry_run: bool
) -> list[str]:
    """Delete files of the lake's own form that no row names, and give back their paths. Young ones always stay."""
    attachment.check_changes_at_once("delete_orphaned_files")
    cutoff = file_cutoff(attachment, "delete_orphaned_files", older_than, cleanup_all)
    youngest = datetime.now(UTC) - YOUNG
    limit = youngest if cutoff is None else min(cutoff, youngest)
    candidates = _old_files(attachment, limit)
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


def _old_files(attachment: Attachment, limit: datetime) -> list[str]:
    directories = sorted(_directories(attachment))
    with ThreadPoolExecutor(_LISTERS) as pool:
        listed = pool.map(lambda directory: _own_files(directory, limit), directories)
        return sorted({path for paths in listed for path in paths})


def _own_files(directory: str, limit: datetime) -> list[str]:
    """The old files of a table's folder: right in it, or in folders of partitions."""
    found = []
    for file in stored_files(directory):
        *folders, name = file.path.removeprefix(directory).split("/")
        if file.modified < limit and _NAME.fullmatch(name) and all("=" in part for part in folders):
            found.append(file.path)
    return found


def _directories(attachment: Attachment) -> Iterator[str]:
    """The folders of the lake's tables, also of those that never came to be: whatever is right in a schema's folder.

    So folders of other lakes below the same data path are not looked at.
    """
    catalog = attachment.catalog
    schemas = schema_directories(catalog.database, catalog.data_path)
    yield from table_directories(catalog.database, catalog.data_path)
    for schema in schemas:
        yield from list_subdirectories(schema)
