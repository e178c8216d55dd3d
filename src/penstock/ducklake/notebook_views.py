"""Writes what notebooks show of a lake, of a table and of findings: from the catalog, without a Spark job."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.ducklake.attachment import Attachment
from penstock.ducklake.catalog.location import redact
from penstock.ducklake.catalog.objects import column_comments, column_versions, columns_at, find_table, views
from penstock.ducklake.inspection.findings import Finding
from penstock.ducklake.inspection.tables import TableSummary, table_summaries, table_summary
from penstock.ducklake.model.column_defaults import has_default
from penstock.ducklake.transaction import Shown
from penstock.markup import card, facts, note, table
from penstock.schema.columns import Column
from penstock.storage.duckdb_sql import duckdb_type
from penstock.storage.paths import shown_url
from penstock.texts import size_text

_MOST_TABLES, _MOST_COLUMNS = 30, 100


def lake_html(attachment: Attachment) -> str:
    """A lake, with its first tables."""
    shown = attachment.shown()
    with shown.database.consistent():
        tables = table_summaries(shown)
        known = {
            "data path": redact(shown_url(shown.data_path)),
            "snapshot": _snapshot(attachment, shown),
            "tables": len(tables),
            "views": len(views(shown.database, shown.at, shown.data_path)) or None,
            "rows": sum(one.rows for one in tables),
            "files": sum(one.file_count for one in tables),
            "size": size_text(sum(one.file_bytes for one in tables)),
        }
    rows = [
        (one.full_name, one.rows, one.file_count, size_text(one.file_bytes), ", ".join(one.partitioned_by), one.comment)
        for one in tables[:_MOST_TABLES]
    ]
    listed = table(("table", "rows", "files", "size", "partitioned by", "comment"), rows) if rows else ""
    left = len(tables) - len(rows)
    more = note(f"and {left:,} more: lake.tables() lists all of them") if left else ""
    return card(f"Lake {attachment.catalog.database.location}", facts(known), listed, more)


def table_html(attachment: Attachment, schema: str, name: str) -> str:
    """A table, with its columns."""
    shown = attachment.shown()
    with shown.database.consistent():
        info = find_table(shown.database, shown.at, shown.data_path, schema, name)
        known = _facts(table_summary(shown, info), _snapshot(attachment, shown))
        columns = columns_at(column_versions(shown.database, info.id), shown.at)
        comments = column_comments(shown.database, shown.at, info.id)
    rows = [_described(column, comments.get(column.id)) for column in columns[:_MOST_COLUMNS]]
    left = len(columns) - len(rows)
    more = note(f"and {left:,} more columns") if left else ""
    title = f"Table {info.full_name} of {attachment.catalog.database.location}"
    return card(title, facts(known), table(("column", "type", "NULL", "default", "comment"), rows), more)


def findings_html(findings: Sequence[Finding]) -> str:
    """What a look at a lake's health has found."""
    rows = [
        (one.severity, one.check, f"{one.schema}.{one.table}" if one.table else None, one.message, one.verb)
        for one in findings
    ]
    return card("Health", table(("severity", "check", "table", "what", "what mends it"), rows))


def _facts(of: TableSummary, snapshot: str) -> dict[str, object]:
    return {
        "comment": of.comment,
        "rows": of.rows,
        "kept in the catalog": of.inlined_rows or None,
        "files": of.file_count,
        "size": size_text(of.file_bytes),
        "deleted rows": of.deleted_rows or None,
        "partitioned by": ", ".join(of.partitioned_by),
        "sorted by": ", ".join(of.sorted_by),
        "snapshot": snapshot,
    }


def _described(column: Column, comment: str | None) -> tuple[object, ...]:
    default = column.default_value if has_default(column) else None
    return column.name, duckdb_type(column), "yes" if column.nulls_allowed else "no", default, comment


def _snapshot(attachment: Attachment, shown: Shown) -> str:
    if attachment.in_transaction:
        return f"{shown.at.version}, and what this transaction has staged"
    snapshot = attachment.current_snapshot()
    return f"{snapshot.id} of {snapshot.time:%Y-%m-%d %H:%M:%S} UTC"
