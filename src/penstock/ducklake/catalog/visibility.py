"""Says which of the catalog's rows a snapshot shows, also with what a transaction has staged on top of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class At:
    """A snapshot that is looked at, and on top of it what a transaction has staged and not committed.

    Staged rows carry `own`, a number that no snapshot has, as their begin or end.
    """

    version: int
    own: int | None = None

    def shows(self, begin: int, end: int | None) -> bool:
        """Whether rows with this `begin_snapshot` and `end_snapshot` are shown."""
        begun = begin <= self.version or begin == self.own
        return begun and (end is None or (end > self.version and end != self.own))

    def visible(self, alias: str = "") -> str:
        """SQL that is true for the rows that are shown, by their `begin_snapshot` and `end_snapshot`."""
        prefix = f"{alias}." if alias else ""
        begin, end = f"{prefix}begin_snapshot", f"{prefix}end_snapshot"
        if self.own is None:
            return f"({begin} <= {self.version} AND ({end} IS NULL OR {end} > {self.version}))"
        return (
            f"(({begin} <= {self.version} OR {begin} = {self.own}) "
            f"AND ({end} IS NULL OR ({end} > {self.version} AND {end} <> {self.own})))"
        )

    def begun(self, alias: str = "") -> str:
        """SQL that is true for rows that have a `begin_snapshot` alone and are shown."""
        begin = f"{alias}.begin_snapshot" if alias else "begin_snapshot"
        own = f" OR {begin} = {self.own}" if self.own is not None else ""
        return f"({begin} <= {self.version}{own})"
