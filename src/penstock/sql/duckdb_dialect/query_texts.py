"""Texts of queries that stand inside others: their columns are c0, c1 and so on."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from penstock.sql.duckdb_dialect.bound_types import BoundType, Node
from penstock.sql.duckdb_dialect.expressions import Expressions


@dataclass(frozen=True)
class Rows:
    """A query, and how many columns it has."""

    sql: str
    width: int


class Plan(Protocol):
    """What writes the operators of a plan."""

    @property
    def expressions(self) -> Expressions:
        """What writes its expressions."""

    def rows(self, node: Node, true: Collection[int] = ()) -> Rows:
        """The query of an operator. Rows where the columns `true` are not may be missing from it."""

    def child(self, node: Node, place: int = 0, true: Collection[int] = ()) -> tuple[Rows, str, list[str]]:
        """A child's query, a name for it, and its columns by that name."""

    def alias(self) -> str:
        """A name that nothing else in the query has."""

    def standing_for(self, rows: Rows) -> AbstractContextManager[None]:
        """Let the DELIM_GETs inside stand for rows."""


def columns_of(name: str, width: int) -> list[str]:
    """The columns of a query by its name."""
    return [f"{name}.c{place}" for place in range(width)]


def selected(texts: Sequence[str]) -> str:
    """A select list that names its columns by their places."""
    return f"SELECT {', '.join(f'{value} AS c{place}' for place, value in enumerate(texts)) or '1 AS c0'}"


def exploded(lists: Sequence[str], elements: Sequence[BoundType]) -> str:
    """Rows of lists side by side; the shorter ones are filled with NULLs."""
    if len(lists) == 1:
        return f"explode({lists[0]}) u AS e"
    filled = ", ".join(f"coalesce({one}, array())" for one in lists)
    fields = ", ".join(f"e{place}: {kind.spark}" for place, kind in enumerate(elements))
    return f"explode(CAST(arrays_zip({filled}) AS ARRAY<STRUCT<{fields}>>)) u AS e"
