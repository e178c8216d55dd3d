"""What pruning does for a predicate."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from pyspark.sql import Column as SparkColumn

from penstock.ducklake.catalog.file_pruning import Condition, keep
from penstock.ducklake.changing.change_job import TARGET_NAME
from penstock.ducklake.model.files import FileGroup
from penstock.ducklake.reading.file_planner import Planner
from penstock.ducklake.reading.table_scan import ROW_ID, Contents, Scan, row_id
from penstock.schema.columns import find_column


@dataclass(frozen=True)
class Explanation:
    """Data files of a table, or other units, kept and pruned for a predicate. One may be pruned for several reasons."""

    predicate: str
    files: int
    kept: int
    reasons: dict[str, int]
    unit: str = "files"

    @property
    def pruned(self) -> int:
        return self.files - self.kept

    def __str__(self) -> str:
        lines = [f"{self.predicate}: {self.kept} of {self.files} {self.unit} are read, {self.pruned} are pruned"]
        lines += [f"  {count} by {reason}" for reason, count in self.reasons.items()]
        return "\n".join(lines)


@dataclass
class _Recorder:
    """A planner that notes the filters Spark pushes and gives no files."""

    planner: Planner
    filters: list[str] = field(default_factory=list)

    def __call__(self, filters: str) -> str:
        self.filters.append(filters)
        return ""


def explain(scan: Scan, contents: Contents, predicate: str) -> Explanation:
    """Let Spark plan the query, take the filters it pushes, and count in the catalog what each of them does."""
    files = kept = 0
    reasons: Counter[str] = Counter()
    for group in contents.groups:
        group_kept, group_reasons = _group(scan, group, contents, predicate)
        files += group.file_count
        kept += group_kept
        reasons.update(group_reasons)
    return Explanation(predicate, files, kept, {reason: count for reason, count in reasons.items() if count})


def _group(scan: Scan, group: FileGroup, contents: Contents, predicate: str) -> tuple[int, dict[str, int]]:
    planner, filters = pushed_filters(scan, group, contents, predicate)[0]
    prunings = planner.prunings(filters)
    conditions = [keep(prunings), *(Condition(pruning.sql, pruning.parameters) for pruning in prunings)]
    kept, *counts = scan.scope.count(group, conditions)
    return kept, dict(zip((pruning.reason for pruning in prunings), counts, strict=True))


def pushed_filters(
    scan: Scan, group: FileGroup, contents: Contents, predicate: str | SparkColumn
) -> list[tuple[Planner, str]]:
    """For each branch of a group: its planner, and the filters that Spark gives it for a predicate. No file is read."""
    recorders: list[_Recorder] = []

    def recorded(planner: Planner) -> _Recorder:
        recorders.append(_Recorder(planner))
        return recorders[-1]

    found = []
    numbers = [row_id().alias(ROW_ID)] if scan.row_ids and find_column(scan.shape.columns, ROW_ID) is None else []
    for branch in scan.rows(group, contents, recorded):
        branch.frame.select(*branch.shown, *numbers).alias(TARGET_NAME).where(predicate).collect()
        recorder = next(recorder for recorder in recorders if recorder.planner is branch.planner)
        found.append((branch.planner, recorder.filters[-1] if recorder.filters else "[]"))
    return found
