"""Records the filters that Spark pushes to a scan, and finds the files that a predicate covers whole."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from pyspark.sql import Column as SparkColumn

_T = TypeVar("_T", bound=Hashable)


@dataclass
class FilterRecorder:
    """Stands in for a planner of files: records the filters that Spark pushes, and gives it nothing to read."""

    filters: list[Any] | None = None  # None where Spark does not ask, because no row can pass

    def __call__(self, filters: str) -> str:
        self.filters = row_filters(filters)
        return ""


def row_filters(text: str) -> list[Any]:
    """The filters of a planner's question, without the columns that the query needs."""
    return [item for item in json.loads(text) if item[0] != "columns"]


def needed_columns(text: str) -> frozenset[str] | None:
    """The names of the columns that a query needs, where Spark's plan tells them."""
    return next((frozenset(item[1:]) for item in json.loads(text) if item[0] == "columns"), None)


def covered_whole(predicate: SparkColumn, possible: Callable[[SparkColumn], Iterable[_T]]) -> list[_T]:
    """Finds the files that hold only rows that a predicate is true for, unread.

    Args:
        predicate: What is true for rows.
        possible: The files that can hold a row for which another predicate is true.

    Returns:
        Those that can hold a row that matches, and none that does not.
    """
    remaining = set(possible(~predicate | predicate.isNull()))
    return [file for file in possible(predicate) if file not in remaining]
