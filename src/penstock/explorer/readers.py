"""Tells the work for a page whether whoever asked for it is still there: a query for nobody is stopped."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.requests import Request

LOOK = 0.3  # seconds between two looks
_left: ContextVar[threading.Event | None] = ContextVar("left", default=None)


def has_left() -> bool:
    """Whether the browser that the page of this context is for has closed its connection."""
    left = _left.get()
    return left is not None and left.is_set()


@asynccontextmanager
async def watched(request: Request) -> AsyncIterator[None]:
    """Watches the reader of a page, for what is called in this context, on other threads too."""
    left = threading.Event()
    _left.set(left)
    watch = asyncio.create_task(_watch(request, left))
    try:
        yield
    finally:
        watch.cancel()
        with suppress(asyncio.CancelledError):
            await watch


async def _watch(request: Request, left: threading.Event) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    left.set()
