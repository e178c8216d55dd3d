"""A transaction on a lake: statements that become one snapshot together, or none of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from penstock.catalog.attach import Catalog
from penstock.catalog.databases import Database
from penstock.catalog.snapshots import latest_snapshot
from penstock.catalog.visibility import At
from penstock.catalog.writing.commit import CommitInfo, RetryPolicy, commit
from penstock.catalog.writing.staged_database import StagedDatabase
from penstock.catalog.writing.staging import Staging
from penstock.errors import InvalidError
from penstock.model.options import effective
from penstock.model.snapshots import Snapshot
from penstock.storage.filesystems import delete_file

_DELETERS = 16


@dataclass(frozen=True)
class Shown:
    """What somebody looks at: a database, which of its rows, and where the lake's files are."""

    database: Database
    at: At
    data_path: str


class Transaction:
    """Statements staged on top of the snapshot that was the newest when the transaction began."""

    def __init__(self, catalog: Catalog, info: CommitInfo, policy: RetryPolicy) -> None:
        if info.message is None and effective("require_commit_message", catalog.options(), None, None) == "true":
            raise InvalidError(
                f"{catalog.database.location} wants a message with every commit (require_commit_message); "
                'make the change inside `with lake.transaction(message="..."):`'
            )
        self.catalog, self._info, self._policy = catalog, info, policy
        self.staging = Staging(latest_snapshot(catalog.database))
        self.snapshot: Snapshot | None = None  # the one that was made, once it is

    def shown(self) -> Shown:
        """The lake with everything that was staged so far."""
        database, base = self.catalog.database, self.staging.base.id
        if self.staging.is_empty:
            return Shown(database, At(base), self.catalog.data_path)
        staged = StagedDatabase(database, self.staging.copy())
        return Shown(staged, At(base, self.staging.own), self.catalog.data_path)

    @contextmanager
    def statement(self) -> Iterator[None]:
        """A statement that fails leaves the transaction as it was before it."""
        before = self.staging.copy()
        try:
            yield
        except BaseException:
            written = self.staging.files[len(before.files) :]
            self.staging = before
            delete_files(written)
            raise

    def commit(self) -> None:
        """Make one snapshot of it; without any change, the newest one stands."""
        staging = self.staging
        if staging.is_empty:
            self.snapshot = staging.base
        else:
            self.snapshot = commit(self.catalog.database, staging, self._info, self._policy)
        unused = staging.unused_files()
        staging.files.clear()  # from here on they are the lake's
        delete_files(unused)

    def roll_back(self) -> None:
        """No snapshot, and the files that were written are removed."""
        delete_files(self.staging.files)


def delete_files(paths: Collection[str]) -> None:
    """Delete files that no snapshot shows. One that cannot be deleted does no harm where it is."""
    if paths:
        with ThreadPoolExecutor(_DELETERS) as pool:
            list(pool.map(_delete, paths))


def _delete(path: str) -> None:
    with suppress(OSError):
        delete_file(path)
