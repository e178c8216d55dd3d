"""Goes through the trees that DuckDB's parser makes of queries, as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Every node of a tree, however deep, each before what is in it."""
    waiting = [tree]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            yield item
            item = list(item.values())
        if isinstance(item, list):
            waiting += reversed(item)


def common_tables(tree: Any) -> frozenset[str]:
    """The names, in lower case, that a query gives to common tables (WITH)."""
    found = (entry["key"].lower() for node in nodes(tree) if "cte_map" in node for entry in node["cte_map"]["map"])
    return frozenset(found)
