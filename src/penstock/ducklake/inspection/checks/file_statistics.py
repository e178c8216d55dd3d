"""Finds files without statistics, which no filter leaves out, and tells by what each of them gets some."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

from penstock.ducklake.catalog.compactable_files import compactable_table
from penstock.ducklake.catalog.file_bins import SizeLimits, merge_bins
from penstock.ducklake.inspection import remedies
from penstock.ducklake.inspection.checks.small_files import target_size
from penstock.ducklake.inspection.findings import Examined, Finding, counted, finding, sized
from penstock.ducklake.inspection.remedies import Remedy
from penstock.ducklake.model.objects import TableInfo

CHECK = "files without statistics"
_ALONE = (
    "; no maintenance writes them anew, since each is alone or as large as files are meant to be. An UPDATE that sets "
    "a column to itself does, of every row of the table, and the change feed tells it"
)


def check(lake: Examined) -> Iterator[Finding]:
    """Advice for the files of each table of which the catalog knows nothing but their size, by what mends them."""
    untold = _untold(lake)
    for table in lake.tables:
        if table.id in untold:
            yield from _advice(lake, table, untold[table.id])
    if not any(table.id in untold for table in lake.tables):
        yield finding(CHECK, "fine", "every file has statistics")


def _untold(lake: Examined) -> Mapping[int, Mapping[int, int]]:
    """The sizes of such files by their ids, of each table."""
    sql = f"""SELECT max(table_id), id, max(size) FROM (
                  SELECT data_file_id AS id, table_id, coalesce(file_size_bytes, 0) AS size, 1 AS shown, 0 AS told
                  FROM ducklake_data_file WHERE {lake.at.visible()} AND coalesce(record_count, 1) > 0
                  UNION ALL
                  SELECT data_file_id, table_id, 0, 0, 1 FROM ducklake_file_column_stats
              ) every GROUP BY id HAVING max(shown) = 1 AND max(told) = 0"""
    found: dict[int, dict[int, int]] = defaultdict(dict)
    for table_id, file_id, size in lake.database.query(sql):
        found[table_id][file_id] = int(size)
    return found


def _advice(lake: Examined, table: TableInfo, untold: Mapping[int, int]) -> Iterator[Finding]:
    compactable = compactable_table(lake.database, table)
    bins = merge_bins(compactable.files, compactable.history, SizeLimits(target_size(lake, table)))
    merged = {file.id for each in bins for file in each.files} & untold.keys()
    rewritten = {file.id for file in compactable.files if file.delete_count} & untold.keys()
    alone = untold.keys() - merged - rewritten
    if merged:
        yield _finding(table, untold, merged, remedies.merge(table))
    if rewritten:
        yield _finding(table, untold, rewritten, remedies.rewrite(table, 0.0), "; rows of them are deleted")
    if alone:
        yield _finding(table, untold, alone, None, _ALONE)


def _finding(
    table: TableInfo, untold: Mapping[int, int], files: Collection[int], remedy: Remedy | None, more: str = ""
) -> Finding:
    size = sum(untold[file] for file in files)
    message = f"{counted(len(files), 'file')} of {sized(size)} have no statistics: every query reads them{more}"
    return finding(CHECK, "advice", message, {"files": len(files), "bytes": size}, table=table, remedy=remedy)
