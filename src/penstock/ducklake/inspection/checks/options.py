"""Finds options that keep maintenance from doing what it is called for."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.ducklake.inspection import remedies
from penstock.ducklake.inspection.checks.deletes import rewrite_threshold
from penstock.ducklake.inspection.checks.small_files import is_compacted, target_size
from penstock.ducklake.inspection.findings import Examined, Finding, counted, finding, sized
from penstock.ducklake.inspection.thresholds import FILES_SAVED, LEAST_TARGET
from penstock.ducklake.model.objects import TableInfo
from penstock.ducklake.model.option_values import parse_size

CHECK = "options"


def check(lake: Examined) -> Iterator[Finding]:
    """Advice for each option that contradicts what maintenance is for; a problem where a verb fails by one."""
    found = [*_of_lake(lake), *(one for table in lake.tables for one in _of_table(lake, table))]
    yield from found
    if not found:
        yield finding(CHECK, "fine", "no option stands in the way of maintenance", {"set": len(lake.options)})


def _of_lake(lake: Examined) -> Iterator[Finding]:
    if any(option.name == "delete_older_than" and option.value == "" for option in lake.options):
        message = "delete_older_than is empty: cleanup_old_files and checkpoint fail where no age is given"
        yield finding(CHECK, "problem", message, remedy=remedies.set_option("delete_older_than", "2 days"))


def _of_table(lake: Examined, table: TableInfo) -> Iterator[Finding]:
    summary = lake.summaries[table.id]
    if not is_compacted(lake, table) and (summary.file_count > FILES_SAVED or summary.inlined_rows):
        message = (
            f"auto_compact is false: maintenance leaves its {counted(summary.file_count, 'file')} and "
            f"{counted(summary.inlined_rows, 'inlined row')} as they are, unless it names the table"
        )
        numbers = {"files": summary.file_count, "inlined_rows": summary.inlined_rows}
        yield finding(
            CHECK, "advice", message, numbers, table=table, remedy=remedies.set_option("auto_compact", "true", table)
        )
    target = target_size(lake, table)
    if target < LEAST_TARGET and summary.file_bytes > target:
        message = f"target_file_size is {sized(target)}: merges leave files that small"
        yield finding(
            CHECK, "advice", message, {"target_file_size": target}, table=table,
            remedy=remedies.set_option("target_file_size", "512MB", table),
        )  # fmt: skip
    group = parse_size(lake.option("parquet_row_group_size_bytes", table) or "")
    if group is not None and target < group < 2**62 and summary.file_count:
        message = f"parquet_row_group_size_bytes is {sized(group)}, more than a file of {sized(target)} holds"
        yield finding(
            CHECK, "advice", message, {"parquet_row_group_size_bytes": group, "target_file_size": target}, table=table,
            remedy=remedies.set_option("parquet_row_group_size_bytes", f"{max(1, target // 4)}B", table),
        )  # fmt: skip
    if rewrite_threshold(lake, table) == 0 and summary.deleted_rows:
        message = "rewrite_delete_threshold is 0: each rewrite writes every file anew that lost one row"
        numbers = {"deleted_rows": summary.deleted_rows}
        yield finding(
            CHECK,
            "advice",
            message,
            numbers,
            table=table,
            remedy=remedies.set_option("rewrite_delete_threshold", "0.95", table),
        )
