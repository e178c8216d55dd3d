"""Lists what is stored in a lake's folders, and tells which of it the catalog does not name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

from penstock.ducklake.catalog.file_paths import named_files, scheduled_files, schema_directories, table_directories
from penstock.ducklake.catalog.opening import Catalog
from penstock.storage.filesystems import StoredFile, list_subdirectories, stored_files
from penstock.storage.paths import normalised

# Files that are younger, a writer may be about to commit: no listing tells.
YOUNG = timedelta(hours=1)
_LISTERS = 16
_NAME = re.compile(r"ducklake-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:-delete)?\.(?:parquet|puffin)")


def lake_folders(catalog: Catalog) -> list[str]:
    """The folders of the lake's tables, also of those that never came to be: whatever is right in a schema's folder.

    So folders of other lakes below the same data path are not looked at.
    """
    schemas = schema_directories(catalog.database, catalog.data_path)
    found = set(table_directories(catalog.database, catalog.data_path))
    found.update(folder for schema in schemas for folder in list_subdirectories(schema))
    return sorted(found)


def files_in(folders: Iterable[str]) -> Iterator[tuple[str, StoredFile]]:
    """All files below folders, each with its folder; many folders are listed at once."""
    with ThreadPoolExecutor(_LISTERS) as pool:
        listed = pool.map(lambda folder: [(folder, file) for file in stored_files(folder)], folders)
        for files in listed:
            yield from files


def is_own(path: str, folder: str) -> bool:
    """Whether a file has a name that DuckLake gives, right in a table's folder or in folders of partitions."""
    if not path.startswith(folder):
        return False
    *folders, name = path.removeprefix(folder).split("/")
    return _NAME.fullmatch(name) is not None and all("=" in part for part in folders)


def own_files(stored: Iterable[tuple[str, StoredFile]], before: datetime) -> list[StoredFile]:
    """Those that were last written before a moment and that a writer of lakes has named, each once."""
    found = {file.path: file for folder, file in stored if file.modified < before and is_own(file.path, folder)}
    return [found[path] for path in sorted(found)]


def unnamed(catalog: Catalog, files: Iterable[StoredFile]) -> list[StoredFile]:
    """The files that no row of the catalog names. To be asked after they were listed: writers commit meanwhile."""
    with catalog.database.consistent():
        known = {file.path for file in named_files(catalog.database, catalog.data_path)}
        known.update(file.path for file in scheduled_files(catalog.database, catalog.data_path))
    unknown = [file for file in files if file.path not in known]
    spelled = {normalised(path) for path in known} if unknown else set()
    return [file for file in unknown if normalised(file.path) not in spelled]
