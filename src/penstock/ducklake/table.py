"""One table of a lake, and the verbs on it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812

from penstock.ducklake.catalog import objects
from penstock.ducklake.catalog.changed_files import span
from penstock.ducklake.catalog.inlined_rows import inlined_delete_table
from penstock.ducklake.catalog.snapshots import latest_snapshot, snapshot_from_time
from penstock.ducklake.catalog.visible_files import FileScope, listed_files
from penstock.ducklake.changing import deletes, updates
from penstock.ducklake.changing.merge_keys import On
from penstock.ducklake.changing.target_rows import expressions
from penstock.ducklake.files.name_matching import Rules
from penstock.ducklake.merge import Merge
from penstock.ducklake.model.snapshots import Snapshot, Version
from penstock.ducklake.reading.change_feed import ChangeFeed, Feed
from penstock.ducklake.reading.column_layout import Shape
from penstock.ducklake.reading.explain import Explanation, explain
from penstock.ducklake.reading.table_scan import Contents, Scan
from penstock.ducklake.table_definition import TableDefinition
from penstock.ducklake.transaction import Shown, Transaction
from penstock.ducklake.writing import added_files, column_changes, definitions, inserts
from penstock.ducklake.writing.write_target import Target, target_of
from penstock.errors import InvalidError, NotFoundError
from penstock.schema.columns import Column
from penstock.spark.column_assignment import as_column
from penstock.spark.types import has_nanoseconds
from penstock.spark.write_job import Distribution

Bound = Version | str | datetime
_FILES = """data_file string, data_file_size_bytes long, data_file_footer_size long, data_file_encryption_key binary,
            delete_file string, delete_file_size_bytes long, delete_file_footer_size long,
            delete_file_encryption_key binary"""


@dataclass(frozen=True)
class Table(TableDefinition):
    """A table by name. Each call shows it at the lake's current snapshot, or at the one that is asked for."""

    def __repr__(self) -> str:
        return f"Table({self.schema_name}.{self.name} of {self.lake!r})"

    def read(
        self,
        *,
        version: Version | None = None,
        timestamp: str | datetime | None = None,
        row_ids: bool = False,
        nanoseconds: Literal["truncate", "long"] | None = None,
    ) -> DataFrame:
        """The rows at a snapshot, as a plain DataFrame; files are chosen when Spark plans a query on it.

        `row_ids` adds DuckLake's row identifier as the last column, `rowid`. Spark's timestamps have microseconds:
        columns of type timestamp_ns are cut to them ("truncate", the default, with a warning) or given as bigint
        nanoseconds since 1970 ("long").
        """
        shown = self.lake.shown(version, timestamp)
        with shown.database.consistent():
            scan = self._scan(shown, row_ids=row_ids, nanoseconds=nanoseconds == "long")
            contents = scan.contents()
        if nanoseconds is None:
            _warn_of_nanoseconds(scan.shape.columns, self.name)
        return scan.frame(contents)

    def explain(
        self, predicate: str, *, version: Version | None = None, timestamp: str | datetime | None = None
    ) -> Explanation:
        """How many data files a query with this predicate reads, how many it leaves out, and why."""
        shown = self.lake.shown(version, timestamp)
        with shown.database.consistent():
            scan = self._scan(shown)
            contents = scan.contents()
        return explain(scan, contents, predicate)

    def files(self, *, version: Version | None = None, timestamp: str | datetime | None = None) -> DataFrame:
        """What the extension's `ducklake_list_files` returns: data files with their delete files."""
        shown = self.lake.shown(version, timestamp)
        info = self._info(shown)
        rows = listed_files(shown.database, info.id, info.path, shown.at)
        return self.lake.spark.createDataFrame(rows, _FILES)

    def changes(
        self, start: Bound, end: Bound | None = None, *, nanoseconds: Literal["truncate", "long"] | None = None
    ) -> DataFrame:
        """What the snapshots from `start` to `end` did to the rows, both included: snapshots by id or by time.

        As the extension's `table_changes`: snapshot_id, rowid, change_type (`insert`, `delete`, `update_preimage`,
        `update_postimage`), and the columns as of `end`, which is the current snapshot if it is left out. A
        `Snapshot` stands for its id. A start that is a time is the first snapshot from then on, an end the last until
        then.
        """
        return self._feed("changes", start, end, nanoseconds)

    def insertions(
        self, start: Bound, end: Bound | None = None, *, nanoseconds: Literal["truncate", "long"] | None = None
    ) -> DataFrame:
        """The rows that the snapshots inserted, and updated rows as they became; without change_type."""
        return self._feed("insertions", start, end, nanoseconds)

    def deletions(
        self, start: Bound, end: Bound | None = None, *, nanoseconds: Literal["truncate", "long"] | None = None
    ) -> DataFrame:
        """The rows that the snapshots deleted, and updated rows as they were; without change_type."""
        return self._feed("deletions", start, end, nanoseconds)

    def _feed(
        self, feed: Feed, start: Bound, end: Bound | None, nanoseconds: Literal["truncate", "long"] | None
    ) -> DataFrame:
        database = self.lake.catalog.database
        with database.consistent():
            first, last = self._bound("start", start), self._bound("end", end)
            scan = self._scan(self.lake.shown(last.id), nanoseconds=nanoseconds == "long")
            changes = ChangeFeed.of(feed, scan, span(database, scan.scope.table_id, first.id, last.id))
        if nanoseconds is None:
            _warn_of_nanoseconds(scan.shape.columns, self.name)
        return changes.frame()

    def _bound(self, name: Literal["start", "end"], bound: Bound | None) -> Snapshot:
        try:
            if bound is None:
                return self.lake.current_snapshot()
            if not isinstance(bound, str | datetime):
                return self.lake.snapshot_at(version=bound)
            if name == "end":
                return self.lake.snapshot_at(timestamp=bound)
            return snapshot_from_time(self.lake.catalog.database, self.lake.instant(bound))
        except NotFoundError as error:
            raise NotFoundError(f"the {name} of the changes: {error}") from None

    @property
    def schema(self) -> T.StructType:
        """The Spark schema of `read()`."""
        return self._scan(self.lake.shown()).schema

    def append(self, df: DataFrame, *, by_name: bool = False, distribution: Distribution = "auto") -> Snapshot | None:
        """Add the rows of a DataFrame, by position as SQL's INSERT, or by name with defaults for what is not given.

        `distribution` says how rows come to the tasks that write files: "auto", "none" (every task of the DataFrame
        writes files of its own), or "partition" (a shuffle brings the rows of a partition together).
        Returns the snapshot; inside a transaction, None.
        """
        with self.lake.changing() as transaction:
            self.insert_into(transaction, df, by_name=by_name, distribution=distribution)
        return transaction.snapshot

    def add_files(
        self,
        paths: str | Sequence[str],
        *,
        allow_missing: bool = False,
        ignore_extra_columns: bool = False,
        hive_partitioning: bool | None = None,
    ) -> Snapshot | None:
        """Link Parquet files into the table as they are; no row is copied. Columns go by name, in any case.

        Types must be the table's or narrower ones. `allow_missing` lets a column that a file lacks read as NULL or as
        the default it was added with, `ignore_extra_columns` hides columns that the table lacks. A directory like
        `region=EU` gives that column's value, whatever the file says, unless `hive_partitioning` is False. An error
        names file and column, and changes nothing.

        A path is a file, a folder (all below it that end in `.parquet`), or a pattern: `/data/2026-*/**/*.parquet`.

        The files are the lake's from then on: DuckLake's clean-up, this one's or DuckDB's, may delete them when no
        snapshot shows them any more. Nobody else may change, move or delete them.
        """
        rules = Rules(allow_missing, ignore_extra_columns, hive_partitioning)
        given = [paths] if isinstance(paths, str) else list(paths)
        with self.lake.changing() as transaction:
            added_files.add(transaction, self.lake.spark, self._target(transaction), given, rules)
        return transaction.snapshot

    def add_delta(self, table: added_files.LinkableTable) -> Snapshot | None:
        """Link the live files of a Delta table's newest version into this one, which has the same columns by name.

        How either is partitioned does not matter: every file must hold its partition columns, as those of a table
        with materialized partition columns do (`table.backfill()` writes them into older files).

        Two owners share the files then. Delta's VACUUM deletes those that the Delta table has replaced or dropped
        since, and this lake still shows them: the link is noted in Delta's log (a version without a change), and
        Penstock's `vacuum` asks, but other programs do not know of it. DuckLake's clean-up (after a delete, a
        compaction and the expiry of snapshots, here or in DuckDB) deletes those that the Delta table may still show.
        While both are in use, neither vacuum the one nor clean up the other; where the Delta table is to go for good,
        remove its log, not its files. Rows that come to the Delta table later are not here.
        """
        with self.lake.changing() as transaction:
            added_files.add_delta(transaction, self.lake.spark, self._target(transaction), table)
        return transaction.snapshot

    def overwrite(
        self,
        df: DataFrame,
        *,
        where: str | SparkColumn | None = None,
        by_name: bool = False,
        distribution: Distribution = "auto",
    ) -> Snapshot | None:
        """Put the rows of a DataFrame in the place of all rows, or of those that a predicate is true for."""
        with self.lake.changing() as transaction:
            self._remove(transaction, where)
            self.insert_into(transaction, df, by_name=by_name, distribution=distribution)
        return transaction.snapshot

    def delete(self, where: str | SparkColumn | None = None) -> Snapshot | None:
        """Delete the rows that a predicate is true for; without one all rows, which reads nothing.

        The predicate may name `rowid`, DuckLake's row id, unless the table has a column of that name.
        """
        with self.lake.changing() as transaction:
            self._remove(transaction, where)
        return transaction.snapshot

    def update(
        self, values: Mapping[str, str | SparkColumn], where: str | SparkColumn | None = None
    ) -> Snapshot | None:
        """Give columns new values, in the rows that a predicate is true for or in all: `{"total": "total * 1.1"}`.

        A name may be a path to a field of a struct. Rows keep their identity, which conditions and values call `rowid`.
        """
        if not values:
            raise InvalidError(f"nothing to set in {self.schema_name}.{self.name}; give a value for a column")
        with self.lake.changing() as transaction:
            target, scan, contents = self.to_change(transaction)
            condition = None if where is None else as_column(where)
            updates.update(transaction, target, scan, contents, expressions(values), condition)
        return transaction.snapshot

    def merge(self, source: DataFrame, on: On) -> Merge:
        """Merge rows into the table: `t.merge(df, on="id").when_matched_update().when_not_matched_insert().execute()`.

        `on` is a column that both sides have, or a list of such, by name: rows match where these are equal, as with
        SQL's USING, so that a NULL matches nothing. Any other text, or a column expression, is a condition:
        `on="target.id = source.id AND target.day > source.day"`.
        """
        return Merge(self, source, on)

    def truncate(self) -> Snapshot | None:
        """Delete all rows, by metadata alone."""
        return self.delete()

    def insert_into(
        self,
        transaction: Transaction,
        df: DataFrame,
        *,
        by_name: bool = False,
        distribution: Distribution = "auto",
    ) -> None:
        """The part of `append` that a transaction's other statements share."""
        inserts.insert(transaction, self._target(transaction), df, by_name=by_name, distribution=distribution)

    def rename(self, name: str) -> Table:
        """Rename the table within its schema; its files stay where they are."""
        with self.lake.changing() as transaction:
            info, inlines = self._info(transaction.shown()), self._inlines()
            definitions.rename_table(transaction, info, name)
            column_changes.reshape(transaction, info, inlines)
        return Table(self.lake, self.schema_name, name)

    def _remove(self, transaction: Transaction, where: str | SparkColumn | None) -> None:
        if where is None:
            info = self._info(transaction.shown())
            removal = deletes.everything(transaction, info)
        else:
            target, scan, contents = self.to_change(transaction, in_full=False)
            info = target.info
            removal = deletes.matching(transaction, target, scan, contents, as_column(where))
        deletes.stage(transaction, info, removal)

    def to_change(self, transaction: Transaction, *, in_full: bool = True) -> tuple[Target, Scan, Contents]:
        """The table as a statement finds it: `in_full` with all that it takes to write rows of it anew."""
        shown = transaction.shown()
        target = target_of(transaction, self._info(shown), self.lake.attached_options)
        with shown.database.consistent():
            nanoseconds = in_full and any(map(has_nanoseconds, target.columns))
            scan = self._scan(shown, row_ids=True, addresses=True, nanoseconds=nanoseconds)
            return target, scan, scan.contents()

    def _target(self, transaction: Transaction) -> Target:
        return target_of(transaction, self._info(transaction.shown()), self.lake.attached_options)

    def _scan(self, shown: Shown, *, row_ids: bool = False, addresses: bool = False, nanoseconds: bool = False) -> Scan:
        database, info = shown.database, self._info(shown)
        history = tuple(objects.column_versions(database, info.id))
        shape = Shape(objects.columns_at(history, shown.at), history, nanoseconds)
        latest = latest_snapshot(database)
        deletes = inlined_delete_table(database, info.id)
        variants = any(item.type.name == "variant" for column in shape.columns for item in column.walk())
        scope = FileScope(
            database, info.id, info.path, shown.at, latest.id, latest.next_file_id, shape.eras, deletes, variants,
            shape.milliseconds,
        )  # fmt: skip
        specs = objects.partition_specs(database, info.id)
        kinds = self.lake.known_file_kinds
        return Scan(self.lake.spark, scope, shape, specs, info.full_name, kinds, row_ids, addresses)


def _warn_of_nanoseconds(columns: tuple[Column, ...], table: str) -> None:
    names = [column.name for column in columns if has_nanoseconds(column)]
    if names:
        warnings.warn(
            f"Spark's timestamps have microseconds: {', '.join(names)} of {table} lose their nanoseconds; "
            'read(nanoseconds="long") gives them as bigint, read(nanoseconds="truncate") says this is meant',
            stacklevel=3,
        )
