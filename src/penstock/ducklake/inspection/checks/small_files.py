"""Finds tables whose small files a merge would join."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.ducklake.catalog.compactable_files import compactable_table
from penstock.ducklake.catalog.file_bins import SizeLimits, merge_bins
from penstock.ducklake.inspection import remedies
from penstock.ducklake.inspection.findings import Examined, Finding, counted, finding, sized
from penstock.ducklake.inspection.thresholds import FILES_SAVED
from penstock.ducklake.model.objects import TableInfo
from penstock.ducklake.model.option_values import parse_boolean, parse_size
from penstock.errors import InvalidError

CHECK = "small files"


def check(lake: Examined) -> Iterator[Finding]:
    """Advice for each table of which a merge would leave some files less."""
    joined = saved = 0
    for table in lake.tables:
        summary = lake.summaries[table.id]
        if summary.file_count <= FILES_SAVED or _small(lake, table) <= FILES_SAVED:
            continue
        target = target_size(lake, table)
        found = compactable_table(lake.database, table)
        bins = merge_bins(found.files, found.history, SizeLimits(target))
        files = sum(len(each.files) for each in bins)
        if files - len(bins) < FILES_SAVED:
            continue
        joined, saved = joined + files, saved + files - len(bins)
        size = sum(file.size for each in bins for file in each.files)
        yield finding(
            CHECK,
            "advice",
            f"{counted(files, 'file')} of {sized(size / files)} on average would become {len(bins):,}, of up to "
            f"{sized(target)}",
            {"files": summary.file_count, "merged": files, "after": summary.file_count - files + len(bins),
             "bytes": size, "target_file_size": target},
            table=table,
            remedy=remedies.merge(table),
        )  # fmt: skip
    if not joined:
        files = sum(summary.file_count for summary in lake.summaries.values())
        yield finding(CHECK, "fine", f"no merge would join many of the {counted(files, 'file')}", {"files": files})


def target_size(lake: Examined, table: TableInfo | None = None) -> int:
    """The option `target_file_size`, in bytes."""
    text = lake.option("target_file_size", table) or ""
    size = parse_size(text)
    if size is None:
        raise InvalidError(f"option 'target_file_size' has the value {text!r}, which is not understood; set it again")
    return size


def is_compacted(lake: Examined, table: TableInfo) -> bool:
    """Whether maintenance takes a table that is not named."""
    return parse_boolean(lake.option("auto_compact", table) or "true") is not False


def _small(lake: Examined, table: TableInfo) -> int:
    """How many files are smaller than they are meant to be."""
    sql = f"""SELECT count(*) FROM ducklake_data_file
              WHERE table_id = ? AND {lake.at.visible()} AND coalesce(file_size_bytes, 0) < ?"""
    return int(lake.database.value(sql, [table.id, min(target_size(lake, table), 2**62)]))
