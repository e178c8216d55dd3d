"""One table of a lake, and the verbs on it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812

from penstock.catalog import objects
from penstock.catalog.files import FileScope, listed_files
from penstock.catalog.inlined import inlined_delete_table
from penstock.catalog.snapshots import latest_snapshot
from penstock.model.columns import Column
from penstock.model.objects import SortKey, TableInfo
from penstock.model.options import effective
from penstock.partitioning import PartitionSpec
from penstock.spark.explain import Explanation, explain
from penstock.spark.scan import Scan
from penstock.spark.shape import Shape

if TYPE_CHECKING:
    from penstock.lake import Lake

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
        snapshot = self.lake.snapshot_at(version, timestamp).id
        database = self.lake.catalog.database
        with database.consistent():
            scan = self._scan(snapshot, row_ids=row_ids, nanoseconds=nanoseconds == "long")
            contents = scan.contents()
        if nanoseconds is None:
            _warn_of_nanoseconds(scan.shape.columns, self.name)
        return scan.frame(contents)

    def explain(
        self, predicate: str, *, version: int | None = None, timestamp: str | datetime | None = None
    ) -> Explanation:
        """How many data files a query with this predicate reads, how many it leaves out, and why."""
        snapshot = self.lake.snapshot_at(version, timestamp).id
        with self.lake.catalog.database.consistent():
            scan = self._scan(snapshot)
            contents = scan.contents()
        return explain(scan, contents, predicate)

    def files(self, *, version: int | None = None, timestamp: str | datetime | None = None) -> DataFrame:
        """What the extension's `ducklake_list_files` returns: data files with their delete files."""
        snapshot = self.lake.snapshot_at(version, timestamp).id
        info = self._info(snapshot)
        rows = listed_files(self.lake.catalog.database, info.id, info.path, snapshot)
        return self.lake.spark.createDataFrame(rows, _FILES)

    @property
    def columns(self) -> tuple[Column, ...]:
        snapshot = self.lake.current_snapshot().id
        return objects.columns_at(
            objects.column_versions(self.lake.catalog.database, self._info(snapshot).id), snapshot
        )

    @property
    def schema(self) -> T.StructType:
        """The Spark schema of `read()`."""
        return self._scan(self.lake.current_snapshot().id).schema

    @property
    def tags(self) -> dict[str, str | None]:
        snapshot = self.lake.current_snapshot().id
        return objects.tags(self.lake.catalog.database, snapshot, self._info(snapshot).id)

    @property
    def comment(self) -> str | None:
        return self.tags.get("comment")

    def column_tags(self, name: str) -> dict[str, str | None]:
        """The tags of a column (its comment is the tag `comment`)."""
        snapshot = self.lake.current_snapshot().id
        column = objects.require_column(self.columns, name, self.name)
        return objects.column_tags(self.lake.catalog.database, snapshot, self._info(snapshot).id, column.id)

    @property
    def partition_spec(self) -> PartitionSpec | None:
        """How new rows are partitioned, or None."""
        snapshot, database = self.lake.current_snapshot().id, self.lake.catalog.database
        info = self._info(snapshot)
        current = objects.current_partition_id(database, snapshot, info.id)
        return next((spec for spec in objects.partition_specs(database, info.id) if spec.partition_id == current), None)

    @property
    def sort_order(self) -> tuple[SortKey, ...]:
        snapshot = self.lake.current_snapshot().id
        return objects.sort_order(self.lake.catalog.database, snapshot, self._info(snapshot).id)

    def option(self, name: str) -> str | None:
        """The value that holds: the table's, else its schema's, the lake's, the one attached with, or the default."""
        info = self._info(self.lake.current_snapshot().id)
        return effective(name, self.lake.catalog.options(), info.schema.id, info.id, self.lake.attached_options)

    def _info(self, snapshot: int) -> TableInfo:
        catalog = self.lake.catalog
        return objects.find_table(catalog.database, snapshot, catalog.data_path, self.schema_name, self.name)

    def _scan(self, snapshot: int, *, row_ids: bool = False, nanoseconds: bool = False) -> Scan:
        database, info = self.lake.catalog.database, self._info(snapshot)
        history = tuple(objects.column_versions(database, info.id))
        shape = Shape(objects.columns_at(history, snapshot), history, nanoseconds)
        latest = latest_snapshot(database)
        deletes = inlined_delete_table(database, info.id)
        variants = any(item.type.name == "variant" for column in shape.columns for item in column.walk())
        scope = FileScope(
            database, info.id, info.path, snapshot, latest.id, latest.next_file_id, shape.eras, deletes, variants
        )
        specs = objects.partition_specs(database, info.id)
        return Scan(self.lake.spark, scope, shape, specs, info.full_name, self.lake.known_file_kinds, row_ids)


def _warn_of_nanoseconds(columns: tuple[Column, ...], table: str) -> None:
    names = [column.name for column in columns if any(item.type.name == "timestamp_ns" for item in column.walk())]
    if names:
        warnings.warn(
            f"Spark's timestamps have microseconds: {', '.join(names)} of {table} lose their nanoseconds; "
            'read(nanoseconds="long") gives them as bigint, read(nanoseconds="truncate") says this is meant',
            stacklevel=3,
        )
