"""The first page: what the lake is, and its tables, views, macros and options."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from penstock.ducklake.catalog import objects
from penstock.ducklake.catalog.location import redact
from penstock.ducklake.inspection.tables import TableSummary, lake_summary, table_summaries
from penstock.explorer.asked import Asked, Pager
from penstock.explorer.rendering import Explorer

_TABLES, _OTHERS = 100, 50
_ORDERS = ("name", "rows", "files", "size")
_BIGGEST_FIRST = {
    "rows": lambda table: -table.rows,
    "files": lambda table: -table.file_count,
    "size": lambda table: -table.file_bytes,
}


def overview(explorer: Explorer, asked: Asked, request: Request) -> Response:
    """The lake."""
    with explorer.source.opened(asked.version) as view:
        given = (view.shown.database, view.at, view.shown.data_path)
        order = asked.choice("order", _ORDERS)
        found = [table for table in table_summaries(view.shown) if _is_found(table, asked.text("find"))]
        if order in _BIGGEST_FIRST:
            found.sort(key=_BIGGEST_FIRST[order])
        first = asked.offset(_TABLES)
        options = [(one.name, redact(one.value), one.scope, one.scope_id) for one in view.catalog.options()]
        return explorer.page(
            "lake.html", asked, view,
            summary=lake_summary(view.catalog, view.at, view.newest), schemas=objects.schemas(*given),
            tables=found[first : first + _TABLES], pager=Pager(asked.page, _TABLES, len(found)), order=order,
            views=objects.views(*given)[:_OTHERS], macros=objects.macros(*given)[:_OTHERS], options=options,
        )  # fmt: skip


def _is_found(table: TableSummary, text: str) -> bool:
    return text.lower() in table.full_name.lower()
