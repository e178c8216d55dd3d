"""What a table is, besides its rows: its columns, tags, partitioning and order, and the verbs that change them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from penstock.ducklake.catalog import objects
from penstock.ducklake.model import schema_evolution
from penstock.ducklake.model.objects import SortKey, TableInfo
from penstock.ducklake.model.options import effective
from penstock.ducklake.model.snapshot_changes import quoted_name
from penstock.ducklake.model.snapshots import Snapshot
from penstock.ducklake.transaction import Shown, Transaction
from penstock.ducklake.writing import column_changes, definitions
from penstock.ducklake.writing.insert_defaults import default_of
from penstock.ducklake.writing.sort_order import check_sort_key, parse_sort_key
from penstock.ducklake.writing.table_schemas import new_column, type_of
from penstock.partitioning import PartitionSpec
from penstock.schema.columns import Column, find_column
from penstock.spark.expressions import quoted

if TYPE_CHECKING:
    from penstock.ducklake.lake import Lake


@dataclass(frozen=True)
class TableDefinition(ABC):
    """A table by name, as the lake shows it at its current snapshot."""

    lake: Lake
    schema_name: str
    name: str

    @abstractmethod
    def read(self) -> DataFrame:
        """The rows."""

    @property
    def info(self) -> TableInfo:
        """The table's row in the catalog."""
        return self._info(self.lake.shown())

    @property
    def columns(self) -> tuple[Column, ...]:
        shown = self.lake.shown()
        return objects.columns_at(objects.column_versions(shown.database, self._info(shown).id), shown.at)

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

    def add_column(self, column: str) -> Snapshot | None:
        """Add a column or a struct's field: `note STRING DEFAULT 'none'`, `s.field INT`, `list.element.field INT`."""
        new = new_column(self.lake.spark, column)
        with self.lake.changing() as transaction:
            info = self._info(transaction.shown())
            has_rows = column_changes.has_rows(transaction, info)
            column_changes.change_columns(
                transaction, info,
                lambda columns, next_id: schema_evolution.add_column(
                    columns, next_id, new.parent, new.column, has_rows=has_rows, inlining=self._inlines()
                ),
                self._inlines(),
            )  # fmt: skip
            if new.comment is not None:
                added = schema_evolution.find_at(
                    column_changes.columns_of(transaction, info), (*new.parent, new.column.name)
                )
                definitions.set_column_tags(transaction, info, added.id, {"comment": new.comment})
        return transaction.snapshot

    def drop_column(self, path: str, *, if_exists: bool = False) -> Snapshot | None:
        """Drop a column, or a struct's field by its path."""
        with self.lake.changing() as transaction:
            info = self._info(transaction.shown())
            if if_exists and not column_changes.exists(transaction, info, path):
                return transaction.staging.base
            in_use = column_changes.columns_in_use(transaction, info)
            self._evolve(transaction, lambda columns, _: schema_evolution.drop_column(columns, path, in_use=in_use))
        return transaction.snapshot

    def rename_column(self, path: str, name: str) -> Snapshot | None:
        """Rename a column, or a struct's field by its path; the new name is without the path."""
        with self.lake.changing() as transaction:
            info = self._info(transaction.shown())
            column_changes.rename_in_sort_order(transaction, info, path, name)
            self._evolve(
                transaction,
                lambda columns, _: schema_evolution.rename_column(columns, path, name, inlining=self._inlines()),
            )
        return transaction.snapshot

    def set_type(self, path: str, type: str | T.DataType | pa.DataType) -> Snapshot | None:
        """Promote a column or field to a wider type, by DuckLake's table of promotions."""
        new = type_of(self.lake.spark, type)
        with self.lake.changing() as transaction:
            in_use = column_changes.columns_in_use(transaction, self._info(transaction.shown()))
            self._evolve(
                transaction,
                lambda columns, next_id: schema_evolution.set_type(columns, next_id, path, new, in_use=in_use),
            )
        return transaction.snapshot

    def set_not_null(self, path: str) -> Snapshot | None:
        """Refuse NULLs in a column from now on; an error if there are any."""
        with self.lake.changing() as transaction:
            names = schema_evolution.parse_path(path)
            column = schema_evolution.find_at(self.columns, names)
            nulls = len(names) == 1 and not self.read().where(F.col(quoted(column.name)).isNull()).isEmpty()
            self._evolve(transaction, lambda columns, _: schema_evolution.set_not_null(columns, path, has_nulls=nulls))
            transaction.staging.checked.add(self._info(transaction.shown()).id)
        return transaction.snapshot

    def drop_not_null(self, path: str) -> Snapshot | None:
        return self._simply(lambda columns, _: schema_evolution.drop_not_null(columns, path))

    def set_default(self, path: str, default: str) -> Snapshot | None:
        """The value of a column in rows that do not give one: a Spark SQL constant, or an expression DuckDB knows."""
        with self.lake.changing() as transaction:
            column = schema_evolution.find_at(self.columns, schema_evolution.parse_path(path))
            value = default_of(self.lake.spark, column, default)
            self._evolve(transaction, lambda columns, _: schema_evolution.set_default(columns, path, value))
        return transaction.snapshot

    def drop_default(self, path: str) -> Snapshot | None:
        return self._simply(lambda columns, _: schema_evolution.drop_default(columns, path))

    def drop(self, *, if_exists: bool = False) -> Snapshot | None:
        return self.lake.drop_table(quoted_name(self.schema_name, self.name), if_exists=if_exists)

    def set_comment(self, comment: str | None) -> Snapshot | None:
        return self.set_tags(comment=comment)

    def set_tags(self, **tags: str | None) -> Snapshot | None:
        """Set tags of the table; None takes one away."""
        with self.lake.changing() as transaction:
            definitions.set_table_tags(transaction, self._info(transaction.shown()), tags)
        return transaction.snapshot

    def set_column_tags(self, name: str, **tags: str | None) -> Snapshot | None:
        """Set tags of a column (its comment is the tag `comment`); None takes one away."""
        with self.lake.changing() as transaction:
            definitions.set_column_tags(transaction, self._info(transaction.shown()), self._column(name).id, tags)
        return transaction.snapshot

    def set_partitioned_by(self, *fields: str) -> Snapshot | None:
        """Partition new rows by columns and transforms of them; files that are there stay as they are."""
        with self.lake.changing() as transaction:
            column_changes.set_partitioned_by(transaction, self._info(transaction.shown()), fields, self._inlines())
        return transaction.snapshot

    def reset_partitioned_by(self) -> Snapshot | None:
        return self.set_partitioned_by()

    def set_sorted_by(self, *keys: str) -> Snapshot | None:
        """Sort new rows within their files: columns or expressions as in ORDER BY, `ts DESC NULLS LAST`."""
        parsed = [parse_sort_key(text) for text in keys]
        with self.lake.changing() as transaction:
            self.check_sort_keys(self.columns, parsed)
            column_changes.set_sorted_by(transaction, self._info(transaction.shown()), parsed)
        return transaction.snapshot

    def reset_sorted_by(self) -> Snapshot | None:
        return self.set_sorted_by()

    def check_sort_keys(self, columns: Sequence[Column], keys: Sequence[SortKey]) -> None:
        for key in keys:
            check_sort_key(self.lake.spark, columns, key, f"{self.schema_name}.{self.name}")

    def _simply(self, change: column_changes.Change) -> Snapshot | None:
        with self.lake.changing() as transaction:
            self._evolve(transaction, change)
        return transaction.snapshot

    def _evolve(self, transaction: Transaction, change: column_changes.Change) -> None:
        column_changes.change_columns(transaction, self._info(transaction.shown()), change, self._inlines())

    def _column(self, name: str) -> Column:
        """The column of a name, or the field at a path."""
        return find_column(self.columns, name) or schema_evolution.find_at(self.columns, name)

    def _inlines(self) -> bool:
        """Whether small inserts are kept in the catalog."""
        return int(self.option("data_inlining_row_limit") or 0) > 0

    def _info(self, shown: Shown) -> TableInfo:
        return objects.find_table(shown.database, shown.at, shown.data_path, self.schema_name, self.name)
