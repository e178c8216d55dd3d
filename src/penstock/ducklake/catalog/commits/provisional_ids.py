"""Hands out provisional ids for what is not committed yet, and translates them to the real ones of its snapshot."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from itertools import count
from typing import Any

# Staged numbers are far above any that a catalog hands out. Files begin where the lowest 32 bits cannot be those of a
# real file either: a scan joins deletes on them.
FIRST_STAGED = 2**61
_CATALOG, _FILES, _ROOM = 1, 2**31, 2**40


class StagedNumbers:
    """The numbers of one transaction; two transactions that show their own rows at once do not share any."""

    def __init__(self) -> None:
        self.start = FIRST_STAGED + secrets.randbelow(2**20) * _ROOM
        self.snapshot = self.start
        self.schema_version = self.start + _ROOM - 1
        self._catalog, self._files = count(_CATALOG), count(_FILES)
        self.catalog_count = self.file_count = 0

    def catalog_id(self) -> int:
        self.catalog_count += 1
        return self.start + next(self._catalog)

    def file_id(self) -> int:
        self.file_count += 1
        return self.start + next(self._files)


@dataclass(frozen=True)
class Numbering:
    """The real numbers of one attempt to commit."""

    staged: StagedNumbers = field(repr=False)
    snapshot: int
    schema_version: int
    first_catalog_id: int
    first_file_id: int

    def real(self, value: Any) -> Any:
        """A value of a catalog row, where a staged number gives way to its real one."""
        if not isinstance(value, int) or value < FIRST_STAGED:
            return value
        offset = value - self.staged.start
        if offset == 0:
            return self.snapshot
        if value == self.staged.schema_version:
            return self.schema_version
        if offset >= _FILES:
            return self.first_file_id + offset - _FILES
        return self.first_catalog_id + offset - _CATALOG


def is_staged(number: int) -> bool:
    return number >= FIRST_STAGED
