"""Writes checkpoints, and deletes files that no version needs, with the help of `deltalake`."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING

from penstock.delta.format.features import check_writable
from penstock.delta.format.properties import retention as retention_of
from penstock.delta.log.commits import commit
from penstock.delta.log.links import linked_into, with_link
from penstock.delta.log.table_log import TableLog
from penstock.errors import InvalidError, UnsupportedError
from penstock.storage.filesystems import delete_file, is_file
from penstock.storage.options import options_for
from penstock.storage.paths import folder, is_local

if TYPE_CHECKING:
    from deltalake import DeltaTable

_THREADS = 16


def checkpoint(log: TableLog) -> None:
    """Writes a checkpoint of the latest version, which spares readers the commits before it.

    It may leave old transactions out: links that older versions of Penstock noted so become a property before.
    """
    snapshot = log.snapshot()
    noted = with_link(snapshot)
    if noted != snapshot.metadata:
        commit(log, snapshot, [noted], "LINK", {"into": json.dumps(linked_into(snapshot))})
    _deltalake(log).create_checkpoint()


def vacuum(
    log: TableLog,
    *,
    retention: timedelta | None = None,
    dry_run: bool = False,
    enforce_retention: bool = True,
    even_linked: bool = False,
) -> list[str]:
    """Deletes the files that no version within the retention needs, and returns which ones.

    Without a retention it is the table's own. One that is shorter is refused unless `enforce_retention` is off; and a
    table whose files were linked into others, unless it is to be vacuumed `even_linked`.
    """
    snapshot = log.snapshot()
    check_writable(snapshot.protocol, snapshot.metadata, log.path)
    linked = linked_into(snapshot)
    if linked and not (dry_run or even_linked):
        raise InvalidError(
            f"files of the Delta table {log.path} were linked into {', '.join(linked)}, which may show some that "
            "vacuum would delete; dry_run=True lists them, and even_linked=True deletes them nevertheless"
        )
    hours = None if retention is None else math.ceil(retention / timedelta(hours=1))
    kept = retention_of(snapshot.metadata) if hours is None else timedelta(hours=hours)
    before = time.time() * 1000 - kept / timedelta(milliseconds=1)
    found = _deltalake(log).vacuum(hours, dry_run=True, enforce_retention_duration=enforce_retention)
    gone = _existing(log, _unneeded(log, found, before))
    if gone and not dry_run:
        # deltalake would delete them too, but not without a commit, which it refuses where partition columns are
        # materialized.
        commit(log, snapshot, [], "VACUUM START", {"retentionHours": hours})
        gone = _delete_files(log, gone, before)
    return gone


def _delete_files(log: TableLog, paths: Sequence[str], before: float) -> list[str]:
    """Deletes files, but none that came back into the table meanwhile; the log tells how it ended, however it did."""
    status = "FAILED"
    deleted: list[str] = []
    try:
        deleted = _unneeded(log, paths, before)
        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(delete_file, (log.root + path for path in deleted)))
        status = "COMPLETED"
    finally:
        left = _existing(log, deleted) if status == "FAILED" else []
        told = {"status": status, "numDeletedFiles": len(deleted) - len(left)}
        commit(log, log.snapshot(), [], "VACUUM END", told)
    return deleted


def _existing(log: TableLog, paths: Sequence[str]) -> list[str]:
    """Returns those of the files that exist: deltalake also finds those that an earlier vacuum deleted."""
    with ThreadPoolExecutor(_THREADS) as pool:
        exist = pool.map(is_file, (log.root + path for path in paths))
        return [path for path, is_there in zip(paths, exist, strict=True) if is_there]


def _unneeded(log: TableLog, paths: Iterable[str], before: float) -> list[str]:
    """Returns those of the files in the table's directory that no version has since a time.

    deltalake judges every removal by itself. But a file may have been removed long ago, come back, and have gone again
    just now; and the log may name one file in several ways. Where a removal says no time, its file stays.
    """
    root = folder(_one_name(log.root))
    live = {_place(root, file.decoded_path) for file in log.snapshot().files.values()}
    last: dict[str, float] = {}
    for removal in log.removals():
        place, told = _place(root, removal.decoded_path), removal.deletion_timestamp
        last[place] = max(last.get(place, -math.inf), math.inf if told is None else told)
    places = {path: _place(root, path) for path in paths}
    return sorted(
        path
        for path, place in places.items()
        if place.startswith(root) and place not in live and last.get(place, math.inf) < before
    )


def _place(root: str, path: str) -> str:
    """Returns the one name of a file that a log may name by its path in the table, by an absolute one, or by a URI."""
    if path.startswith(("/", "file:")) or not is_local(path):
        return _one_name(path)
    return root + os.path.normpath(path)


def _one_name(path: str) -> str:
    if is_local(path):
        return os.path.realpath("/" + path.removeprefix("file://").removeprefix("localhost").lstrip("/"))
    return path.replace("s3a://", "s3://", 1)


def _deltalake(log: TableLog) -> DeltaTable:
    try:
        from deltalake import DeltaTable
    except ImportError as error:
        raise UnsupportedError("checkpoints and vacuum need deltalake: pip install penstock[delta]") from error
    log.latest_version()
    return DeltaTable(log.root.removeprefix("file://"), storage_options=dict(options_for(log.root)) or None)
