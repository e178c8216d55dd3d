"""A merge as its clauses are given, one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame

from penstock.ducklake.changing.merge_keys import On
from penstock.ducklake.changing.merge_rows import Action, Case, Clause
from penstock.ducklake.changing.merges import merge
from penstock.ducklake.changing.target_rows import expressions
from penstock.ducklake.model.snapshots import Snapshot
from penstock.errors import InvalidError
from penstock.spark.expressions import as_column

if TYPE_CHECKING:
    from penstock.ducklake.table import Table

Expression = str | SparkColumn


@dataclass(frozen=True)
class Merge:
    """Rows of a source, matched with those of a table. Nothing happens before `execute`.

    Conditions and values are SQL text or column expressions; they call the table `target` and the rows `source`, and
    DuckLake's row id `target.rowid`. For each row the first clause decides whose condition is true; without one nothing
    happens to the row.
    """

    table: Table
    source: DataFrame
    on: On
    clauses: tuple[Clause, ...] = ()

    def when_matched_update(
        self, values: Mapping[str, Expression] | None = None, condition: Expression | None = None
    ) -> Merge:
        """Give columns new values; without any, all columns those of the source's columns of the same names."""
        return self._with("matched", "update", values, condition)

    def when_matched_delete(self, condition: Expression | None = None) -> Merge:
        return self._with("matched", "delete", None, condition)

    def when_not_matched_insert(
        self, values: Mapping[str, Expression] | None = None, condition: Expression | None = None
    ) -> Merge:
        """Insert the source's row: the given values, or its columns by their names; the others take their default."""
        return self._with("not matched", "insert", values, condition)

    def when_not_matched_by_source_update(
        self, values: Mapping[str, Expression], condition: Expression | None = None
    ) -> Merge:
        return self._with("not matched by source", "update", values, condition)

    def when_not_matched_by_source_delete(self, condition: Expression | None = None) -> Merge:
        return self._with("not matched by source", "delete", None, condition)

    def execute(self) -> Snapshot | None:
        """Do it, as one snapshot. Returns that; inside a transaction, None."""
        if not self.clauses:
            raise InvalidError(
                f"the merge into {self.table.name} has no clause; add one, such as when_matched_update()"
            )
        with self.table.lake.changing() as transaction:
            target, scan, contents = self.table.to_change(transaction)
            merge(transaction, target, scan, contents, self.source, self.on, self.clauses)
        return transaction.snapshot

    def _with(
        self, case: Case, action: Action, values: Mapping[str, Expression] | None, condition: Expression | None
    ) -> Merge:
        if values is not None and not values:
            raise InvalidError(f"a clause of the merge into {self.table.name} sets nothing; give a value for a column")
        given = None if values is None else expressions(values)
        clause = Clause(case, action, given, None if condition is None else as_column(condition))
        return replace(self, clauses=(*self.clauses, clause))
