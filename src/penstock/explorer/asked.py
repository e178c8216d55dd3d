"""What the address of a page says: which table, which snapshot, which part of a list. Everything shown is in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from starlette.requests import Request

from penstock.errors import InvalidError

_MOST = 2**62
_MOST_PAGES = 10**9


@dataclass(frozen=True)
class Asked:
    """The path and the parameters of an address."""

    path: str
    parameters: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, request: Request) -> Asked:
        """What a request asks for; of parameters that are given twice the last counts."""
        return cls(request.scope["path"], tuple(dict(request.query_params.multi_items()).items()))

    def text(self, name: str) -> str:
        """A text, without spaces around it; empty where there is none."""
        return dict(self.parameters).get(name, "").strip()

    def whole(self, name: str) -> int | None:
        """A whole number from 0 on; None where there is none, an InvalidError for something else."""
        given = self.text(name)
        if not given:
            return None
        if not (given.isascii() and given.isdigit()) or len(given) > 19 or int(given) > _MOST:
            raise InvalidError(f"{name}={given!r} is no number of anything; give a whole number")
        return int(given)

    def choice(self, name: str, choices: Sequence[str]) -> str:
        """One of some words, by default the first."""
        given = self.text(name) or choices[0]
        if given not in choices:
            raise InvalidError(f"{name}={given!r} is not one of {', '.join(choices)}")
        return given

    @property
    def page(self) -> int:
        """Which page of a list, from 1 on."""
        page = self.whole("page") or 1
        if page > _MOST_PAGES:
            raise InvalidError(f"page={page} is far beyond any list; go back to page 1")
        return page

    def offset(self, count: int) -> int:
        """Where that page begins, with so many lines on each."""
        return (self.page - 1) * count

    @property
    def version(self) -> int | None:
        """The snapshot that is looked at, where the address names one."""
        return self.whole("at")

    def link(self, path: str | None = None, **changed: object) -> str:
        """An address: this one with other parameters, or another page at the same snapshot."""
        kept = dict(self.parameters) if path is None else {k: v for k, v in self.parameters if k == "at"}
        given = {**kept, **{name: str(value) for name, value in changed.items() if value is not None}}
        for name, value in changed.items():
            if value is None:
                given.pop(name, None)
        return (path or self.path) + (f"?{urlencode(given)}" if given else "")

    def others(self, *names: str) -> list[tuple[str, str]]:
        """The parameters but those of some names, for the hidden fields of a form."""
        return [(name, value) for name, value in self.parameters if name not in names]


@dataclass(frozen=True)
class Pager:
    """Where a page stands in a list."""

    page: int
    size: int
    total: int | None = None  # None where nobody has counted
    more: bool = False

    @property
    def first(self) -> int:
        """The number of the first line, from 1 on."""
        return (self.page - 1) * self.size + 1

    @property
    def last_page(self) -> int | None:
        """The number of the last page, where the lines are counted."""
        return None if self.total is None else max(1, -(-self.total // self.size))

    @property
    def following(self) -> int | None:
        """The next page, if there is one."""
        last = self.last_page
        return self.page + 1 if (self.more if last is None else self.page < last) else None

    @property
    def previous(self) -> int | None:
        """The page before, if there is one."""
        return self.page - 1 if self.page > 1 else None
