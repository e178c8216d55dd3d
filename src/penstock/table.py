"""One table of a lake, and the verbs on it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from penstock.catalog import objects
from penstock.catalog.changed_files import span
from penstock.catalog.files import FileScope, listed_files
from penstock.catalog.inlined import inlined_delete_table
from penstock.catalog.snapshots import latest_snapshot, snapshot_from_time
from penstock.errors import InvalidError, NotFoundError
from penstock.merge import Merge
from penstock.model import evolution
from penstock.model.changes import quoted_name
from penstock.model.columns import Column, find_column
from penstock.model.objects import SortKey, TableInfo
from penstock.model.options import effective
from penstock.model.snapshots import Snapshot
from penstock.partitioning import PartitionSpec
from penstock.spark.assignment import as_column, quoted
from penstock.spark.change_feed import ChangeFeed, Feed
from penstock.spark.explain import Explanation, explain
from penstock.spark.insert_defaults import default_of
from penstock.spark.scan import Contents, Scan
from penstock.spark.schemas import column_to_add, type_of
from penstock.spark.shape import Shape
from penstock.spark.sorting import check_sort_key, parse_sort_key
from penstock.spark.target_rows import expressions
from penstock.spark.types import has_nanoseconds
from penstock.spark.writing import Distribution
from penstock.statements import add_files, change, define, evolve, insert, remove
from penstock.statements.target import Target, target_of
from penstock.storage.parquet.name_matching import Rules
from penstock.transaction import Shown, Transaction

if TYPE_CHECKING:
    from penstock.delta import DeltaTable
    from penstock.lake import Lake

Bound = int | str | datetime
_FILES = """data_file string, data_file_size_bytes long, data_file_footer_size long, data_file_encryption_key binary,
            delete_file string, delete_file_size_bytes long, delete_file_footer_size long,
            delete_file_encryption_key binary"""


@dataclass(frozen=True)
class Table:
    """A table by name. Each call shows it at the lake's current snapshot, or at the one that is asked for."""

    lake: Lake
    schema_name: str
    name: str

    def __repr__(self) -> str:
        return f"Table({self.schema_name}.{self.name} of {self.lake!r})"

    def read(
        self,
        *,
        version: int | None = None,
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
        self, predicate: str, *, version: int | None = None, timestamp: str | datetime | None = None
    ) -> Explanation:
        """How many data files a query with this predicate reads, how many it leaves out, and why."""
        shown = self.lake.shown(version, timestamp)
        with shown.database.consistent():
            scan = self._scan(shown)
            contents = scan.contents()
        return explain(scan, contents, predicate)

    def files(self, *, version: int | None = None, timestamp: str | datetime | None = None) -> DataFrame:
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
        `update_postimage`), and the columns as of `end`, which is the current snapshot if it is left out. A start that
        is a time is the first snapshot from then on, an end the last one until then.
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
            if isinstance(bound, int):
                return self.lake.snapshot_at(version=bound)
            if name == "end":
                return self.lake.snapshot_at(timestamp=bound)
            return snapshot_from_time(self.lake.catalog.database, self.lake.instant(bound))
        except NotFoundError as error:
            raise NotFoundError(f"the {name} of the changes: {error}") from None

    @property
    def info(self) -> TableInfo:
        """The table's row in the catalog."""
        return self._info(self.lake.shown())

    @property
    def columns(self) -> tuple[Column, ...]:
        shown = self.lake.shown()
        return objects.columns_at(objects.column_versions(shown.database, self._info(shown).id), shown.at)

    @property
    def schema(self) -> T.StructType:
        """The Spark schema of `read()`."""
        return self._scan(self.lake.shown()).schema

    @property
    def tags(self) -> dict[str, str | None]:
        shown = self.lake.shown()
        return objects.tags(shown.database, shown.at, self._info(shown).id)

    @property
    def comment(self) -> str | None:
        return self.tags.get("comment")

    def column_tags(self, name: str) -> dict[str, str | None]:
        """The tags of a column (its comment is the tag `comment`)."""
        shown = self.lake.shown()
        return objects.column_tags(shown.database, shown.at, self._info(shown).id, self._column(name).id)

    @property
    def partition_spec(self) -> PartitionSpec | None:
        """How new rows are partitioned, or None."""
        shown = self.lake.shown()
        return objects.current_partition_spec(shown.database, shown.at, self._info(shown).id)

    @property
    def sort_order(self) -> tuple[SortKey, ...]:
        shown = self.lake.shown()
        return objects.sort_order(shown.database, shown.at, self._info(shown).id)

    def option(self, name: str) -> str | None:
        """The value that holds: the table's, else its schema's, the lake's, the one attached with, or the default."""
        info = self.info
        return effective(name, self.lake.catalog.options(), info.schema.id, info.id, self.lake.attached_options)

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
        `region=EU` gives that column's value, whatever the file says, unless `hive_partitioning` is False. Paths are
        files, not patterns. An error names file and column, and changes nothing.

        The files are the lake's from then on: DuckLake's clean-up, this one's or DuckDB's, may delete them when no
        snapshot shows them any more. Nobody else may change, move or delete them.
        """
        rules = Rules(allow_missing, ignore_extra_columns, hive_partitioning)
        given = [paths] if isinstance(paths, str) else list(paths)
        with self.lake.changing() as transaction:
            add_files.add(transaction, self.lake.spark, self._target(transaction), given, rules)
        return transaction.snapshot

    def add_delta(self, table: DeltaTable) -> Snapshot | None:
        """Link the live files of a Delta table's newest version into this one, which has the same columns by name.

        How either is partitioned does not matter: every file must hold its partition columns, as those of a table
        with materialized partition columns do (`table.backfill()` writes them into older files).

        Two owners share the files then, and neither knows of the other. Delta's VACUUM deletes those that the Delta
        table has replaced or dropped since, and this lake still shows them; DuckLake's clean-up (after a delete, a
        compaction and the expiry of snapshots, here or in DuckDB) deletes those that the Delta table may still show.
        While both are in use, neither vacuum the one nor clean up the other; where the Delta table is to go for good,
        remove its log, not its files. Rows that come to the Delta table later are not here.
        """
        with self.lake.changing() as transaction:
            add_files.add_delta(transaction, self.lake.spark, self._target(transaction), table)
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
        """Delete the rows that a predicate is true for; without one all rows, which reads nothing."""
        with self.lake.changing() as transaction:
            self._remove(transaction, where)
        return transaction.snapshot

    def update(
        self, values: Mapping[str, str | SparkColumn], where: str | SparkColumn | None = None
    ) -> Snapshot | None:
        """Give columns new values, in the rows that a predicate is true for or in all: `{"total": "total * 1.1"}`.

        A name may be a path to a field of a struct. Rows keep their identity (`rowid`).
        """
        if not values:
            raise InvalidError(f"nothing to set in {self.schema_name}.{self.name}; give a value for a column")
        with self.lake.changing() as transaction:
            target, scan, contents = self.to_change(transaction)
            condition = None if where is None else as_column(where)
            change.update(transaction, target, scan, contents, expressions(values), condition)
        return transaction.snapshot

    def merge(self, source: DataFrame, on: str | SparkColumn) -> Merge:
        """Merge rows into the table: `t.merge(df, on="target.id = source.id").when_matched_update()...execute()`."""
        return Merge(self, source, as_column(on))

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
        insert.insert(transaction, self._target(transaction), df, by_name=by_name, distribution=distribution)

    def add_column(self, column: str) -> Snapshot | None:
        """Add a column or a struct's field: `note STRING DEFAULT 'none'`, `s.field INT`, `list.element.field INT`."""
        new = column_to_add(self.lake.spark, column)
        with self.lake.changing() as transaction:
            info = self._info(transaction.shown())
            has_rows = evolve.has_rows(transaction, info)
            evolve.change_columns(
                transaction, info,
                lambda columns, next_id: evolution.add_column(
                    columns, next_id, new.parent, new.column, has_rows=has_rows, inlining=self._inlines()
                ),
                self._inlines(),
            )  # fmt: skip
            if new.comment is not None:
                added = evolution.find_at(evolve.columns_of(transaction, info), (*new.parent, new.column.name))
                define.set_column_tags(transaction, info, added.id, {"comment": new.comment})
        return transaction.snapshot

    def drop_column(self, path: str, *, if_exists: bool = False) -> Snapshot | None:
        """Drop a column, or a struct's field by its path."""
        with self.lake.changing() as transaction:
            info = self._info(transaction.shown())
            if if_exists and not evolve.exists(transaction, info, path):
                return transaction.staging.base
            in_use = evolve.columns_in_use(transaction, info)
            self._evolve(transaction, lambda columns, _: evolution.drop_column(columns, path, in_use=in_use))
        return transaction.snapshot

    def rename_column(self, path: str, name: str) -> Snapshot | None:
        """Rename a column, or a struct's field by its path; the new name is without the path."""
        with self.lake.changing() as transaction:
            info = self._info(transaction.shown())
            evolve.rename_in_sort_order(transaction, info, path, name)
            self._evolve(
                transaction,
                lambda columns, _: evolution.rename_column(columns, path, name, inlining=self._inlines()),
            )
        return transaction.snapshot

    def set_type(self, path: str, type: str | T.DataType | pa.DataType) -> Snapshot | None:
        """Promote a column or field to a wider type, by DuckLake's table of promotions."""
        new = type_of(self.lake.spark, type)
        with self.lake.changing() as transaction:
            in_use = evolve.columns_in_use(transaction, self._info(transaction.shown()))
            self._evolve(
                transaction, lambda columns, next_id: evolution.set_type(columns, next_id, path, new, in_use=in_use)
            )
        return transaction.snapshot

    def set_not_null(self, path: str) -> Snapshot | None:
        """Refuse NULLs in a column from now on; an error if there are any."""
        with self.lake.changing() as transaction:
            names = evolution.parse_path(path)
            column = evolution.find_at(self.columns, names)
            nulls = len(names) == 1 and not self.read().where(F.col(quoted(column.name)).isNull()).isEmpty()
            self._evolve(transaction, lambda columns, _: evolution.set_not_null(columns, path, has_nulls=nulls))
        return transaction.snapshot

    def drop_not_null(self, path: str) -> Snapshot | None:
        return self._simply(lambda columns, _: evolution.drop_not_null(columns, path))

    def set_default(self, path: str, default: str) -> Snapshot | None:
        """The value of a column in rows that do not give one: a Spark SQL constant, or an expression DuckDB knows."""
        with self.lake.changing() as transaction:
            column = evolution.find_at(self.columns, evolution.parse_path(path))
            value = default_of(self.lake.spark, column, default)
            self._evolve(transaction, lambda columns, _: evolution.set_default(columns, path, value))
        return transaction.snapshot

    def drop_default(self, path: str) -> Snapshot | None:
        return self._simply(lambda columns, _: evolution.drop_default(columns, path))

    def rename(self, name: str) -> Table:
        """Rename the table within its schema; its files stay where they are."""
        with self.lake.changing() as transaction:
            info, inlines = self._info(transaction.shown()), self._inlines()
            define.rename_table(transaction, info, name)
            evolve.reshape(transaction, info, inlines)
        return Table(self.lake, self.schema_name, name)

    def drop(self, *, if_exists: bool = False) -> Snapshot | None:
        return self.lake.drop_table(quoted_name(self.schema_name, self.name), if_exists=if_exists)

    def set_comment(self, comment: str | None) -> Snapshot | None:
        return self.set_tags(comment=comment)

    def set_tags(self, **tags: str | None) -> Snapshot | None:
        """Set tags of the table; None takes one away."""
        with self.lake.changing() as transaction:
            define.set_table_tags(transaction, self._info(transaction.shown()), tags)
        return transaction.snapshot

    def set_column_tags(self, name: str, **tags: str | None) -> Snapshot | None:
        """Set tags of a column (its comment is the tag `comment`); None takes one away."""
        with self.lake.changing() as transaction:
            define.set_column_tags(transaction, self._info(transaction.shown()), self._column(name).id, tags)
        return transaction.snapshot

    def set_partitioned_by(self, *fields: str) -> Snapshot | None:
        """Partition new rows by columns and transforms of them; files that are there stay as they are."""
        with self.lake.changing() as transaction:
            evolve.set_partitioned_by(transaction, self._info(transaction.shown()), fields, self._inlines())
        return transaction.snapshot

    def reset_partitioned_by(self) -> Snapshot | None:
        return self.set_partitioned_by()

    def set_sorted_by(self, *keys: str) -> Snapshot | None:
        """Sort new rows within their files: columns or expressions as in ORDER BY, `ts DESC NULLS LAST`."""
        parsed = [parse_sort_key(text) for text in keys]
        with self.lake.changing() as transaction:
            self.check_sort_keys(self.columns, parsed)
            evolve.set_sorted_by(transaction, self._info(transaction.shown()), parsed)
        return transaction.snapshot

    def reset_sorted_by(self) -> Snapshot | None:
        return self.set_sorted_by()

    def check_sort_keys(self, columns: Sequence[Column], keys: Sequence[SortKey]) -> None:
        for key in keys:
            check_sort_key(self.lake.spark, columns, key, f"{self.schema_name}.{self.name}")

    def _simply(self, change: evolve.Change) -> Snapshot | None:
        with self.lake.changing() as transaction:
            self._evolve(transaction, change)
        return transaction.snapshot

    def _evolve(self, transaction: Transaction, change: evolve.Change) -> None:
        evolve.change_columns(transaction, self._info(transaction.shown()), change, self._inlines())

    def _column(self, name: str) -> Column:
        """The column of a name, or the field at a path."""
        return find_column(self.columns, name) or evolution.find_at(self.columns, name)

    def _inlines(self) -> bool:
        """Whether small inserts are kept in the catalog."""
        return int(self.option("data_inlining_row_limit") or 0) > 0

    def _remove(self, transaction: Transaction, where: str | SparkColumn | None) -> None:
        if where is None:
            info = self._info(transaction.shown())
            removal = remove.everything(transaction, info)
        else:
            target, scan, contents = self.to_change(transaction, in_full=False)
            info = target.info
            removal = remove.matching(transaction, target, scan, contents, as_column(where))
        remove.stage(transaction, info, removal)

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

    def _info(self, shown: Shown) -> TableInfo:
        return objects.find_table(shown.database, shown.at, shown.data_path, self.schema_name, self.name)

    def _scan(self, shown: Shown, *, row_ids: bool = False, addresses: bool = False, nanoseconds: bool = False) -> Scan:
        database, info = shown.database, self._info(shown)
        history = tuple(objects.column_versions(database, info.id))
        shape = Shape(objects.columns_at(history, shown.at), history, nanoseconds)
        latest = latest_snapshot(database)
        deletes = inlined_delete_table(database, info.id)
        variants = any(item.type.name == "variant" for column in shape.columns for item in column.walk())
        scope = FileScope(
            database, info.id, info.path, shown.at, latest.id, latest.next_file_id, shape.eras, deletes, variants
        )
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
