"""What a filter prunes: the files that it leaves out, and by what."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from penstock.ducklake.inspection.tables import table_summary
from penstock.errors import InvalidError
from penstock.explorer import pictures
from penstock.explorer.asked import Asked, Pager
from penstock.explorer.pruned_files import pruned_files
from penstock.explorer.rendering import Explorer, Theme, table_of

_FILES = 50


def filtered(explorer: Explorer, asked: Asked, request: Request) -> Response:
    """A filter and the files that are read for it."""
    predicate = asked.text("q")
    with explorer.source.opened(asked.version) as view:
        table = table_of(view, request.path_params["table"])
        found, reason = None, None
        try:
            found = pruned_files(view.shown, table, predicate, asked.offset(_FILES), _FILES) if predicate else None
        except InvalidError as error:
            reason = explorer.source.without_secrets(str(error))
        return explorer.page(
            "filter.html", asked, view, table=table, summary=table_summary(view.shown, table), predicate=predicate,
            found=found, reason=reason, pager=Pager(asked.page, _FILES, found.kept.files if found else 0),
        )  # fmt: skip


def picture(explorer: Explorer, asked: Asked, request: Request) -> Response:
    """The same as a picture."""
    with explorer.source.opened(asked.version) as view:
        table = table_of(view, request.path_params["table"])
        found = pruned_files(view.shown, table, asked.text("q"), 0, 0)
    theme = Theme.asked(asked)
    shown = (found.all, found.kept, found.reasons, found.strips)
    return explorer.picture(("filter", theme, shown), lambda: pictures.pruning(found, theme))
