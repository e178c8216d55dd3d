"""Writes ids as the lists of SQL's IN, as many as one statement takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

_MOST_IDS = 5000  # in one statement


def id_lists(ids: Iterable[int]) -> Iterator[str]:
    """Lists of ids, in order: `1, 2, 5`; each for a statement of its own, and none where there is no id."""
    ordered = sorted(ids)
    for start in range(0, len(ordered), _MOST_IDS):
        yield ", ".join(map(str, ordered[start : start + _MOST_IDS]))
