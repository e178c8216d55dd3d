"""The snapshots of the lake, and those that did something to one table: what each did, when, and who."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from starlette.requests import Request
from starlette.responses import Response

from penstock.ducklake.inspection.history import SnapshotSummary, TableChange, snapshot_summaries, table_history
from penstock.ducklake.inspection.pages import Page
from penstock.ducklake.inspection.tables import table_summary
from penstock.ducklake.model.objects import TableInfo
from penstock.explorer import pictures
from penstock.explorer.asked import Asked, Pager
from penstock.explorer.lake_source import View
from penstock.explorer.pictures import Moment
from penstock.explorer.rendering import Explorer, Theme, table_of

_SNAPSHOTS = 50


def of_lake(explorer: Explorer, asked: Asked, request: Request) -> Response:
    """The lake's snapshots, newest first."""
    with explorer.source.opened(asked.version) as view:
        page = _of_lake(view, asked)
        return explorer.page(
            "snapshots.html", asked, view, snapshots=page.items, pager=_pager(page.offset, page.total),
            following=_following(page.items, page.offset, page.total),
        )  # fmt: skip


def picture_of_lake(explorer: Explorer, asked: Asked, request: Request) -> Response:
    """The same snapshots as a line in time."""
    with explorer.source.opened(asked.version) as view:
        page = _of_lake(view, asked)
    return _line(explorer, asked, page.items)


def of_table(explorer: Explorer, asked: Asked, request: Request) -> Response:
    """The snapshots that did something to a table, with the rows and files that came and went."""
    with explorer.source.opened(asked.version) as view:
        table = table_of(view, request.path_params["table"])
        page = _of_table(view, table, asked)
        return explorer.page(
            "history.html", asked, view, table=table, summary=table_summary(view.shown, table), changes=page.items,
            pager=_pager(page.offset, page.total), following=_following(page.items, page.offset, page.total),
        )  # fmt: skip


def picture_of_table(explorer: Explorer, asked: Asked, request: Request) -> Response:
    """The same snapshots as a line in time."""
    with explorer.source.opened(asked.version) as view:
        table = table_of(view, request.path_params["table"])
        page = _of_table(view, table, asked)
    return _line(explorer, asked, page.items)


def _of_lake(view: View, asked: Asked) -> Page[SnapshotSummary]:
    before, newest = asked.whole("before"), view.newest.id
    return snapshot_summaries(view.shown.database, limit=_SNAPSHOTS, before=before, newest=newest)


def _of_table(view: View, table: TableInfo, asked: Asked) -> Page[TableChange]:
    before, newest = asked.whole("before"), view.newest.id
    return table_history(view.shown.database, table, limit=_SNAPSHOTS, before=before, newest=newest)


def _line(explorer: Explorer, asked: Asked, changes: Iterable[SnapshotSummary | TableChange]) -> Response:
    moments = tuple(
        Moment(change.snapshot.time, kind)
        for change in changes
        for kind in dict.fromkeys(map(pictures.kind_of, change.actions or ("",)))
    )
    theme = Theme.asked(asked)
    return explorer.picture(("snapshots", theme, moments), lambda: pictures.snapshot_line(moments, theme))


def _pager(offset: int, total: int) -> Pager:
    return Pager(offset // _SNAPSHOTS + 1, _SNAPSHOTS, total)


def _following(items: Sequence[SnapshotSummary | TableChange], offset: int, total: int) -> int | None:
    """The snapshot before which the next page begins."""
    return items[-1].snapshot.id if items and offset + len(items) < total else None
