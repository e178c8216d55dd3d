"""Finds tables that have lost many of the rows that their files still hold."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.ducklake.inspection import remedies
from penstock.ducklake.inspection.findings import Examined, Finding, counted, finding
from penstock.ducklake.inspection.live_files import deletes, shown_files
from penstock.ducklake.inspection.thresholds import DELETED_ROWS, DELETED_SHARE
from penstock.ducklake.model.objects import TableInfo
from penstock.ducklake.model.option_values import parse_threshold

CHECK = "deleted rows"


def check(lake: Examined) -> Iterator[Finding]:
    """Advice for each table with files that are due to be written anew, or with many deletes over all its files."""
    quiet = True
    for table in lake.tables:
        summary = lake.summaries[table.id]
        if not summary.deleted_rows:
            continue
        threshold = rewrite_threshold(lake, table)
        due, lost = _due(lake, table, threshold)
        held = summary.rows - summary.inlined_rows + summary.deleted_rows
        share = summary.deleted_rows / max(1, held)
        many = share >= DELETED_SHARE and summary.deleted_rows >= DELETED_ROWS
        if not due and not many:
            continue
        quiet = False
        numbers = {
            "deleted_rows": summary.deleted_rows, "rows": held, "share": round(share, 4),
            "delete_files": summary.delete_file_count, "due_files": due, "due_rows": lost,
            "rewrite_delete_threshold": threshold,
        }  # fmt: skip
        if due:
            message = f"{counted(due, 'file')} lost at least {threshold:.0%} of the rows"
            remedy = remedies.rewrite(table)
        else:
            message = (
                f"{share:.0%} of the rows in its files are deleted, and no file lost the {threshold:.0%} from which on "
                "it is written anew"
            )
            remedy = remedies.rewrite(table, DELETED_SHARE)
        yield finding(CHECK, "advice", message, numbers, table=table, remedy=remedy)
    if quiet:
        total = sum(summary.deleted_rows for summary in lake.summaries.values())
        yield finding(CHECK, "fine", f"{counted(total, 'row')} of files are deleted: few", {"deleted_rows": total})


def rewrite_threshold(lake: Examined, table: TableInfo) -> float:
    """The option `rewrite_delete_threshold`."""
    return parse_threshold(lake.option("rewrite_delete_threshold", table))


def _due(lake: Examined, table: TableInfo, threshold: float) -> tuple[int, int]:
    """The files that have lost so large a part of their rows, and how many rows that are."""
    held = "SELECT d.data_file_id AS id, coalesce(d.record_count, 0) AS held, 0 AS lost, 1 AS shown"
    parts = [f"{held} FROM {shown_files(lake.shown, table)}"]
    parts += [f"SELECT {file}, 0, {rows}, 0 FROM {source}" for file, rows, source in deletes(lake.shown, table)]
    files = f"""SELECT max(held) AS held, sum(lost) AS lost FROM ({" UNION ALL ".join(parts)}) told
                GROUP BY id HAVING max(shown) = 1"""
    sql = f"SELECT count(*), sum(lost) FROM ({files}) files WHERE lost > 0 AND lost >= {threshold!r} * held"
    [(count, lost)] = lake.database.query(sql)
    return int(count), int(lost or 0)
