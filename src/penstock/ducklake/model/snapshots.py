"""Defines a snapshot: one commit of the lake."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from penstock.errors import InvalidError
from penstock.markup import card, facts


@dataclass(frozen=True)
class Snapshot:
    """A snapshot of the lake: when it was made, what it changed, and the numbers that the next one goes on from."""

    id: int
    time: datetime
    schema_version: int
    next_catalog_id: int
    next_file_id: int
    changes_made: str | None = None
    author: str | None = None
    commit_message: str | None = None
    commit_extra_info: str | None = None

    def _repr_html_(self) -> str:
        known = {
            "time": f"{self.time:%Y-%m-%d %H:%M:%S.%f} UTC",
            "changes": (self.changes_made or "").replace(",", ", "),
            "author": self.author,
            "message": self.commit_message,
            "extra info": self.commit_extra_info,
            "schema version": str(self.schema_version),
        }
        return card(f"Snapshot {self.id}", facts(known))


Version = int | Snapshot  # a snapshot by its number, or itself


def version_number(version: Version) -> int:
    """The number of a snapshot; InvalidError for what is none."""
    number = version.id if isinstance(version, Snapshot) else version
    if isinstance(number, bool) or not isinstance(number, int):
        raise InvalidError(f"{version!r} is no version; give the number of a snapshot, or a Snapshot")
    return number
