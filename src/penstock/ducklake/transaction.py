"""A transaction on a lake: statements that become one snapshot together, or none of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from enum import Enum

from penstock.ducklake.catalog.commits.commit import CommitInfo, RetryPolicy, commit
from penstock.ducklake.catalog.commits.commit_log import log_snapshot
from penstock.ducklake.catalog.commits.interrupted_commits import commit_failed, commit_in_doubt, is_committed
from penstock.ducklake.catalog.commits.staged_database import StagedDatabase
from penstock.ducklake.catalog.commits.staging import Staging
from penstock.ducklake.catalog.databases.base import CommitInDoubtError
from penstock.ducklake.catalog.opening import Catalog
from penstock.ducklake.catalog.shown import Shown as Shown  # what a transaction shows
from penstock.ducklake.catalog.snapshots import latest_snapshot
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.model.options import OptionValue, effective_value
from penstock.ducklake.model.snapshots import Snapshot
from penstock.errors import InvalidError
from penstock.storage.file_deletion import delete_all


class State(Enum):
    """How far a transaction has come."""

    OPEN = "is open"
    COMMITTED = "was committed"
    ROLLED_BACK = "was rolled back"
    IN_DOUBT = "was interrupted while it was committed"


class Transaction:
    """Statements staged on top of the snapshot that was the newest when the transaction began.

    It ends once, by `commit`, `roll_back` or the end of its `with` block, and takes no statement after that.
    """

    def __init__(
        self,
        catalog: Catalog,
        info: CommitInfo,
        policy: RetryPolicy,
        on_commit: Callable[[Snapshot, Snapshot], None] = lambda base, made: None,
    ) -> None:
        self.catalog, self._info, self._policy, self._on_commit = catalog, info, policy, on_commit
        self.staging = Staging(latest_snapshot(catalog.database))
        self._options: tuple[OptionValue, ...] | None = None
        self.snapshot: Snapshot | None = None  # the one that was made, once it is
        self._state = State.OPEN

    @property
    def options(self) -> tuple[OptionValue, ...]:
        """Every option that is set now; of a single statement, those that were when it began."""
        return self._options if self._options is not None else tuple(self.catalog.options())

    def keep_options(self) -> None:
        """Take the options as they are now: there is one statement, which nobody sets an option in the midst of."""
        self._options = self.options

    @property
    def is_open(self) -> bool:
        """Whether it takes statements."""
        return self._state is State.OPEN

    def shown(self) -> Shown:
        """The lake with everything that was staged so far."""
        self._check_open()
        database, base = self.catalog.database, self.staging.base.id
        if self.staging.is_empty:
            return Shown(database, At(base), self.catalog.data_path)
        staged = StagedDatabase(database, self.staging.copy())
        return Shown(staged, At(base, self.staging.own), self.catalog.data_path)

    @contextmanager
    def statement(self) -> Iterator[None]:
        """A statement that fails leaves the transaction as it was before it."""
        self._check_open()
        before = self.staging.copy()
        try:
            yield
        except BaseException:
            written = self.staging.files[len(before.files) :]
            self.staging = before
            delete_all(written)
            raise

    def fork(self) -> Transaction:
        """A transaction that begins with what was staged here so far, and leaves this one as it is."""
        self._check_open()
        forked = copy(self)
        forked.staging = self.staging.copy()
        return forked

    def set_commit_message(self, author: str | None, message: str | None, extra_info: str | None) -> None:
        """Say who commits and why."""
        self._check_open()
        self._info = CommitInfo(author, message, extra_info)

    def check_message(self) -> None:
        """An error where the lake wants a message with every commit and there is none."""
        options = self.options
        if self._info.message is None and effective_value("require_commit_message", options, None, None) == "true":
            raise InvalidError(
                f"{self.catalog.database.location} wants a message with every commit (require_commit_message); make "
                'the change inside `with lake.transaction(message="..."):`, or call set_commit_message of that'
            )

    def commit(self) -> Snapshot:
        """Make one snapshot of it. Whatever happens, no file is deleted that a snapshot may show."""
        self._check_open()
        if not self.staging.is_empty:
            self.check_message()
        try:
            self._state = State.IN_DOUBT
            snapshot = self._committed()
            self._end_with(snapshot)
        except BaseException as error:
            self._settle(error)
            if self.snapshot is None or not isinstance(error, Exception):
                raise
            snapshot = self.snapshot
        if snapshot is not self.staging.base:
            log_snapshot(self.catalog.database, snapshot)
        delete_all(self.staging.unused_files())
        return snapshot

    def roll_back(self) -> None:
        """End it without a snapshot: the files that were written are removed."""
        self._check_open()
        self._state = State.ROLLED_BACK
        delete_all(self.staging.files)

    def _committed(self) -> Snapshot:
        staging = self.staging
        if staging.is_empty:
            return staging.base
        return commit(self.catalog.database, staging, self._info, self._policy)

    def _end_with(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._state = State.COMMITTED
        if snapshot is not self.staging.base:
            self._on_commit(self.staging.base, snapshot)

    def _settle(self, error: BaseException) -> None:
        """After a commit that was broken off: undo it only where the catalog says that there is no snapshot of it."""
        database = self.catalog.database
        try:
            happened = is_committed(database, self.staging)
        except Exception:
            if isinstance(error, Exception):
                raise commit_in_doubt(database, error) from error
            return
        if happened and self.staging.attempted is not None:
            self._end_with(self.staging.attempted)
            return
        self._state = State.ROLLED_BACK
        delete_all(self.staging.files)
        if isinstance(error, CommitInDoubtError):
            raise commit_failed(database) from error.__cause__

    def _check_open(self) -> None:
        if not self.is_open:
            raise InvalidError(
                f"this transaction {self._state.value}: it takes no more statements and no second end; "
                "leave its `with` block, and begin another one"
            )
