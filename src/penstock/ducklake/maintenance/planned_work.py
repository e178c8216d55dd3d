"""Tells what maintenance would do where its verbs cannot: files that would become one, rows that would be flushed."""

from __future__ import annotations

from collections.abc import Callable

from penstock.ducklake.attachment import Attachment
from penstock.ducklake.catalog.compactable_files import CompactableTable, compactable_table
from penstock.ducklake.catalog.file_bins import Bin, SizeLimits, merge_bins, rewrite_bins
from penstock.ducklake.inspection.tables import table_summary
from penstock.ducklake.maintenance.compacted_tables import compacted_tables
from penstock.ducklake.maintenance.compaction import Compacted
from penstock.ducklake.maintenance.inlined_flush import FlushedTable
from penstock.ducklake.model.option_values import parse_threshold
from penstock.ducklake.writing.file_options import file_options

Option = Callable[[str], str | None]


def planned_flush(attachment: Attachment, table: str | None, schema: str | None) -> list[FlushedTable]:
    """The tables whose inlined rows would be written to files."""
    shown = attachment.shown()
    summaries = [table_summary(shown, one) for one in compacted_tables(attachment, table, schema)]
    return [(one.schema, one.name, one.inlined_rows) for one in summaries if one.inlined_rows]


def planned_merges(attachment: Attachment, table: str | None, schema: str | None) -> list[Compacted]:
    """A line for each file that small ones would become."""

    def bins(found: CompactableTable, option: Option) -> list[Bin]:
        return merge_bins(found.files, found.history, SizeLimits(file_options(option).target_file_size))

    return _planned(attachment, table, schema, bins)


def planned_rewrites(attachment: Attachment, table: str | None, schema: str | None) -> list[Compacted]:
    """A line for each file that those with many deletes would become."""

    def bins(found: CompactableTable, option: Option) -> list[Bin]:
        threshold = parse_threshold(option("rewrite_delete_threshold"))
        return rewrite_bins(found.files, threshold, file_options(option).target_file_size, found.base)

    return _planned(attachment, table, schema, bins)


def _planned(
    attachment: Attachment, table: str | None, schema: str | None, bins: Callable[[CompactableTable, Option], list[Bin]]
) -> list[Compacted]:
    lines: list[Compacted] = []
    for info in compacted_tables(attachment, table, schema):
        found = compactable_table(attachment.catalog.database, info)

        def option(name: str, schema_id: int = info.schema.id, table_id: int = info.id) -> str | None:
            return attachment.option(name, schema_id, table_id)

        lines += [(info.schema.name, info.name, len(each.files), 1) for each in bins(found, option)]
    return lines
