"""Commits new and removed data files. New files are deleted where their commit fails."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from penstock.delta.format.actions import Action, AddFile, Txn
from penstock.delta.format.properties import checkpoint_interval
from penstock.delta.format.times import now_milliseconds
from penstock.delta.log.commits import commit
from penstock.delta.log.conflicts import ReadSet, nothing_read
from penstock.delta.log.snapshot import LogSnapshot
from penstock.delta.log.table_log import TableLog
from penstock.delta.writing.maintenance import checkpoint
from penstock.errors import PenstockError
from penstock.storage.filesystems import delete_file


def commit_files(
    log: TableLog,
    base: LogSnapshot,
    added: Sequence[AddFile],
    removed: Iterable[AddFile],
    operation: str,
    parameters: Mapping[str, str],
    *,
    read_set: ReadSet = nothing_read,
    txn: tuple[str, int] | None = None,
) -> int:
    """Commits files of a statement that began at `base`, and returns the version; a checkpoint follows where it is due.

    Where `txn`, an application and its version, was committed already, the new files go and that version is returned.
    """
    now = now_milliseconds()
    actions: list[Action] = [Txn(txn[0], txn[1], now)] if txn else []
    actions += [file.removed(now) for file in removed]
    actions += added
    with _deleted_on_failure(log, base, added):
        done = commit(log, base, actions, operation, parameters, read_set=read_set)
    if done.skipped:
        delete_new_files(log, added)
    else:
        _checkpoint_after(log, base, done.version)
    return done.version


def commit_rearranged(
    log: TableLog,
    base: LogSnapshot,
    added: Sequence[AddFile],
    removed: Iterable[AddFile],
    operation: str,
    parameters: Mapping[str, str],
) -> int:
    """Commits files in place of others that hold the same rows, and returns the version.

    A checkpoint follows where it is due.
    """
    now = now_milliseconds()
    gone = [file.removed(now, data_change=False) for file in removed]
    told = {"numAddedFiles": len(added), "numRemovedFiles": len(gone)}
    with _deleted_on_failure(log, base, added):
        done = commit(log, base, [*gone, *added], operation, parameters, metrics=told)
    _checkpoint_after(log, base, done.version)
    return done.version


def delete_new_files(log: TableLog, files: Iterable[AddFile]) -> None:
    """Deletes files that no version has."""
    for file in files:
        delete_file(log.root + file.decoded_path)


@contextmanager
def _deleted_on_failure(log: TableLog, base: LogSnapshot, added: Sequence[AddFile]) -> Iterator[None]:
    """Deletes new files where their commit fails, unless it came into the log before it broke off."""
    try:
        yield
    except PenstockError:
        delete_new_files(log, added)
        raise
    except BaseException:
        if not _is_in_log(log, base, added):
            delete_new_files(log, added)
        raise


def _is_in_log(log: TableLog, base: LogSnapshot, added: Sequence[AddFile]) -> bool:
    own = {file.key for file in added}
    since = range(base.version + 1, log.latest_version() + 1)
    actions = (action for version in since for action in log.actions(version))
    return any(isinstance(action, AddFile) and action.key in own for action in actions)


def _checkpoint_after(log: TableLog, base: LogSnapshot, version: int) -> None:
    """Writes a checkpoint if the table asks for one after this version; that it fails does not undo the commit."""
    interval = checkpoint_interval(base.metadata)
    if interval is not None and version % interval == 0:
        try:
            checkpoint(log)
        except Exception as error:
            warnings.warn(f"no checkpoint was written of Delta table {log.path}: {error}", stacklevel=2)
