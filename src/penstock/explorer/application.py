"""The pages and who may see them, as one application that a server runs."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from penstock.errors import AttachError, CatalogError, InvalidError, NotFoundError, PenstockError, UnsupportedError
from penstock.explorer.access import Access, AccessGuard
from penstock.explorer.asked import Asked
from penstock.explorer.lake_source import LakeSource
from penstock.explorer.pages import health, lake, pruning, rows, snapshots, sql, tables
from penstock.explorer.queries import Queries
from penstock.explorer.readers import watched
from penstock.explorer.rendering import Explorer

_MOST_SAID = 500
_log = logging.getLogger("penstock.explorer")
_STATIC = Path(__file__).parent / "static"
_STATUS = {NotFoundError: 404, InvalidError: 400, AttachError: 503, CatalogError: 503, UnsupportedError: 501}
Page = Callable[[Explorer, Asked, Request], Response]


class _Id(IntegerConvertor):
    """A number that a catalog can have: Python reads none of some thousand digits."""

    regex = "[0-9]{1,18}"


register_url_convertor("id", _Id())
_PAGES: dict[str, Page] = {
    "/": lake.overview,
    "/snapshots": snapshots.of_lake,
    "/snapshots.svg": snapshots.picture_of_lake,
    "/health": health.findings,
    "/sql": sql.box,
    "/tables/{table:id}": tables.columns,
    "/tables/{table:id}/partitions": tables.partitions,
    "/tables/{table:id}/partitions.svg": tables.picture_of_partitions,
    "/tables/{table:id}/files": tables.files,
    "/tables/{table:id}/files.svg": tables.picture_of_files,
    "/tables/{table:id}/snapshots": snapshots.of_table,
    "/tables/{table:id}/snapshots.svg": snapshots.picture_of_table,
    "/tables/{table:id}/changes": rows.changes,
    "/tables/{table:id}/sample": rows.sample,
    "/tables/{table:id}/filter": pruning.filtered,
    "/tables/{table:id}/filter.svg": pruning.picture,
}


def application(source: LakeSource, access: Access, queries: Queries) -> ASGIApp:
    """The application of one lake; `queries` runs what reads rows."""
    explorer = Explorer(source, queries)
    routes = [Route(path, _answering(explorer, page)) for path, page in _PAGES.items()]
    pages = Starlette(
        routes=[*routes, Mount("/static", StaticFiles(directory=_STATIC))],
        exception_handlers={HTTPException: _not_there(explorer)},
    )
    return AccessGuard(pages, access)


def _answering(explorer: Explorer, page: Page) -> Callable[[Request], Awaitable[Response]]:
    """A page as Starlette calls it: made on a thread of its own, as long as somebody waits for it."""

    async def answer(request: Request) -> Response:
        async with watched(request):
            return await run_in_threadpool(_made, explorer, page, request)

    return answer


def _made(explorer: Explorer, page: Page, request: Request) -> Response:
    """A page, or the page of its error."""
    try:
        return page(explorer, Asked.of(request), request)
    except PenstockError as error:
        status = next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 500)
        return explorer.failed(Asked.of(request), explorer.source.without_secrets(str(error)), status)
    except Exception as error:
        # What a library says may hold an address with a password in it, which pages do not show.
        _log.error("%s: %s", request.scope["path"], explorer.source.without_secrets(repr(error))[:_MOST_SAID])
        _log.debug("where that was", exc_info=True)
        said = "Something went wrong that the explorer does not know of. The terminal that it runs in says more."
        return explorer.failed(Asked.of(request), said, 500)


def _not_there(explorer: Explorer) -> Callable[[Request, Exception], Response]:
    def answer(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        return explorer.failed(Asked.of(request), "There is no such page.", status)

    return answer
