"""Hands out provisional ids for what is not committed yet, and translates them to the real ones of its snapshot."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from itertools import count
from typing import Any

# Provisional ids are far above any that a catalog hands out. Files begin where the lowest 32 bits cannot be those of a
# real file either: a scan joins deletes on them.
FIRST_PROVISIONAL = 2**61
_CATALOG, _FILES, _ROOM = 1, 2**31, 2**40


class ProvisionalIds:
    """The provisional ids of one transaction; two that show their own rows at once do not share any."""

    def __init__(self) -> None:
        self.start = FIRST_PROVISIONAL + secrets.randbelow(2**20) * _ROOM
        self.snapshot = self.start
        self.schema_version = self.start + _ROOM - 1
        self._catalog, self._files = count(_CATALOG), count(_FILES)
        self.catalog_count = self.file_count = 0

    def catalog_id(self) -> int:
        """The next id of a schema, table, view, macro, partitioning or sort order."""
        self.catalog_count += 1
        return self.start + next(self._catalog)

    def file_id(self) -> int:
        """The next id of a data file, delete file or name mapping."""
        self.file_count += 1
        return self.start + next(self._files)


@dataclass(frozen=True)
class CommittedIds:
    """The ids that one attempt to commit gives in the place of provisional ones."""

    provisional: ProvisionalIds = field(repr=False)
    snapshot: int
    schema_version: int
    first_catalog_id: int
    first_file_id: int

    def real(self, value: Any) -> Any:
        """A value of a catalog row, where a provisional id gives way to the committed one."""
        if not isinstance(value, int) or value < FIRST_PROVISIONAL:
            return value
        offset = value - self.provisional.start
        if offset == 0:
            return self.snapshot
        if value == self.provisional.schema_version:
            return self.schema_version
        if offset >= _FILES:
            return self.first_file_id + offset - _FILES
        return self.first_catalog_id + offset - _CATALOG


def is_provisional(number: int) -> bool:
    """Whether an id belongs to something that is not committed yet."""
    return number >= FIRST_PROVISIONAL
