"""The box for read-only SQL."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from penstock.ducklake.catalog import objects
from penstock.errors import InvalidError, UnsupportedError
from penstock.explorer.asked import Asked
from penstock.explorer.rendering import Explorer

_NAMES = 30


def box(explorer: Explorer, asked: Asked, request: Request) -> Response:
    """A query and its first rows, or what is wrong with it."""
    sql = asked.text("q")
    with explorer.source.opened(asked.version) as view:
        tables = objects.tables(view.shown.database, view.at, view.shown.data_path)[:_NAMES]
        found, reason = None, None
        try:
            found = explorer.queries.select(view, sql) if sql else None
        except (InvalidError, UnsupportedError) as error:
            reason = explorer.source.without_secrets(str(error))
        return explorer.page("sql.html", asked, view, sql=sql, found=found, reason=reason, tables=tables)
