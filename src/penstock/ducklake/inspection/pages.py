"""Defines a page of a long list: the databases sort and cut it, so that a table of any size shows its first lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from penstock.errors import InvalidError

T = TypeVar("T")


@dataclass(frozen=True)
class Page(Generic[T]):
    """Some items of a list that has `total` of them; the first of these is the list's `offset`-th, counted from 0."""

    items: tuple[T, ...]
    total: int
    offset: int = 0


@dataclass(frozen=True)
class Window:
    """Which part of a list is wanted, and in what order."""

    order: str
    descending: bool
    offset: int
    limit: int

    def sql(self, keys: Mapping[str, tuple[str, ...]], last: str) -> str:
        """ORDER BY and LIMIT, by the expressions that each order means; `last` settles what these leave open.

        NULL comes before all values: databases differ in that.
        """
        if self.order not in keys:
            raise InvalidError(f"there is no order {self.order!r}; give one of {', '.join(keys)}")
        if self.offset < 0 or self.limit < 0:
            raise InvalidError(f"a page cannot begin at {self.offset} or hold {self.limit} lines; give numbers from 0")
        way = " DESC" if self.descending else ""
        by = [
            part for key in keys[self.order] for part in (f"CASE WHEN {key} IS NULL THEN 0 ELSE 1 END{way}", key + way)
        ]
        return f"ORDER BY {', '.join([*by, last])} LIMIT {int(self.limit)} OFFSET {int(self.offset)}"
