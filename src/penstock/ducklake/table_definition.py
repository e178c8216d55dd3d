"""What a table is, besides its rows: its columns, tags, partitioning and order, and the verbs that change them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from penstock.ducklake.attachment import Attachment
from penstock.ducklake.catalog import objects
from penstock.ducklake.model import schema_evolution
from penstock.ducklake.model.objects import SortKey, TableInfo
from penstock.ducklake.model.snapshot_changes import quoted_name
from penstock.ducklake.model.snapshots import Snapshot
from penstock.ducklake.transaction import Shown, Transaction
from penstock.ducklake.writing import definitions, table_evolution
from penstock.ducklake.writing.insert_defaults import default_of
from penstock.ducklake.writing.sort_order import check_sort_keys, parse_sort_key
from penstock.ducklake.writing.table_schemas import new_column, type_of
from penstock.partitioning import PartitionSpec
from penstock.schema.columns import Column, find_column
from penstock.spark.expressions import spark_quoted


@dataclass(frozen=True)
class TableDefinition(ABC):
    """A table by name, as the lake shows it at its current snapshot."""

    _attachment: Attachment
    schema_name: str
    name: str

    @abstractmethod
    def read(self) -> DataFrame:
        """The rows."""

    @property
    def info(self) -> TableInfo:
        """The table's row in the catalog."""
        return self._info(self._attachment.shown())

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns, with their ids, DuckLake types and defaults."""
        shown = self._attachment.shown()
        return objects.columns_at(objects.column_versions(shown.database, self._info(shown).id), shown.at)

    @property
    def tags(self) -> dict[str, str | None]:
        """The table's tags; its comment is the tag `comment`."""
        shown = self._attachment.shown()
        return objects.tags(shown.database, shown.at, self._info(shown).id)

    @property
    def comment(self) -> str | None:
        """The table's comment."""
        return self.tags.get("comment")

    @property
    def partition_spec(self) -> PartitionSpec | None:
        """How new rows are partitioned, or None."""
        shown = self._attachment.shown()
        return objects.current_partition_spec(shown.database, shown.at, self._info(shown).id)

    @property
    def sort_order(self) -> tuple[SortKey, ...]:
        """How new rows are sorted within their files; empty where they are not."""
        shown = self._attachment.shown()
        return objects.sort_order(shown.database, shown.at, self._info(shown).id)

    def column_tags(self, name: str) -> dict[str, str | None]:
        """Gives the tags of a column; its comment is the tag `comment`.

        Args:
            name: The column's name, or the path to a field: `s.a`, `list.element.x`, `map.value.y`.

        Returns:
            Values by the names of the tags.

        Raises:
            NotFoundError: There is no such column.
        """
        shown = self._attachment.shown()
        return objects.column_tags(shown.database, shown.at, self._info(shown).id, self._column(name).id)

    def option(self, name: str) -> str | None:
        """Gives the value of an option that holds for the table.

        Args:
            name: The option's name, such as `parquet_compression`.

        Returns:
            The table's, else its schema's, the lake's, the one attached with, or the default.
        """
        info = self.info
        return self._attachment.option(name, info.schema.id, info.id)

    def add_column(self, column: str) -> Snapshot | None:
        """Adds a column or a struct's field. Rows that are there show its default.

        Args:
            column: `note STRING DEFAULT 'none'`, `s.field INT`, `list.element.field INT`.

        Returns:
            The snapshot; inside a transaction, None.

        Raises:
            InvalidError: The text is no column, or its name is taken.
            NotFoundError: There is no struct at the path.
            UnsupportedError: DuckLake has no such type.
        """
        new = new_column(self._attachment.spark, column)
        with self._attachment.statement() as transaction:
            info = self._info(transaction.shown())
            has_rows, inlines = table_evolution.has_rows(transaction, info), self._inlines()

            def added(columns: tuple[Column, ...], next_id: int) -> schema_evolution.Evolution:
                return schema_evolution.add_column(
                    columns, next_id, new.parent, new.column, has_rows=has_rows, inlining=inlines
                )

            table_evolution.evolve_columns(transaction, info, added, inlines)
            if new.comment is not None:
                path = (*new.parent, new.column.name)
                found = schema_evolution.find_at(table_evolution.current_columns(transaction, info), path)
                definitions.set_column_tags(transaction, info, found.id, {"comment": new.comment})
        return transaction.snapshot

    def drop_column(self, path: str, *, if_exists: bool = False) -> Snapshot | None:
        """Drops a column, or a struct's field.

        Args:
            path: The column's name, or the path to a field.
            if_exists: Whether a column that does not exist is no error.

        Returns:
            The snapshot; inside a transaction, None.

        Raises:
            NotFoundError: There is no such column.
            InvalidError: The table is partitioned or sorted by it, or has no other.
        """
        with self._attachment.statement() as transaction:
            info = self._info(transaction.shown())
            if if_exists and not table_evolution.has_column(transaction, info, path):
                return transaction.staging.base
            in_use = table_evolution.columns_in_use(transaction, info)
            self._change(transaction, lambda columns, _: schema_evolution.drop_column(columns, path, in_use=in_use))
        return transaction.snapshot

    def rename_column(self, path: str, name: str) -> Snapshot | None:
        """Renames a column, or a struct's field.

        Args:
            path: The column's name, or the path to a field.
            name: The new name, without the path.

        Returns:
            The snapshot; inside a transaction, None.

        Raises:
            NotFoundError: There is no such column.
            InvalidError: The new name is taken or reserved.
        """
        with self._attachment.statement() as transaction:
            info = self._info(transaction.shown())
            table_evolution.rename_in_sort_order(transaction, info, path, name)
            inlines = self._inlines()
            self._change(
                transaction,
                lambda columns, _: schema_evolution.rename_column(columns, path, name, inlining=inlines),
            )
        return transaction.snapshot

    def set_type(self, path: str, type: str | T.DataType | pa.DataType) -> Snapshot | None:
        """Promotes a column or field to a wider type, by DuckLake's table of promotions.

        Args:
            path: The column's name, or the path to a field.
            type: The new type: Spark's or DuckLake's name of it, a Spark type or an Arrow type.

        Returns:
            The snapshot; inside a transaction, None.

        Raises:
            NotFoundError: There is no such column.
            InvalidError: DuckLake does not promote the one type to the other.
        """
        new = type_of(self._attachment.spark, type)
        with self._attachment.statement() as transaction:
            in_use = table_evolution.columns_in_use(transaction, self._info(transaction.shown()))
            self._change(
                transaction,
                lambda columns, next_id: schema_evolution.set_type(columns, next_id, path, new, in_use=in_use),
            )
        return transaction.snapshot

    def set_not_null(self, path: str) -> Snapshot | None:
        """Refuses NULLs in a column from now on.

        Args:
            path: The column's name.

        Returns:
            The snapshot; inside a transaction, None.

        Raises:
            NotFoundError: There is no such column.
            InvalidError: There are NULLs in it, or it is a field of a struct.
        """
        with self._attachment.statement() as transaction:
            names = schema_evolution.parse_path(path)
            column = schema_evolution.find_at(self.columns, names)
            nulls = len(names) == 1 and not self.read().where(F.col(spark_quoted(column.name)).isNull()).isEmpty()
            self._change(transaction, lambda columns, _: schema_evolution.set_not_null(columns, path, has_nulls=nulls))
            transaction.staging.checked.add(self._info(transaction.shown()).id)
        return transaction.snapshot

    def drop_not_null(self, path: str) -> Snapshot | None:
        """Takes NULLs in a column from now on.

        Args:
            path: The column's name.

        Returns:
            The snapshot; inside a transaction, None.

        Raises:
            NotFoundError: There is no such column.
        """
        return self._change_alone(lambda columns, _: schema_evolution.drop_not_null(columns, path))

    def set_default(self, path: str, default: str) -> Snapshot | None:
        """Sets the value of a column in rows that do not give one.

        Args:
            path: The column's name.
            default: A Spark SQL constant, or an expression that DuckDB knows.

        Returns:
            The snapshot; inside a transaction, None.

        Raises:
            NotFoundError: There is no such column.
            InvalidError: The default is no value of the column's type.
            UnsupportedError: The column is nested.
        """
        with self._attachment.statement() as transaction:
            column = schema_evolution.find_at(self.columns, schema_evolution.parse_path(path))
            value = default_of(self._attachment.spark, column, default)
            self._change(transaction, lambda columns, _: schema_evolution.set_default(columns, path, value))
        return transaction.snapshot

    def drop_default(self, path: str) -> Snapshot | None:
        """Lets rows that do not give a column have NULL there.

        Args:
            path: The column's name.

        Returns:
            The snapshot; inside a transaction, None.

        Raises:
            NotFoundError: There is no such column.
        """
        return self._change_alone(lambda columns, _: schema_evolution.drop_default(columns, path))

    def drop(self, *, if_exists: bool = False) -> Snapshot | None:
        """Drops the table. Its files stay until no snapshot shows them.

        Args:
            if_exists: Whether a table that does not exist is no error.

        Returns:
            The snapshot; inside a transaction, None.

        Raises:
            NotFoundError: There is no such table.
        """
        with self._attachment.statement() as transaction:
            definitions.drop_table(transaction, quoted_name(self.schema_name, self.name), if_exists=if_exists)
        return transaction.snapshot

    def set_comment(self, comment: str | None) -> Snapshot | None:
        """Sets the table's comment.

        Args:
            comment: The comment; None takes it away.

        Returns:
            The snapshot; inside a transaction, None.
        """
        return self.set_tags(comment=comment)

    def set_tags(self, /, **tags: str | None) -> Snapshot | None:
        """Sets tags of the table.

        Args:
            **tags: Values by the names of the tags; None takes a tag away.

        Returns:
            The snapshot; inside a transaction, None.
        """
        with self._attachment.statement() as transaction:
            definitions.set_table_tags(transaction, self._info(transaction.shown()), tags)
        return transaction.snapshot

    def set_column_tags(self, name: str, /, **tags: str | None) -> Snapshot | None:
        """Sets tags of a column; its comment is the tag `comment`.

        Args:
            name: The column's name, or the path to a field.
            **tags: Values by the names of the tags; None takes a tag away.

        Returns:
            The snapshot; inside a transaction, None.

        Raises:
            NotFoundError: There is no such column.
        """
        with self._attachment.statement() as transaction:
            definitions.set_column_tags(transaction, self._info(transaction.shown()), self._column(name).id, tags)
        return transaction.snapshot

    def set_partitioned_by(self, *fields: str) -> Snapshot | None:
        """Partitions new rows; files that are there stay as they are.

        Args:
            *fields: Columns and transforms of them, as `create_table` takes them; none for no partitions.

        Returns:
            The snapshot; inside a transaction, None.

        Raises:
            InvalidError: A field is no column or transform of one.
        """
        with self._attachment.statement() as transaction:
            info = self._info(transaction.shown())
            table_evolution.set_partitioned_by(transaction, info, fields, self._inlines())
        return transaction.snapshot

    def reset_partitioned_by(self) -> Snapshot | None:
        """Partitions new rows no more.

        Returns:
            The snapshot; inside a transaction, None.
        """
        return self.set_partitioned_by()

    def set_sorted_by(self, *keys: str) -> Snapshot | None:
        """Sorts new rows within their files.

        Args:
            *keys: Columns or expressions as in ORDER BY, `ts DESC NULLS LAST`; none for no order.

        Returns:
            The snapshot; inside a transaction, None.

        Raises:
            InvalidError: Spark or DuckDB cannot sort by a key.
        """
        parsed = [parse_sort_key(text) for text in keys]
        with self._attachment.statement() as transaction:
            check_sort_keys(self._attachment.spark, self.columns, parsed, f"{self.schema_name}.{self.name}")
            table_evolution.set_sorted_by(transaction, self._info(transaction.shown()), parsed)
        return transaction.snapshot

    def reset_sorted_by(self) -> Snapshot | None:
        """Sorts new rows no more.

        Returns:
            The snapshot; inside a transaction, None.
        """
        return self.set_sorted_by()

    def _change_alone(self, change: table_evolution.Change) -> Snapshot | None:
        with self._attachment.statement() as transaction:
            self._change(transaction, change)
        return transaction.snapshot

    def _change(self, transaction: Transaction, change: table_evolution.Change) -> None:
        table_evolution.evolve_columns(transaction, self._info(transaction.shown()), change, self._inlines())

    def _column(self, name: str) -> Column:
        """The column of a name, or the field at a path."""
        return find_column(self.columns, name) or schema_evolution.find_at(self.columns, name)

    def _inlines(self) -> bool:
        info = self.info
        return self._attachment.inlines(info.schema.id, info.id)

    def _info(self, shown: Shown) -> TableInfo:
        return objects.find_table(shown.database, shown.at, shown.data_path, self.schema_name, self.name)
