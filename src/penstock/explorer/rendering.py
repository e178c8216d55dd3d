"""Makes pages of templates. All text from a lake goes through autoescape, and shows what cannot be seen."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response

from penstock.ducklake.catalog import objects
from penstock.ducklake.model.objects import TableInfo
from penstock.errors import NotFoundError
from penstock.explorer import texts
from penstock.explorer.asked import Asked
from penstock.explorer.lake_source import LakeSource, View
from penstock.explorer.queries import Queries

_PICTURES = 200
_DARK = "dark"
_WIDE, _NARROW = 1080, 300


@dataclass(frozen=True)
class Theme:
    """How a picture is to look: on a dark page or a light one, and how wide."""

    dark: bool = False
    width: int = _WIDE

    @property
    def is_narrow(self) -> bool:
        """Whether there is little room for names."""
        return self.width == _NARROW

    @classmethod
    def asked(cls, asked: Asked) -> Theme:
        """By the parameters that the template `picture` gives an address."""
        return cls(asked.text("theme") == _DARK, _NARROW if asked.text("narrow") else _WIDE)


@dataclass
class Explorer:
    """What the pages share: the lake, what runs queries, and the pictures that were drawn last."""

    source: LakeSource
    queries: Queries
    _pictures: OrderedDict[Any, str] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def page(
        self, template: str, asked: Asked, view: View, *, table: TableInfo | None = None, **shown: Any
    ) -> Response:
        """A page about the lake as it is looked at, or about one of its tables."""
        here = f"/tables/{table.id}" if table else "/"
        return HTMLResponse(self._text(template, asked, view=view, table=table, here=here, **shown))

    def failed(self, asked: Asked, reason: str, status: int) -> Response:
        """The page of an error."""
        return HTMLResponse(self._text("error.html", asked, view=None, reason=reason, status=status), status)

    def _text(self, template: str, asked: Asked, **shown: Any) -> str:
        page = _templates().get_template(template)
        return page.render(asked=asked, source=str(self.source), engine=self.queries.engine, **shown)

    def picture(self, key: Any, draw: Callable[[], str]) -> Response:
        """A picture, drawn once as long as it is remembered; `key` is all that it shows."""
        with self._lock:  # to draw takes a library that draws one at a time
            found = self._pictures.pop(key, None) or draw()
            self._pictures[key] = found
            while len(self._pictures) > _PICTURES:
                self._pictures.popitem(last=False)
        return Response(found, media_type="image/svg+xml")


def table_of(view: View, number: int) -> TableInfo:
    """A table by its id, which stays the same under other names and at other snapshots."""
    found = objects.tables(view.shown.database, view.at, view.shown.data_path)
    for table in found:
        if table.id == number:
            return table
    raise NotFoundError(f"there is no table number {number} at snapshot {view.snapshot.id}")


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("penstock.explorer"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        visible=texts.visible, shortened=texts.shortened, number=texts.number, size=texts.size, moment=texts.moment
    )
    environment.globals.update(plural=texts.plural, share=texts.share)
    return environment
