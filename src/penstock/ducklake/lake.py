"""One attached DuckLake."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from types import TracebackType
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812

from penstock.ducklake.catalog import objects
from penstock.ducklake.catalog.commits.commit import CommitInfo, RetryPolicy
from penstock.ducklake.catalog.commits.stored_options import store_option
from penstock.ducklake.catalog.opening import Catalog
from penstock.ducklake.catalog.snapshots import (
    all_snapshots,
    latest_snapshot,
    reserved_words,
    snapshot_by_time,
    snapshot_by_version,
)
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.catalog.visible_files import table_sizes
from penstock.ducklake.model.names import parse_table_name
from penstock.ducklake.model.objects import Macro, MacroImplementation, Schema, View
from penstock.ducklake.model.option_values import validate_option
from penstock.ducklake.model.options import OPTIONS, OptionValue, effective
from penstock.ducklake.model.snapshot_changes import parse_changes, quoted_name, summarise
from penstock.ducklake.model.snapshots import Snapshot, Version
from penstock.ducklake.table import Table
from penstock.ducklake.transaction import Shown, Transaction
from penstock.ducklake.writing import definitions
from penstock.ducklake.writing.sort_order import parse_sort_key
from penstock.ducklake.writing.table_schemas import new_table
from penstock.errors import InvalidError, NotFoundError
from penstock.spark.schemas import nullable
from penstock.spark.versions import instant
from penstock.version import __version__

_SNAPSHOTS = """snapshot_id long, snapshot_time timestamp, schema_version long, changes map<string,array<string>>,
                author string, commit_message string, commit_extra_info string"""
_OPTIONS = "option_name string, description string, value string, scope string, scope_entry string"
_SETTINGS = "catalog_type string, extension_version string, data_path string"
_TABLES = """table_name string, schema_id long, table_id long, table_uuid string, file_count long, file_size_bytes long,
             delete_file_count long, delete_file_size_bytes long"""


class Lake:
    """A DuckLake: its tables, snapshots and options. Made by `penstock.attach`; close it, or use it in a `with`."""

    def __init__(
        self,
        catalog: Catalog,
        spark: SparkSession,
        pinned: Callable[[Lake], Snapshot] | None = None,
        attached_options: Mapping[str, str] | None = None,
        read_only: bool = False,
        retries: RetryPolicy | None = None,
    ) -> None:
        self.catalog = catalog
        self.attached_options = attached_options or {}
        self.spark = spark
        self.known_file_kinds: dict[tuple[int, ...], dict[int, str]] = {}
        self._pinned = pinned(self) if pinned else None
        self._read_only = read_only
        self._retries = retries or RetryPolicy()
        self._last_committed: Snapshot | None = None
        self._thread = threading.local()

    def __repr__(self) -> str:
        return f"Lake({str(self.catalog.database.location)!r})"

    def __enter__(self) -> Lake:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the catalog; DataFrames that were read and not yet run will fail."""
        self.catalog.database.close()

    @contextmanager
    def transaction(
        self, *, author: str | None = None, message: str | None = None, extra_info: str | None = None
    ) -> Iterator[Transaction]:
        """Many statements over many tables, one snapshot: `with lake.transaction(message="nightly load"): ...`

        Reads inside see what was written inside, on top of the snapshot that was the newest at the beginning. An
        exception leaves no snapshot and removes the files that were written. Each thread has its own transaction.

        What it yields takes the message later too (`set_commit_message(...)`). Its `commit()` and `roll_back()` end the
        transaction before the block does, which then does nothing more: neither statements nor a second end are taken
        inside the block after that.
        """
        if self._active is not None:
            raise InvalidError("this thread is inside a transaction of this lake already; end that one first")
        self._check_writable()
        info = CommitInfo(author, message, extra_info)
        transaction = Transaction(self.catalog, info, self._retries, self._note_commit)
        try:
            self._thread.active = transaction
            yield transaction
            if transaction.is_open:
                transaction.commit()
        except BaseException:
            if transaction.is_open:
                transaction.roll_back()
            raise
        finally:
            self._thread.active = None

    @contextmanager
    def changing(self) -> Iterator[Transaction]:
        """One statement: of the transaction that this thread is in, or by itself."""
        if self._active is not None:
            with self._active.statement():
                yield self._active
            return
        with self.transaction() as transaction:
            transaction.check_message()  # none can come any more: better before rows are written
            yield transaction

    def _note_commit(self, snapshot: Snapshot) -> None:
        self._last_committed = snapshot

    @property
    def _active(self) -> Transaction | None:
        return getattr(self._thread, "active", None)

    def _check_writable(self) -> None:
        if self._read_only or self._pinned is not None:
            how = "read_only=True" if self._read_only else "a snapshot"
            raise InvalidError(f"{self!r} was attached with {how} and cannot be changed; attach it without")

    def shown(self, version: Version | None = None, timestamp: str | datetime | None = None) -> Shown:
        """What a read looks at: a snapshot that is asked for, the transaction's view, or the current snapshot."""
        database, data_path = self.catalog.database, self.catalog.data_path
        if version is None and timestamp is None:
            if self._active is not None:
                return self._active.shown()
            return Shown(database, At(self.current_snapshot().id), data_path)
        return Shown(database, At(self.snapshot_at(version, timestamp).id), data_path)

    def table(self, name: str) -> Table:
        """The table of a name: `orders` (in `main`), `sales.orders`, `"odd.schema"."odd table"`."""
        schema, table = parse_table_name(name)
        shown = self.shown()
        if not objects.was_ever_a_table(shown.database, table):
            objects.find_table(shown.database, shown.at, shown.data_path, schema, table)
        return Table(self, schema, table)

    def schemas(self) -> list[Schema]:
        shown = self.shown()
        return objects.schemas(shown.database, shown.at, shown.data_path)

    def views(self) -> list[View]:
        """The views, as their SQL and the dialect it is in."""
        shown = self.shown()
        return objects.views(shown.database, shown.at, shown.data_path)

    def macros(self) -> list[Macro]:
        shown = self.shown()
        return objects.macros(shown.database, shown.at, shown.data_path)

    def tables(self) -> DataFrame:
        """What the extension's `table_info()` returns: the tables, with the number and size of their files."""
        shown = self.shown()
        with shown.database.consistent():
            sizes = table_sizes(shown.database, shown.at)
            tables = objects.tables(shown.database, shown.at, shown.data_path)
        rows = [(t.name, t.schema.id, t.id, t.uuid, *sizes.get(t.id, (0, 0, 0, 0))) for t in tables]
        return self._frame(rows, _TABLES)

    def create_schema(self, name: str, *, if_not_exists: bool = False) -> Snapshot | None:
        with self.changing() as transaction:
            definitions.create_schema(transaction, name, if_not_exists=if_not_exists)
        return transaction.snapshot

    def drop_schema(self, name: str, *, if_exists: bool = False, cascade: bool = False) -> Snapshot | None:
        """Drop a schema; with `cascade`, everything in it too."""
        with self.changing() as transaction:
            definitions.drop_schema(transaction, name, if_exists=if_exists, cascade=cascade)
        return transaction.snapshot

    def create_table(
        self,
        name: str,
        schema: str | T.StructType | pa.Schema | DataFrame,
        *,
        partitioned_by: Sequence[str] = (),
        sorted_by: Sequence[str] = (),
        comment: str | None = None,
        if_not_exists: bool = False,
        replace: bool = False,
    ) -> Table:
        """A new table, of Spark's DDL text, a StructType or a PyArrow schema; or of a DataFrame, with its rows.

        As in SQL, the columns of a table that is made from a DataFrame take NULL. `replace` drops the table that has
        the name, in the same snapshot.

        Partition transforms are written `col`, `bucket(N, col)`, `year(col)`, `month(col)`, `day(col)`, `hour(col)`;
        sort keys as in ORDER BY: `ts DESC NULLS LAST`.
        """
        schema_name, table_name = parse_table_name(name)
        inlines = self._inlines(schema_name)
        shape = nullable(schema.schema) if isinstance(schema, DataFrame) else schema
        definition = new_table(self.spark, shape, inlining=inlines)
        table = Table(self, schema_name, table_name)
        with self.changing() as transaction:
            if if_not_exists and definitions.find_table_or_none(transaction, name) is not None:
                return table
            keys = [parse_sort_key(text) for text in sorted_by]
            table.check_sort_keys(definition.columns, keys)
            if replace:
                definitions.drop_table(transaction, name, if_exists=True)
            definitions.create_table(
                transaction, name, definition,
                partitioned_by=partitioned_by, sorted_by=keys, comment=comment, inlines=inlines,
            )  # fmt: skip
            if isinstance(schema, DataFrame):
                table.insert_into(transaction, schema)
        return table

    def _inlines(self, schema: str) -> bool:
        """Whether small inserts into a new table of a schema are kept in the catalog."""
        schema_id = next((item.id for item in self.schemas() if item.name.lower() == schema.lower()), None)
        limit = effective("data_inlining_row_limit", self.catalog.options(), schema_id, None, self.attached_options)
        return int(limit or 0) > 0

    def drop_table(self, name: str, *, if_exists: bool = False) -> Snapshot | None:
        with self.changing() as transaction:
            definitions.drop_table(transaction, name, if_exists=if_exists)
        return transaction.snapshot

    def create_view(
        self,
        name: str,
        sql: str,
        *,
        dialect: str = "spark",
        column_aliases: Sequence[str] = (),
        if_not_exists: bool = False,
        replace: bool = False,
    ) -> Snapshot | None:
        """Store a view with the dialect of its SQL. DuckDB runs those of dialect `duckdb`."""
        with self.changing() as transaction:
            definitions.create_view(
                transaction, name, sql, dialect=dialect, column_aliases=column_aliases,
                if_not_exists=if_not_exists, replace=replace,
            )  # fmt: skip
        return transaction.snapshot

    def drop_view(self, name: str, *, if_exists: bool = False) -> Snapshot | None:
        with self.changing() as transaction:
            definitions.drop_view(transaction, name, if_exists=if_exists)
        return transaction.snapshot

    def rename_view(self, name: str, new_name: str) -> Snapshot | None:
        with self.changing() as transaction:
            definitions.rename_view(transaction, name, new_name)
        return transaction.snapshot

    def set_view_comment(self, name: str, comment: str | None) -> Snapshot | None:
        return self.set_view_tags(name, comment=comment)

    def set_view_tags(self, name: str, **tags: str | None) -> Snapshot | None:
        """Set tags of a view; None takes one away."""
        with self.changing() as transaction:
            definitions.set_view_tags(transaction, name, tags)
        return transaction.snapshot

    def create_macro(self, name: str, *implementations: MacroImplementation, replace: bool = False) -> Snapshot | None:
        """Store a macro: one implementation for each number of parameters, each with the dialect of its SQL.

        All are scalar or all are table macros; one of each kind may have the same name.
        """
        with self.changing() as transaction:
            definitions.create_macro(transaction, name, implementations, replace=replace)
        return transaction.snapshot

    def drop_macro(
        self, name: str, *, kind: Literal["scalar", "table"] | None = None, if_exists: bool = False
    ) -> Snapshot | None:
        """Drop a macro; where there is one of each kind, `kind` says which."""
        with self.changing() as transaction:
            definitions.drop_macro(transaction, name, kind=kind, if_exists=if_exists)
        return transaction.snapshot

    def set_option(self, name: str, value: object, *, schema: str | None = None, table: str | None = None) -> None:
        """Set an option for the lake, a schema or a table. Options are not part of snapshots: this holds at once.

        A table is named as everywhere, `sales.orders`, or by its own name beside `schema`.
        """
        self._check_writable()
        text = validate_option(name, value)
        scope = "table" if table is not None else "schema" if schema is not None else "global"
        if scope not in OPTIONS[name].scopes:
            raise InvalidError(
                f"option {name} cannot be set for a {scope}, only for: {', '.join(OPTIONS[name].scopes)}"
            )
        store_option(self.catalog.database, OptionValue(name, text, scope, self._scope_id(schema, table)))

    def _scope_id(self, schema: str | None, table: str | None) -> int | None:
        if table is not None:
            return self.table(table if schema is None else f"{quoted_name(schema)}.{table}").info.id
        if schema is None:
            return None
        found = next((item.id for item in self.schemas() if item.name.lower() == schema.lower()), None)
        if found is None:
            known = ", ".join(item.name for item in self.schemas())
            raise NotFoundError(f"schema {schema} does not exist; there are {known}")
        return found

    def current_snapshot(self) -> Snapshot:
        """The newest snapshot, or the one that the lake was attached at."""
        return self._pinned or latest_snapshot(self.catalog.database)

    def last_committed_snapshot(self) -> Snapshot | None:
        """As the extension's `last_committed_snapshot()`: the last snapshot that was made through this Lake, or None.

        Others may have committed since. Attaching, rolling back and transactions without a change make none.
        """
        return self._last_committed

    def snapshots(self) -> DataFrame:
        """What the extension's `snapshots()` returns: every snapshot, with what it changed."""
        reserved = reserved_words()
        rows = [
            (s.id, s.time, s.schema_version, summarise(parse_changes(s.changes_made), reserved), s.author,
             s.commit_message, s.commit_extra_info)
            for s in all_snapshots(self.catalog.database)
        ]  # fmt: skip
        return self._frame(rows, _SNAPSHOTS)

    def options(self) -> DataFrame:
        """What the extension's `options()` returns: the options that were set, and for what."""
        return self._frame([self._option_row(item) for item in self.catalog.options()], _OPTIONS)

    def _option_row(self, item: OptionValue) -> tuple[str | None, ...]:
        description = OPTIONS[item.name].description if item.name in OPTIONS else None
        return (item.name, description, item.value, item.scope.upper(), self._scope_entry(item))

    def _scope_entry(self, item: OptionValue) -> str | None:
        shown = self.shown()
        where = (shown.database, shown.at, shown.data_path)
        if item.scope == "schema":
            return next((s.name for s in objects.schemas(*where) if s.id == item.scope_id), None)
        if item.scope == "table":
            return next((t.full_name for t in objects.tables(*where) if t.id == item.scope_id), None)
        return None

    def settings(self) -> DataFrame:
        """What the extension's `settings()` returns, with Penstock's version as the extension's."""
        row = (self.catalog.database.engine, f"penstock {__version__}", self.catalog.data_path_as_given)
        return self._frame([row], _SETTINGS)

    def snapshot_at(self, version: Version | None = None, timestamp: str | datetime | None = None) -> Snapshot:
        """The snapshot of a version or a time; the current one when neither is given.

        A version is the number of a snapshot, or a `Snapshot` such as every verb that writes returns. A
        `NotFoundError` says that it does not exist (any more).
        """
        if version is not None and timestamp is not None:
            raise NotFoundError("give a version or a timestamp, not both")
        if version is not None:
            return snapshot_by_version(self.catalog.database, _number(version))
        if timestamp is not None:
            return snapshot_by_time(self.catalog.database, self.instant(timestamp))
        return self.current_snapshot()

    def instant(self, time: str | datetime) -> datetime:
        """A time without a zone is in the Spark session's."""
        return instant(self.spark, time)

    def _frame(self, rows: Sequence[tuple[Any, ...]], schema: str) -> DataFrame:
        return self.spark.createDataFrame(list(rows), schema)


def _number(version: Version) -> int:
    number = version.id if isinstance(version, Snapshot) else version
    if isinstance(number, bool) or not isinstance(number, int):
        raise InvalidError(f"{version!r} is no version; give the number of a snapshot, or a Snapshot")
    return number
