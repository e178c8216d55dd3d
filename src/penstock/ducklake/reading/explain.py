"""Tells which data files a predicate prunes, and by what."""

from __future__ import annotations

from collections import Counter

from penstock.ducklake.model.files import FileGroup
from penstock.ducklake.reading.pushed_filters import pushed_filters
from penstock.ducklake.reading.table_scan import TableContents, TableScan
from penstock.spark.explanation import Explanation


def explain(scan: TableScan, contents: TableContents, predicate: str) -> Explanation:
    """Tell which data files a predicate prunes.

    Spark plans the query, and the catalog counts what each of the filters that it pushes does.
    """
    files = kept = 0
    reasons: Counter[str] = Counter()
    for group in contents.groups:
        group_kept, group_reasons = _group(scan, group, contents, predicate)
        files += group.file_count
        kept += group_kept
        reasons.update(group_reasons)
    return Explanation(predicate, files, kept, {reason: count for reason, count in reasons.items() if count})


def _group(scan: TableScan, group: FileGroup, contents: TableContents, predicate: str) -> tuple[int, dict[str, int]]:
    planner, filters = pushed_filters(scan, group, contents, predicate)[0]
    return planner.counts(filters)
