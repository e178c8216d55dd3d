"""One attached DuckLake, in Python's own words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Self

from pyspark.sql import DataFrame, SparkSession

from penstock.ducklake.catalog import objects
from penstock.ducklake.catalog.commits.commit import CommitInfo
from penstock.ducklake.catalog.commits.stored_options import store_option
from penstock.ducklake.catalog.snapshots import all_snapshots
from penstock.ducklake.lake_import import LakeImport
from penstock.ducklake.lake_maintenance import LakeMaintenance
from penstock.ducklake.lake_transaction import LakeTransaction
from penstock.ducklake.model.option_values import validate_option
from penstock.ducklake.model.options import OPTIONS, OptionValue
from penstock.ducklake.model.snapshot_changes import quoted_name
from penstock.ducklake.model.snapshots import Snapshot, Version
from penstock.ducklake.notebook_views import lake_html
from penstock.ducklake.streaming.written_once import LakeBatch, forget_stream, streams, written_once
from penstock.errors import InvalidError, NotFoundError
from penstock.markup import if_possible
from penstock.version import __version__

_OPTIONS = "option_name string, description string, value string, scope string, scope_entry string"
_STREAMS = "stream string, schema_name string, table_name string, batch long, snapshot_id long"
_SETTINGS = "catalog_type string, extension_version string, data_path string"


@dataclass(frozen=True, repr=False, eq=False)
class DuckLake(LakeMaintenance, LakeImport):
    """A DuckLake: its tables, snapshots and options.

    Verbs that change something return the snapshot they made, and None inside a transaction, whose commit makes it.
    Each raises a `ConflictError` where another writer changed the same thing meanwhile, an `InvalidError` where the
    lake was attached read-only or at a snapshot, and a `CatalogError` where its database fails.
    """

    def __repr__(self) -> str:
        """The location, without its secrets."""
        return repr(self._attachment)

    def _repr_html_(self) -> str | None:
        return if_possible(lambda: lake_html(self._attachment))

    def __enter__(self) -> Self:
        """The lake, which the end of the block closes."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the lake."""
        self.close()

    @property
    def spark(self) -> SparkSession:
        """The Spark session that the lake was attached with."""
        return self._attachment.spark

    def close(self) -> None:
        """Lets go of the catalog; DataFrames that were read and not yet run will fail."""
        self._attachment.catalog.database.close()

    @contextmanager
    def transaction(
        self, *, author: str | None = None, message: str | None = None, extra_info: str | None = None
    ) -> Iterator[LakeTransaction]:
        """Makes one snapshot of many statements over many tables.

        Reads inside see what was written inside, on top of the snapshot that was the newest at the beginning. An
        exception leaves no snapshot and removes the files that were written. Each thread has its own transaction::

            with lake.transaction(message="nightly load"):
                orders.append(df)
                totals.overwrite(sums)

        Args:
            author: Who commits.
            message: What the commit is about.
            extra_info: Anything else that the snapshot is to keep.

        Yields:
            The transaction, which takes the message later too (`set_commit_message(...)`). Its `commit()` and
            `roll_back()` end it before the block does, which then does nothing more: neither statements nor a second
            end are taken inside the block after that.

        Raises:
            InvalidError: The thread is inside a transaction of this lake already, or the lake cannot be changed.
            ConflictError: Another writer changed the same things; nothing was committed.
        """
        with self._attachment.transaction(CommitInfo(author, message, extra_info)) as transaction:
            yield LakeTransaction(transaction)

    @contextmanager
    def write_once(
        self, *, stream: str, batch: int, author: str | None = None, message: str | None = None
    ) -> Iterator[LakeBatch]:
        """Writes a batch of a stream once: for a `foreachBatch` of your own, or any source that numbers its batches.

        The block is a transaction, over as many tables as it writes. At its end the number of the batch is committed
        with the rows, in a tag of each of these tables; where the lake has the batch already, what the block did is
        dropped instead. So a batch may be tried again and again, whatever died when::

            def write(rows: DataFrame, batch: int) -> None:
                with lake.write_once(stream="orders", batch=batch) as found:
                    if found.is_new:  # saves the work
                        orders.append(rows)
                        totals.merge(sums(rows), on="day").when_matched_update().when_not_matched_insert().execute()

            df.writeStream.foreachBatch(write).option("checkpointLocation", "...").start()

        Args:
            stream: The stream's name, which no other stream into this lake has.
            batch: The number of the batch: greater than those of all before it.
            author: Who commits.
            message: What the commit is about; by default which batch it is.

        Yields:
            The batch: `is_new` tells whether the lake does not have it.

        Raises:
            InvalidError: The thread is inside a transaction of this lake already; the numbers are those of a query with
                another checkpoint; or the block changes no table.
            ConflictError: Another run of the stream has written meanwhile, or another writer changed the same things;
                nothing was committed.
        """
        with written_once(self._attachment, stream, batch, author=author, message=message) as found:
            yield found

    def streams(self) -> DataFrame:
        """Lists the streams that the lake remembers, with the last batch that each table has of them.

        Returns:
            stream, schema_name, table_name, batch, and the snapshot_id of the batch.
        """
        return self._frame(streams(self._attachment), _STREAMS)

    def forget_stream(self, stream: str) -> Snapshot | None:
        """Forgets the batches of a stream, so that one with a new checkpoint can go by its name.

        Args:
            stream: The stream's name.

        Returns:
            The snapshot; inside a transaction, None.

        Raises:
            NotFoundError: The lake remembers no such stream.
        """
        return forget_stream(self._attachment, stream)

    def set_option(self, name: str, value: object, *, schema: str | None = None, table: str | None = None) -> None:
        """Sets an option for the lake, a schema or a table. Options are not part of snapshots: this holds at once.

        Args:
            name: The option's name, such as `parquet_compression`.
            value: The value, as a Python value or as its text.
            schema: The schema to set it for.
            table: The table to set it for, as `table` takes it, or by its own name beside `schema`.

        Raises:
            InvalidError: There is no such option, or it takes no such value or scope.
            NotFoundError: There is no such schema or table.
        """
        self._attachment.check_writable()
        text = validate_option(name, value)
        scope = "table" if table is not None else "schema" if schema is not None else "global"
        if scope not in OPTIONS[name].scopes:
            raise InvalidError(
                f"option {name} cannot be set for a {scope}, only for: {', '.join(OPTIONS[name].scopes)}"
            )
        option = OptionValue(name, text, scope, self._scope_id(schema, table))
        store_option(self._attachment.catalog.database, option)

    def current_snapshot(self) -> Snapshot:
        """Gives the newest snapshot, or the one that the lake was attached at.

        Returns:
            The snapshot.
        """
        return self._attachment.current_snapshot()

    def last_committed_snapshot(self) -> Snapshot | None:
        """Gives the last snapshot that was made through this Lake, as the extension's `last_committed_snapshot()`.

        Others may have committed since. Attaching, rolling back and transactions without a change make none.

        Returns:
            The snapshot, or None where nothing was committed yet.
        """
        return self._attachment.last_committed

    def snapshot_at(self, version: Version | None = None, timestamp: str | datetime | None = None) -> Snapshot:
        """Gives the snapshot of a version or a time; the current one when neither is given.

        Args:
            version: The number of a snapshot, or a `Snapshot` such as every verb that writes returns.
            timestamp: A time, as text or a datetime; without a zone it is in the Spark session's.

        Returns:
            The snapshot.

        Raises:
            NotFoundError: It does not exist (any more), or both were given.
            InvalidError: The version is no number.
        """
        return self._attachment.snapshot_at(version, timestamp)

    def snapshots(self) -> DataFrame:
        """Lists every snapshot, with what it changed.

        Returns:
            What the extension's `snapshots()` returns.
        """
        return self._snapshot_frame(all_snapshots(self._attachment.catalog.database))

    def options(self) -> DataFrame:
        """Lists the options that were set, and for what.

        Returns:
            What the extension's `options()` returns.
        """
        return self._frame([self._option_row(item) for item in self._attachment.catalog.options()], _OPTIONS)

    def settings(self) -> DataFrame:
        """Tells the catalog's database, the version of this library and the data path.

        Returns:
            What the extension's `settings()` returns, with Penstock's version as the extension's.
        """
        catalog = self._attachment.catalog
        row = (catalog.database.engine, f"penstock {__version__}", catalog.data_path_as_given)
        return self._frame([row], _SETTINGS)

    def _scope_id(self, schema: str | None, table: str | None) -> int | None:
        if table is not None:
            return self.table(table if schema is None else f"{quoted_name(schema)}.{table}").info.id
        if schema is None:
            return None
        found = self._attachment.schema_id(schema)
        if found is None:
            known = ", ".join(item.name for item in self.schemas())
            raise NotFoundError(f"schema {schema} does not exist; there are {known}")
        return found

    def _option_row(self, item: OptionValue) -> tuple[str | None, ...]:
        description = OPTIONS[item.name].description if item.name in OPTIONS else None
        return (item.name, description, item.value, item.scope.upper(), self._scope_entry(item))

    def _scope_entry(self, item: OptionValue) -> str | None:
        shown = self._attachment.shown()
        where = (shown.database, shown.at, shown.data_path)
        if item.scope == "schema":
            return next((s.name for s in objects.schemas(*where) if s.id == item.scope_id), None)
        if item.scope == "table":
            return next((t.full_name for t in objects.tables(*where) if t.id == item.scope_id), None)
        return None
