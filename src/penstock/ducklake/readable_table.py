"""The rows of a table, at a snapshot or as the change feed of a span of them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812

from penstock.ducklake.catalog.changed_files import snapshot_span
from penstock.ducklake.catalog.snapshots import snapshot_from_time
from penstock.ducklake.catalog.table_files import listed_files
from penstock.ducklake.model.snapshots import Snapshot, Version
from penstock.ducklake.reading.change_feed import ChangeFeed, Feed
from penstock.ducklake.reading.explain import explain
from penstock.ducklake.reading.pushed_filters import rows_where
from penstock.ducklake.reading.table_scan import TableScan, table_scan
from penstock.ducklake.table_definition import TableDefinition
from penstock.ducklake.transaction import Shown
from penstock.errors import NotFoundError
from penstock.schema.columns import Column
from penstock.spark.explanation import Explanation
from penstock.spark.expressions import as_column
from penstock.spark.local_rows import local_columns
from penstock.spark.types import has_nanoseconds

Bound = Version | str | datetime
Nanoseconds = Literal["truncate", "long"]
_FILES = """data_file string, data_file_size_bytes long, data_file_footer_size long, data_file_encryption_key binary,
            delete_file string, delete_file_size_bytes long, delete_file_footer_size long,
            delete_file_encryption_key binary"""


@dataclass(frozen=True)
class ReadableTable(TableDefinition):
    """A table by name, and its rows."""

    @property
    def schema(self) -> T.StructType:
        """The Spark schema of `read()`."""
        return self._scan(self._attachment.shown()).schema

    def read(
        self,
        *,
        version: Version | None = None,
        timestamp: str | datetime | None = None,
        where: str | SparkColumn | None = None,
        row_ids: bool = False,
        nanoseconds: Nanoseconds | None = None,
    ) -> DataFrame:
        """Gives the rows at a snapshot; files are chosen when Spark plans a query on them.

        A Spark Connect session cannot be asked then: there files are chosen at once, by `where` alone.

        Args:
            version: The number of a snapshot, or a `Snapshot`; by default the current one.
            timestamp: A time instead; without a zone it is in the Spark session's.
            where: What is true for the rows that are given, SQL or a column; by default all are.
            row_ids: Whether DuckLake's row identifier is the last column, `rowid`.
            nanoseconds: Spark's timestamps have microseconds: columns of type timestamp_ns are cut to them
                ("truncate", the default, with a warning) or given as bigint nanoseconds since 1970 ("long").

        Returns:
            A plain DataFrame.

        Raises:
            NotFoundError: The table or the snapshot does not exist, or the files are gone.
            UnsupportedError: The table has something that this version does not understand.
        """
        shown = self._attachment.shown(version, timestamp)
        with shown.database.consistent():
            scan = self._scan(shown, row_ids=row_ids, nanoseconds=nanoseconds == "long")
            contents = scan.contents()
        if nanoseconds is None:
            warn_of_nanoseconds(scan.layout.columns, self.name)
        return scan.frame(contents) if where is None else rows_where(scan, contents, as_column(where))

    def explain(
        self, predicate: str, *, version: Version | None = None, timestamp: str | datetime | None = None
    ) -> Explanation:
        """Tells how many data files a query with a predicate reads, how many it leaves out, and why.

        Args:
            predicate: What stands after WHERE.
            version: The number of a snapshot, or a `Snapshot`; by default the current one.
            timestamp: A time instead.

        Returns:
            The counts; as text, what is read and by what the others are pruned.

        Raises:
            NotFoundError: The table or the snapshot does not exist.
        """
        shown = self._attachment.shown(version, timestamp)
        with shown.database.consistent():
            scan = self._scan(shown)
            contents = scan.contents()
        return explain(scan, contents, predicate)

    def files(self, *, version: Version | None = None, timestamp: str | datetime | None = None) -> DataFrame:
        """Lists the data files with their delete files.

        Args:
            version: The number of a snapshot, or a `Snapshot`; by default the current one.
            timestamp: A time instead.

        Returns:
            What the extension's `ducklake_list_files` returns.

        Raises:
            NotFoundError: The table or the snapshot does not exist.
        """
        shown = self._attachment.shown(version, timestamp)
        info = self._info(shown)
        columns = listed_files(shown.database, info.id, info.path, shown.at)
        return local_columns(self._attachment.spark, columns, _FILES)

    def changes(self, start: Bound, end: Bound | None = None, *, nanoseconds: Nanoseconds | None = None) -> DataFrame:
        """Tells what a span of snapshots did to the rows, as the extension's `table_changes`.

        Args:
            start: The first snapshot, by its number, as a `Snapshot`, or by a time: the first one from then on.
            end: The last snapshot, by default the current one; a time means the last one until then.
            nanoseconds: As for `read`.

        Returns:
            snapshot_id, rowid, change_type (`insert`, `delete`, `update_preimage`, `update_postimage`), and the
            columns as of `end`.

        Raises:
            NotFoundError: The table, or a snapshot of the span, does not exist.
        """
        return self._feed("changes", start, end, nanoseconds)

    def insertions(
        self, start: Bound, end: Bound | None = None, *, nanoseconds: Nanoseconds | None = None
    ) -> DataFrame:
        """Tells which rows a span of snapshots inserted, and updated rows as they became.

        Args:
            start: The first snapshot, as for `changes`.
            end: The last snapshot, as for `changes`.
            nanoseconds: As for `read`.

        Returns:
            What `changes` gives, without change_type.

        Raises:
            NotFoundError: The table, or a snapshot of the span, does not exist.
        """
        return self._feed("insertions", start, end, nanoseconds)

    def deletions(self, start: Bound, end: Bound | None = None, *, nanoseconds: Nanoseconds | None = None) -> DataFrame:
        """Tells which rows a span of snapshots deleted, and updated rows as they were.

        Args:
            start: The first snapshot, as for `changes`.
            end: The last snapshot, as for `changes`.
            nanoseconds: As for `read`.

        Returns:
            What `changes` gives, without change_type.

        Raises:
            NotFoundError: The table, or a snapshot of the span, does not exist.
        """
        return self._feed("deletions", start, end, nanoseconds)

    def _feed(self, feed: Feed, start: Bound, end: Bound | None, nanoseconds: Nanoseconds | None) -> DataFrame:
        database = self._attachment.catalog.database
        with database.consistent():
            first, last = self._bound("start", start), self._bound("end", end)
            scan = self._scan(self._attachment.shown(last.id), nanoseconds=nanoseconds == "long")
            changes = ChangeFeed.of(feed, scan, snapshot_span(database, scan.scope.table_id, first.id, last.id))
        if nanoseconds is None:
            warn_of_nanoseconds(scan.layout.columns, self.name)
        return changes.frame()

    def _bound(self, name: Literal["start", "end"], bound: Bound | None) -> Snapshot:
        try:
            if bound is None:
                return self._attachment.current_snapshot()
            if not isinstance(bound, str | datetime):
                return self._attachment.snapshot_at(version=bound)
            if name == "end":
                return self._attachment.snapshot_at(timestamp=bound)
            return snapshot_from_time(self._attachment.catalog.database, self._attachment.instant(bound))
        except NotFoundError as error:
            raise NotFoundError(f"the {name} of the changes: {error}") from None

    def _scan(self, shown: Shown, *, row_ids: bool = False, nanoseconds: bool = False) -> TableScan:
        return table_scan(self._attachment, shown, self._info(shown), row_ids=row_ids, nanoseconds=nanoseconds)


def warn_of_nanoseconds(columns: tuple[Column, ...], table: str) -> None:
    """Warn where columns lose their nanoseconds, and nobody said that this is meant."""
    names = [column.name for column in columns if has_nanoseconds(column)]
    if names:
        warnings.warn(
            f"Spark's timestamps have microseconds: {', '.join(names)} of {table} lose their nanoseconds; "
            'read(nanoseconds="long") gives them as bigint, read(nanoseconds="truncate") says this is meant',
            stacklevel=3,
        )
