"""The pages of a table that show rows: a sample at a snapshot, and what a span of snapshots changed."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from penstock.ducklake.inspection.history import table_history
from penstock.ducklake.inspection.tables import table_summary
from penstock.errors import InvalidError
from penstock.explorer.asked import Asked, Pager
from penstock.explorer.rendering import Explorer, table_of

_ROWS = 50
_RECENT = 50  # snapshots that a span is chosen from


def sample(explorer: Explorer, asked: Asked, request: Request) -> Response:
    """Some rows at the snapshot that is looked at."""
    with explorer.source.opened(asked.version) as view:
        table = table_of(view, request.path_params["table"])
        summary = table_summary(view.shown, table)
        found = explorer.queries.sample(view, table, asked.offset(_ROWS), _ROWS)
        pager = Pager(asked.page, _ROWS, more=found.more)
        return explorer.page("sample.html", asked, view, table=table, summary=summary, found=found, pager=pager)


def changes(explorer: Explorer, asked: Asked, request: Request) -> Response:
    """The rows that changed between two snapshots; before two are chosen, the ones to choose from."""
    with explorer.source.opened(asked.version) as view:
        table = table_of(view, request.path_params["table"])
        recent = table_history(view.shown.database, table, limit=_RECENT, newest=view.newest.id).items
        first, last = asked.whole("from"), asked.whole("to")
        found = None
        if first is not None:
            last = view.snapshot.id if last is None else last
            view.check_shown(last)
            if first > last:
                raise InvalidError(
                    f"the changes from snapshot {first} to {last} go backwards; give the older one first"
                )
            found = explorer.queries.changes(view, table, first, last, asked.offset(_ROWS), _ROWS)
        return explorer.page(
            "changes.html", asked, view, table=table, summary=table_summary(view.shown, table), found=found,
            pager=Pager(asked.page, _ROWS, more=bool(found and found.more)), recent=recent,
            first=first if first is not None else min((one.snapshot.id for one in recent), default=0),
            last=last if last is not None else view.snapshot.id,
        )  # fmt: skip
