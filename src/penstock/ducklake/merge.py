"""A merge as its clauses are given, one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame

from penstock.ducklake.attachment import Attachment
from penstock.ducklake.catalog.objects import find_table
from penstock.ducklake.changing.merge_keys import On
from penstock.ducklake.changing.merge_rows import Action, Case, Clause
from penstock.ducklake.changing.merges import merge
from penstock.ducklake.changing.target_rows import as_columns
from penstock.ducklake.changing.target_table import target_table
from penstock.ducklake.model.snapshots import Snapshot
from penstock.errors import InvalidError
from penstock.spark.expressions import as_column
from penstock.storage.progress import titled

Expression = str | SparkColumn


@dataclass(frozen=True)
class Merge:
    """Rows of a source, matched with those of a table. Nothing happens before `execute`.

    Conditions and values are SQL text or column expressions; they call the table `target` and the rows `source`, and
    DuckLake's row id `target.rowid`. For each row the first clause decides whose condition is true; without one nothing
    happens to the row.
    """

    _attachment: Attachment
    schema_name: str
    name: str
    source: DataFrame
    on: On
    clauses: tuple[Clause, ...] = ()

    def when_matched_update(
        self, values: Mapping[str, Expression] | None = None, condition: Expression | None = None
    ) -> Merge:
        """Gives columns of matched rows new values.

        Args:
            values: Values by the names of columns or paths to fields; without any, all columns take those of the
                source's columns of the same names.
            condition: For which of them; by default all.

        Returns:
            The merge with this clause.

        Raises:
            InvalidError: There is nothing to set.
        """
        return self._with("matched", "update", values, condition)

    def when_matched_delete(self, condition: Expression | None = None) -> Merge:
        """Deletes matched rows.

        Args:
            condition: Which of them; by default all.

        Returns:
            The merge with this clause.
        """
        return self._with("matched", "delete", None, condition)

    def when_not_matched_insert(
        self, values: Mapping[str, Expression] | None = None, condition: Expression | None = None
    ) -> Merge:
        """Inserts rows of the source that match none of the table's.

        Args:
            values: Values by the names of columns, others take their default; without any, the source's columns by
                their names.
            condition: Which of them; by default all.

        Returns:
            The merge with this clause.

        Raises:
            InvalidError: There is nothing to set.
        """
        return self._with("not matched", "insert", values, condition)

    def when_not_matched_by_source_update(
        self, values: Mapping[str, Expression], condition: Expression | None = None
    ) -> Merge:
        """Gives columns of rows that match none of the source's new values.

        Args:
            values: Values by the names of columns or paths to fields.
            condition: For which of them; by default all.

        Returns:
            The merge with this clause.

        Raises:
            InvalidError: There is nothing to set.
        """
        return self._with("not matched by source", "update", values, condition)

    def when_not_matched_by_source_delete(self, condition: Expression | None = None) -> Merge:
        """Deletes rows that match none of the source's.

        Args:
            condition: Which of them; by default all.

        Returns:
            The merge with this clause.
        """
        return self._with("not matched by source", "delete", None, condition)

    def execute(self) -> Snapshot | None:
        """Does it, as one snapshot.

        Returns:
            The snapshot; inside a transaction, None.

        Raises:
            InvalidError: There is no clause, a value does not fit its column, or two rows of the source change the
                same row.
            NotFoundError: The table, or a column that is named, does not exist.
            ConflictError: Another writer changed the same rows, or inserted rows that may match; nothing was done.
        """
        if not self.clauses:
            raise InvalidError(f"the merge into {self.name} has no clause; add one, such as when_matched_update()")
        with titled(f"merge {self.schema_name}.{self.name}"), self._attachment.statement() as transaction:
            shown = transaction.shown()
            info = find_table(shown.database, shown.at, shown.data_path, self.schema_name, self.name)
            table = target_table(self._attachment, transaction, info)
            merge(transaction, table, self.source, self.on, self.clauses)
        return transaction.snapshot

    def _with(
        self, case: Case, action: Action, values: Mapping[str, Expression] | None, condition: Expression | None
    ) -> Merge:
        if values is not None and not values:
            raise InvalidError(f"a clause of the merge into {self.name} sets nothing; give a value for a column")
        given = None if values is None else as_columns(values)
        clause = Clause(case, action, given, None if condition is None else as_column(condition))
        return replace(self, clauses=(*self.clauses, clause))
