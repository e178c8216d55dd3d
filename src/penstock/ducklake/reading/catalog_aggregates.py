"""Answers count, min and max of a query from the catalog, while Spark plans it, and plans the files that are left."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast, get_args

from penstock.ducklake.catalog.file_aggregates import FileAggregate, FileTotals, Function
from penstock.ducklake.catalog.file_pruning import Condition, keep_condition
from penstock.ducklake.catalog.visible_files import FileScope
from penstock.ducklake.reading.file_planner import FilePlanner
from penstock.errors import PenstockError
from penstock.spark.file_records import known_values

NOTHING_KNOWN = ""
_ANSWERED = "answered"  # the filter of a scan that leaves out the files of an answer: see CatalogFileIndex
_EVERY_FILE = Condition("1 = 1")


@dataclass(frozen=True)
class AnsweringPlanner:
    """Plans the files of one group, and tells what the catalog knows of aggregates over their rows."""

    planner: FilePlanner

    def __call__(self, filters: str) -> str:
        items = json.loads(filters)
        answered = [item[1] for item in items if item[0] == _ANSWERED]
        if not answered:
            return self.planner(filters)
        keep = self.planner.keep(json.dumps([item for item in items if item[0] != _ANSWERED]))
        conditions = [keep, *(_not(totals.files()) for totals in map(self._totals, answered) if totals)]
        sql = " AND ".join(condition.sql for condition in conditions)
        return self.planner.records(Condition(sql, tuple(p for one in conditions for p in one.parameters)))

    def aggregates(self, question: str) -> str:
        """The number of files that must be read still, and the aggregates over all others, or nothing.

        Args:
            question: JSON of filters, and of functions: `[[...], [["count", ["column", "a"]], ["min", ...]]]`.
        """
        totals = self._totals(question)
        if totals is None:
            return NOTHING_KNOWN
        keep = self.planner.keep(json.dumps(json.loads(question)[0]))
        try:
            known, left, *found = self.planner.scope.total(self.planner.group, totals.query, keep)
        except PenstockError:
            return NOTHING_KNOWN  # the scan will say it, if there is one
        if left and not known:
            return NOTHING_KNOWN
        try:
            values = [one.value(value) for one, value in zip(totals.aggregates, found, strict=True)]
        except ValueError:
            return NOTHING_KNOWN
        return known_values([str(int(left or 0)), *values])

    def _totals(self, question: str) -> FileTotals | None:
        """The aggregates over the files that hold only rows that pass the filters; None where nothing is known."""
        scope, group = self.planner.scope, self.planner.group
        plain = not (group.deleted or group.partial or group.foreign or group.is_of_others)
        if type(scope) is not FileScope or not plain or self.planner.files is not None:
            return None
        filters, functions = json.loads(question)
        asked = [self._asked(function, self.planner.own_names(argument)) for function, argument in functions]
        aggregates = tuple(one for one in asked if one is not None and one.is_told(scope.database.dialect))
        covered = self._covered(filters)
        if covered is None or len(aggregates) < len(asked):
            return None
        totals = FileTotals(aggregates, covered, scope.table_id, scope.database.dialect, scope.seen)
        return totals if totals.is_feasible else None

    def _asked(self, function: str, argument: Any) -> FileAggregate | None:
        if function not in get_args(Function):
            return None
        match argument:
            case ["literal", _, value] if value is not None:
                return FileAggregate(cast(Function, function), None)
            case ["column", name]:
                found = next((column for column in self.planner.columns if column.name == name), None)
                return FileAggregate(cast(Function, function), found) if found else None
        return None

    def _covered(self, filters: Sequence[Any]) -> Condition | None:
        """The condition for files without a row that a filter is false or NULL for; None where there are none such."""
        if not filters:
            return _EVERY_FILE
        all_true = ["and", *filters]
        prunings = self.planner.prunings(json.dumps([["or", ["not", all_true], ["isnull", all_true]]]))
        return _not(keep_condition(prunings)) if prunings else None


def _not(condition: Condition) -> Condition:
    return Condition(f"NOT ({condition.sql})", condition.parameters)
