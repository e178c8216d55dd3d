"""The entries of a lake: its schemas, tables, views and macros, and the verbs that make and drop them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812

from penstock.ducklake.attachment import Attachment
from penstock.ducklake.catalog import objects
from penstock.ducklake.catalog.table_files import table_sizes
from penstock.ducklake.model.names import parse_table_name
from penstock.ducklake.model.objects import Macro, MacroImplementation, Schema, View
from penstock.ducklake.model.snapshots import Snapshot
from penstock.ducklake.table import Table
from penstock.ducklake.writing import definitions
from penstock.ducklake.writing.inserts import insert
from penstock.ducklake.writing.sort_order import check_sort_keys, parse_sort_key
from penstock.ducklake.writing.table_schemas import new_table
from penstock.ducklake.writing.write_target import write_target
from penstock.spark.local_rows import local_frame
from penstock.spark.schemas import nullable

_TABLES = """table_name string, schema_id long, table_id long, table_uuid string, file_count long, file_size_bytes long,
             delete_file_count long, delete_file_size_bytes long"""


@dataclass(frozen=True, repr=False, eq=False)
class LakeDefinition:
    """What a lake has at its current snapshot, or as this thread's transaction sees it.

    Verbs that change something return the snapshot they made, and None inside a transaction, whose commit makes it.
    Each raises a `ConflictError` where another writer changed the same thing meanwhile, an `InvalidError` where the
    lake was attached read-only or at a snapshot, and a `CatalogError` where its database fails.
    """

    _attachment: Attachment

    def table(self, name: str) -> Table:
        """Gives a table by its name.

        Args:
            name: `orders` (in `main`), `sales.orders`, or quoted: `"odd.schema"."odd table"`.

        Returns:
            The table, which each of its verbs looks up anew.

        Raises:
            NotFoundError: There never was such a table.
        """
        schema, table = parse_table_name(name)
        shown = self._attachment.shown()
        if not objects.was_ever_a_table(shown.database, table):
            objects.find_table(shown.database, shown.at, shown.data_path, schema, table)
        return Table(self._attachment, schema, table)

    def schemas(self) -> list[Schema]:
        """Lists the schemas.

        Returns:
            One value for each schema: its id, uuid, name and path.
        """
        shown = self._attachment.shown()
        return objects.schemas(shown.database, shown.at, shown.data_path)

    def views(self) -> list[View]:
        """Lists the views.

        Returns:
            One value for each view, with its SQL and the dialect that it is in.
        """
        shown = self._attachment.shown()
        return objects.views(shown.database, shown.at, shown.data_path)

    def macros(self) -> list[Macro]:
        """Lists the macros.

        Returns:
            One value for each macro, with its implementations.
        """
        shown = self._attachment.shown()
        return objects.macros(shown.database, shown.at, shown.data_path)

    def tables(self) -> DataFrame:
        """Lists the tables, with the number and size of their files.

        Returns:
            What the extension's `table_info()` returns.
        """
        shown = self._attachment.shown()
        with shown.database.consistent():
            sizes = table_sizes(shown.database, shown.at)
            tables = objects.tables(shown.database, shown.at, shown.data_path)
        rows = [(t.name, t.schema.id, t.id, t.uuid, *sizes.get(t.id, (0, 0, 0, 0))) for t in tables]
        return local_frame(self._attachment.spark, rows, _TABLES)

    def create_schema(self, name: str, *, if_not_exists: bool = False) -> Snapshot | None:
        """Makes a schema.

        Args:
            name: The schema's name, without quotes.
            if_not_exists: Whether a schema that is there already is left as it is.

        Returns:
            The snapshot; inside a transaction, None.

        Raises:
            InvalidError: The name is taken or empty.
        """
        with self._attachment.statement() as transaction:
            definitions.create_schema(transaction, name, if_not_exists=if_not_exists)
        return transaction.snapshot

    def drop_schema(self, name: str, *, if_exists: bool = False, cascade: bool = False) -> Snapshot | None:
        """Drops a schema.

        Args:
            name: The schema's name, without quotes.
            if_exists: Whether a schema that does not exist is no error.
            cascade: Whether everything in it goes too.

        Returns:
            The snapshot; inside a transaction, None.

        Raises:
            NotFoundError: There is no such schema.
            InvalidError: There is something in it.
        """
        with self._attachment.statement() as transaction:
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
        """Makes a table.

        Args:
            name: The table's name, as `table` takes it.
            schema: Spark's DDL text, a `StructType` or a PyArrow schema; or a DataFrame, whose rows are inserted. As
                in SQL, the columns of a table that is made from a DataFrame take NULL.
            partitioned_by: Columns and transforms of them: `col`, `bucket(N, col)`, `year(col)`, `month(col)`,
                `day(col)`, `hour(col)`.
            sorted_by: Sort keys as in ORDER BY: `ts DESC NULLS LAST`.
            comment: The table's comment.
            if_not_exists: Whether a table that is there already is left as it is, and given back.
            replace: Whether the table that has the name is dropped, in the same snapshot.

        Returns:
            The table.

        Raises:
            InvalidError: The name is taken, or the columns, transforms or sort keys are none.
            NotFoundError: There is no such schema.
            UnsupportedError: A column has a type that DuckLake does not have.
        """
        schema_name, table_name = parse_table_name(name)
        spark, inlines = self._attachment.spark, self._attachment.inlines(self._attachment.schema_id(schema_name))
        columns = nullable(schema.schema) if isinstance(schema, DataFrame) else schema
        definition = new_table(spark, columns, inlining=inlines)
        table = Table(self._attachment, schema_name, table_name)
        with self._attachment.statement() as transaction:
            if if_not_exists and definitions.find_table_or_none(transaction, name) is not None:
                return table
            keys = [parse_sort_key(text) for text in sorted_by]
            check_sort_keys(spark, definition.columns, keys, f"{schema_name}.{table_name}")
            if replace:
                definitions.drop_table(transaction, name, if_exists=True)
            definitions.create_table(
                transaction, name, definition,
                partitioned_by=partitioned_by, sorted_by=keys, comment=comment, inlines=inlines,
            )  # fmt: skip
            if isinstance(schema, DataFrame):
                target = write_target(transaction, table.info, self._attachment.options)
                insert(transaction, target, schema, by_name=False, distribution="auto")
        return table

    def drop_table(self, name: str, *, if_exists: bool = False) -> Snapshot | None:
        """Drops a table. Its files stay until no snapshot shows them.

        Args:
            name: The table's name, as `table` takes it.
            if_exists: Whether a table that does not exist is no error.

        Returns:
            The snapshot; inside a transaction, None.

        Raises:
            NotFoundError: There is no such table.
        """
        with self._attachment.statement() as transaction:
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
        """Stores a view with the dialect of its SQL. DuckDB runs those of dialect `duckdb`.

        Args:
            name: The view's name, as `table` takes it.
            sql: The query.
            dialect: The language that the query is in.
            column_aliases: Names for the query's columns.
            if_not_exists: Whether a view that is there already is left as it is.
            replace: Whether the view that has the name goes, in the same snapshot.

        Returns:
            The snapshot; inside a transaction, None.

        Raises:
            InvalidError: The name is taken, or DuckDB could not load the lake with such a view.
            NotFoundError: There is no such schema.
        """
        with self._attachment.statement() as transaction:
            definitions.create_view(
                transaction, name, sql, dialect=dialect, column_aliases=column_aliases,
                if_not_exists=if_not_exists, replace=replace,
            )  # fmt: skip
        return transaction.snapshot

    def drop_view(self, name: str, *, if_exists: bool = False) -> Snapshot | None:
        """Drops a view.

        Args:
            name: The view's name, as `table` takes it.
            if_exists: Whether a view that does not exist is no error.

        Returns:
            The snapshot; inside a transaction, None.

        Raises:
            NotFoundError: There is no such view.
        """
        with self._attachment.statement() as transaction:
            definitions.drop_view(transaction, name, if_exists=if_exists)
        return transaction.snapshot

    def rename_view(self, name: str, new_name: str) -> Snapshot | None:
        """Renames a view within its schema.

        Args:
            name: The view's name, as `table` takes it.
            new_name: The new name, without a schema.

        Returns:
            The snapshot; inside a transaction, None.

        Raises:
            NotFoundError: There is no such view.
            InvalidError: The new name is taken.
        """
        with self._attachment.statement() as transaction:
            definitions.rename_view(transaction, name, new_name)
        return transaction.snapshot

    def set_view_comment(self, name: str, comment: str | None) -> Snapshot | None:
        """Sets the comment of a view.

        Args:
            name: The view's name, as `table` takes it.
            comment: The comment; None takes it away.

        Returns:
            The snapshot; inside a transaction, None.

        Raises:
            NotFoundError: There is no such view.
        """
        return self.set_view_tags(name, comment=comment)

    def set_view_tags(self, name: str, /, **tags: str | None) -> Snapshot | None:
        """Sets tags of a view.

        Args:
            name: The view's name, as `table` takes it.
            **tags: Values by the names of the tags; None takes a tag away.

        Returns:
            The snapshot; inside a transaction, None.

        Raises:
            NotFoundError: There is no such view.
        """
        with self._attachment.statement() as transaction:
            definitions.set_view_tags(transaction, name, tags)
        return transaction.snapshot

    def create_macro(self, name: str, *implementations: MacroImplementation, replace: bool = False) -> Snapshot | None:
        """Stores a macro.

        Args:
            name: The macro's name, as `table` takes it.
            *implementations: One for each number of parameters, each with the dialect of its SQL. All are scalar or
                all are table macros; one of each kind may have the same name.
            replace: Whether the macro of the same kind that has the name goes, in the same snapshot.

        Returns:
            The snapshot; inside a transaction, None.

        Raises:
            InvalidError: The name is taken, or DuckDB could not load the lake with such a macro.
            NotFoundError: There is no such schema.
        """
        with self._attachment.statement() as transaction:
            definitions.create_macro(transaction, name, implementations, replace=replace)
        return transaction.snapshot

    def drop_macro(
        self, name: str, *, kind: Literal["scalar", "table"] | None = None, if_exists: bool = False
    ) -> Snapshot | None:
        """Drops a macro.

        Args:
            name: The macro's name, as `table` takes it.
            kind: Which one, where there is a scalar and a table macro of the name.
            if_exists: Whether a macro that does not exist is no error.

        Returns:
            The snapshot; inside a transaction, None.

        Raises:
            NotFoundError: There is no such macro.
            InvalidError: There is one of each kind, and `kind` does not say which.
        """
        with self._attachment.statement() as transaction:
            definitions.drop_macro(transaction, name, kind=kind, if_exists=if_exists)
        return transaction.snapshot
