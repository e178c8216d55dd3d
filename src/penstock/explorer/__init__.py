"""A page about a lake, served on this machine alone and read-only: `from penstock.explorer import serve`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

# The process that runs a query imports this package too, and needs no server.
if TYPE_CHECKING:
    from penstock.explorer.application import application
    from penstock.explorer.serving import serve

_HOMES = {"application": "application", "serve": "serving"}

__all__ = ["application", "serve"]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(f"penstock.explorer.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
