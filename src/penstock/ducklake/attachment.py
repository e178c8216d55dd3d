"""Holds what the tables, merges and statements of an attached lake share: catalog, session, transactions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Protocol
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from penstock.ducklake.catalog import objects
from penstock.ducklake.catalog.commits.commit import CommitInfo, RetryPolicy
from penstock.ducklake.catalog.opening import Catalog
from penstock.ducklake.catalog.remembered_answers import Moment
from penstock.ducklake.catalog.snapshots import latest_snapshot, snapshot_by_time, snapshot_by_version
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.catalog.written_tables import KnownTables
from penstock.ducklake.model.options import effective_value
from penstock.ducklake.model.snapshots import Snapshot, Version, version_number
from penstock.ducklake.transaction import Shown, Transaction
from penstock.errors import InvalidError, NotFoundError
from penstock.spark.versions import instant
from penstock.storage.s3 import s3_endpoint
from penstock.storage.stores import store_of


class Listener(Protocol):
    """Who is told where a transaction begins and ends."""

    def begins(self, token: str) -> None:
        """A transaction of this thread has begun, known by a token."""

    def ends(self, token: str, committed: bool) -> None:
        """It has ended."""


# Makes a streaming DataFrame of a definition (streaming.table_stream), by the way that Spark has into the lake.
LoadStream = Callable[[Any], DataFrame]
# What files say of themselves, by the columns in question, then by file: its path too, since a backup in the lake's
# place gives ids to other files.
KnownKinds = dict[tuple[int, ...], dict[tuple[int, str], str]]


class Attachment:
    """The catalog, the Spark session, the options that were attached with, and the transaction of each thread."""

    def __init__(
        self,
        catalog: Catalog,
        spark: SparkSession,
        options: Mapping[str, str] | None = None,
        read_only: bool = False,
        retries: RetryPolicy | None = None,
        pinned: Callable[[Attachment], Snapshot] | None = None,
    ) -> None:
        self.catalog = catalog
        self.spark = spark
        self.options = options or {}
        self.known_file_kinds: KnownKinds = {}
        self.known_tables = KnownTables()
        self.last_committed: Snapshot | None = None
        self._server = s3_endpoint(catalog.data_path)
        self._read_only = read_only
        self.retries = retries or RetryPolicy()
        self._thread = threading.local()
        self._open: list[Transaction] = []
        self.load_stream: LoadStream | None = None  # set by who attaches the lake
        self._listener: Listener | None = None  # once Spark asks for tables: see `answer_spark`
        self._by_token: dict[str, Transaction] = {}
        self._pinned = pinned(self) if pinned else None

    def __repr__(self) -> str:
        return f"Lake({str(self.catalog.database.location)!r})"

    @contextmanager
    def transaction(self, info: CommitInfo) -> Iterator[Transaction]:
        """A transaction of this thread, which ends with the block if it has not ended before."""
        with self.resumed(self.begun(info)) as transaction:
            yield transaction

    def begun(self, info: CommitInfo) -> Transaction:
        """A transaction that is nobody's yet: see `resumed`."""
        if self._active is not None:
            raise InvalidError("this thread is inside a transaction of this lake already; end that one first")
        self.check_writable()
        self._check_server()
        return Transaction(self.catalog, info, self.retries, self._note_commit)

    @contextmanager
    def resumed(self, transaction: Transaction) -> Iterator[Transaction]:
        """A transaction as this thread's, which ends with the block if it has not ended before."""
        self._open.append(transaction)
        try:
            self._thread.active = transaction
            self._note(transaction)
            yield transaction
            if transaction.is_open:
                transaction.commit()
        except BaseException:
            if transaction.is_open:
                transaction.roll_back()
            raise
        finally:
            self._thread.active = None
            self._open.remove(transaction)
            self._forget(transaction)

    def answer_spark(self, listener: Listener) -> None:
        """From now on tell who answers for Spark what transactions there are: SQL belongs to them."""
        if self._listener is not None:
            return
        others = [transaction for transaction in self._open if transaction is not self._active]
        if others:
            raise InvalidError(
                f"{self!r} is inside a transaction of another thread, which SQL would not see; end it, or register "
                "the lake before it begins"
            )
        self._listener = listener
        if self._active is not None:
            self._note(self._active)

    def _note(self, transaction: Transaction) -> None:
        if self._listener is not None:
            token = uuid4().hex
            self._by_token[token] = transaction
            self._listener.begins(token)

    def _forget(self, transaction: Transaction) -> None:
        for token in [token for token, of in self._by_token.items() if of is transaction]:
            del self._by_token[token]
            if self._listener is not None:
                self._listener.ends(token, transaction.snapshot is not None)

    @contextmanager
    def lent(self, transaction: Transaction) -> Iterator[None]:
        """A transaction as this thread's, which does not end with the block."""
        before, self._thread.active = self._active, transaction
        try:
            yield
        finally:
            self._thread.active = before

    @contextmanager
    def called_by(self, java_thread: int, token: str | None) -> Iterator[None]:
        """Lends this thread the transaction of another one, which it works for.

        Spark may ask for tables and rows on a Python thread of py4j's, not on that of the caller; it says then which
        transaction it works for. Where it does not know, it asks on the caller's own thread.
        """
        before = self._active
        self._thread.active = self._by_token.get(token or "", before)
        self._thread.caller = java_thread
        try:
            yield
        finally:
            self._thread.active = before

    @contextmanager
    def statement(self) -> Iterator[Transaction]:
        """One statement: of the transaction that this thread is in, or by itself."""
        if self._active is not None:
            with self._active.statement():
                yield self._active
            return
        with self.transaction(CommitInfo()) as transaction:
            transaction.keep_options()
            transaction.check_message()  # none can come any more: better before rows are written
            yield transaction

    def forked(self) -> Transaction | None:
        """This thread's transaction as it is now, to be tried out; None outside one."""
        return None if self._active is None else self._active.fork()

    def check_writable(self) -> None:
        """Raise an InvalidError where nothing may be changed."""
        if self.catalog.database.location.is_remote:
            raise InvalidError(
                f"{self!r} is a file elsewhere, which can only be read; change the lake that it is a copy of"
            )
        if self._read_only or self._pinned is not None:
            how = "read_only=True" if self._read_only else "a snapshot"
            raise InvalidError(f"{self!r} was attached with {how} and cannot be changed; attach it without")

    def check_changes_at_once(self, verb: str) -> None:
        """Raise an InvalidError where nothing may be changed, or not by a verb that no transaction can take back."""
        self.check_writable()
        if self._active is not None:
            raise InvalidError(f"{verb} takes effect at once and cannot be part of a transaction; call it outside")

    def shown(self, version: Version | None = None, timestamp: str | datetime | None = None) -> Shown:
        """What a read looks at: a snapshot that is asked for, the transaction's view, or the current snapshot."""
        self._check_server()
        if version is None and timestamp is None and self._active is not None:
            return self._active.shown()
        snapshot = self.snapshot_at(version, timestamp)
        return Shown(self.catalog.database, At(snapshot.id), self.catalog.data_path)

    def _check_server(self) -> None:
        """Raise an InvalidError where this process has come to use a bucket of the same name on another server."""
        server = s3_endpoint(self.catalog.data_path)
        if server != self._server:
            raise InvalidError(
                f"{self!r} keeps its files in {store_of(self.catalog.data_path)} at {self._server or 'AWS'}, and this "
                f"process has since been told that this bucket is at {server or 'AWS'}; attach the lake again, or use "
                "another process for the other bucket"
            )

    def current_snapshot(self) -> Snapshot:
        """The newest snapshot, or the one that the lake was attached at."""
        return self._pinned or latest_snapshot(self.catalog.database)

    def newest_moment(self) -> Moment | None:
        """The catalog's newest state; None where this thread looks at another: a transaction's, or an older one."""
        self._check_server()
        if self._active is not None or self._pinned is not None:
            return None
        newest = latest_snapshot(self.catalog.database)
        return Moment(newest.id, newest.time)

    def snapshot_at(self, version: Version | None = None, timestamp: str | datetime | None = None) -> Snapshot:
        """The snapshot of a version or a time; the current one when neither is given."""
        if version is not None and timestamp is not None:
            raise NotFoundError("give a version or a timestamp, not both")
        if version is not None:
            return snapshot_by_version(self.catalog.database, version_number(version))
        if timestamp is not None:
            return snapshot_by_time(self.catalog.database, self.instant(timestamp))
        return self.current_snapshot()

    def instant(self, time: str | datetime) -> datetime:
        """A time; one without a zone is in the Spark session's."""
        return instant(self.spark, time)

    def option(self, name: str, schema_id: int | None, table_id: int | None) -> str | None:
        """The value of an option that holds for a table, for new tables of a schema, or for new schemas."""
        return effective_value(name, self.catalog.options(), schema_id, table_id, self.options)

    def inlines(self, schema_id: int | None, table_id: int | None = None) -> bool:
        """Whether small inserts are kept in the catalog."""
        return int(self.option("data_inlining_row_limit", schema_id, table_id) or 0) > 0

    def schema_id(self, name: str) -> int | None:
        """The id of a schema, or None."""
        shown = self.shown()
        schemas = objects.schemas(shown.database, shown.at, shown.data_path)
        return next((schema.id for schema in schemas if schema.name.lower() == name.lower()), None)

    @property
    def caller(self) -> int:
        """The JVM's thread that this one works for: see `called_by`."""
        return int(self._thread.caller)

    @property
    def in_transaction(self) -> bool:
        """Whether this thread is inside a transaction, or works for one that is."""
        return self._active is not None

    @property
    def _active(self) -> Transaction | None:
        return getattr(self._thread, "active", None)

    def _note_commit(self, base: Snapshot, made: Snapshot) -> None:
        self.last_committed = made
        self.known_tables.note_commit(base, made)
