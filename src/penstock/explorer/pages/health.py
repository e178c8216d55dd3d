"""What is wrong or slow in the lake, and what mends it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from penstock.ducklake.inspection.health import lake_health
from penstock.explorer.asked import Asked
from penstock.explorer.rendering import Explorer


def findings(explorer: Explorer, asked: Asked, request: Request) -> Response:
    """The findings of `penstock doctor`, the worst first; the object store is asked only where that is wanted."""
    store = asked.choice("store", ("no", "yes")) == "yes"
    with explorer.source.opened(asked.version) as view:
        if store:
            view.use_store()
        found = lake_health(view.catalog, view.at, store=store)
        return explorer.page("health.html", asked, view, findings=found, store=store)
