"""Compares what the store has with what the catalog names: files that nobody names, and names without a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from posixpath import dirname

import pyarrow as pa

from penstock.ducklake.catalog.ages import DELETE_OLDER_THAN, option_cutoff
from penstock.ducklake.catalog.file_paths import NamedFile, named_files
from penstock.ducklake.catalog.location import redact
from penstock.ducklake.inspection import remedies
from penstock.ducklake.inspection.findings import Examined, Finding, counted, finding, sized
from penstock.ducklake.inspection.lake_folders import YOUNG, files_in, lake_folders, own_files, unnamed
from penstock.ducklake.inspection.thresholds import FILES_LOOKED_AT, SNAPSHOT_AGE
from penstock.errors import InvalidError, PenstockError
from penstock.storage.filesystems import StoredFile, is_file, list_directory
from penstock.storage.paths import normalised
from penstock.storage.stores import store_kind

CHECK, ORPHANS, MISSING = "store", "orphans", "missing files"
_LISTERS = 16


def check(lake: Examined) -> Iterator[Finding]:
    """A problem for files that are gone, advice for those that nobody names; the folders are listed once for both."""
    data_path = redact(lake.catalog.data_path)
    if store_kind(data_path) == "http":
        yield finding(CHECK, "fine", f"{data_path} cannot be listed, so that no file there was looked for")
        return
    if lake.catalog.is_elsewhere():
        message = (
            f"files are under {lake.catalog.data_path_as_given}, relative to the folder that a program is started in, "
            f"and there is no {data_path}: start it in the folder that the lake was made in"
        )
        remedy = remedies.Remedy("", "penstock.attach(..., data_path=..., override_data_path=True)")
        yield finding(CHECK, "problem", message, remedy=remedy)
        return
    try:
        # Before the listing: what is written meanwhile is there then.
        named = list(named_files(lake.database, lake.catalog.data_path))
        folders = lake_folders(lake.catalog)
        stored = list(files_in(folders))
        yield from _missing(lake, named, _absent(named, stored, folders))
        yield _orphans(lake, stored)
    except (OSError, pa.ArrowException, PenstockError) as error:
        said = redact(str(error).splitlines()[0] if str(error) else type(error).__name__)
        message = f"what is stored under {data_path} cannot be listed: {said}"
        remedy = remedies.Remedy("", "penstock.attach(..., storage_options={...})")
        yield finding(CHECK, "problem", message, remedy=remedy)


def _orphans(lake: Examined, stored: Sequence[tuple[str, StoredFile]]) -> Finding:
    interval = lake.option("delete_older_than") or DELETE_OLDER_THAN
    try:
        limit = option_cutoff("delete_older_than", interval)
    except InvalidError as error:
        remedy = remedies.set_option("delete_older_than", DELETE_OLDER_THAN)
        return finding(ORPHANS, "problem", f"this could not be checked: {error}", remedy=remedy)
    found = unnamed(lake.catalog, own_files(stored, lake.now - YOUNG))
    due = [file for file in found if file.modified < limit]
    size = sum(file.size for file in due)
    numbers = {"files": len(found), "due": len(due), "bytes": size, "stored_files": len(stored)}
    if due:
        message = f"{counted(len(due), 'file')} of {sized(size)} that the catalog does not name, older than {interval}"
        return finding(ORPHANS, "advice", message, numbers, remedy=remedies.delete_orphans())
    message = f"of {counted(len(stored), 'stored file')}, none is older than {interval} and unknown to the catalog"
    return finding(ORPHANS, "fine", message, numbers)


def _absent(
    named: Sequence[NamedFile], stored: Sequence[tuple[str, StoredFile]], folders: Sequence[str]
) -> list[NamedFile]:
    """The named files that no listing shows; linked files may be anywhere, and their folders are listed for it."""
    there = {file.path for _, file in stored}
    absent = [file for file in named if file.path not in there and store_kind(file.path) != "http"]
    if absent:
        there = {normalised(path) for path in there}
    others = sorted({f"{dirname(file.path)}/" for file in absent if not file.path.startswith(tuple(folders))})
    with ThreadPoolExecutor(_LISTERS) as pool:
        listed = zip(others, pool.map(lambda folder: [one.name for one in list_directory(folder)], others), strict=True)
        there.update(normalised(folder + name) for folder, names in listed for name in names)
    return [file for file in absent if normalised(file.path) not in there]


def _missing(lake: Examined, named: Sequence[NamedFile], absent: Sequence[NamedFile]) -> Iterator[Finding]:
    tables = {table.id: table for table in lake.tables}
    gone: dict[int, list[NamedFile]] = {}
    for file in _confirmed(lake, absent):
        gone.setdefault(file.table_id, []).append(file)
    for table_id, files in sorted(gone.items()):
        live = sum(file.live for file in files)
        message = (
            f"{counted(len(files), 'file')} that the catalog names are gone, {live:,} of them of the table as it is "
            f"now: {files[0].path}{' and others' if len(files) > 1 else ''}; "
            + ("restore them from a backup" if live else "expire the old snapshots that need them")
        )
        numbers = {"files": len(files), "live": live}
        remedy = None if live else remedies.expire(SNAPSHOT_AGE.days)
        yield finding(MISSING, "problem", message, numbers, table=tables.get(table_id), remedy=remedy)
    if not gone:
        asked = sum(store_kind(file.path) != "http" for file in named)
        message = f"{counted(asked, 'file')} that the catalog names are there"
        yield finding(MISSING, "fine", message, {"files": asked, "not_asked": len(named) - asked})


def _confirmed(lake: Examined, files: Sequence[NamedFile]) -> list[NamedFile]:
    """Those that the catalog still names: others may have been cleaned up meanwhile. The first are looked at."""
    if not files:
        return []
    still = {file.path for file in named_files(lake.database, lake.catalog.data_path)}
    asked, rest = files[:FILES_LOOKED_AT], files[FILES_LOOKED_AT:]
    with ThreadPoolExecutor(_LISTERS) as pool:
        there = dict(zip(asked, pool.map(lambda file: is_file(file.path), asked), strict=True))
    return [file for file in (*asked, *rest) if file.path in still and not there.get(file, False)]
