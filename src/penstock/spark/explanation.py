"""Describes what pruning does for a predicate, as `explain` tells it."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.markup import card, note, share, table


@dataclass(frozen=True)
class Explanation:
    """Data files of a table, or other units, kept and pruned for a predicate. One may be pruned for several reasons."""

    predicate: str
    files: int
    kept: int
    reasons: dict[str, int]
    unit: str = "files"

    @property
    def pruned(self) -> int:
        """How many need not be read."""
        return self.files - self.kept

    def __str__(self) -> str:
        """The counts as a text for people."""
        lines = [f"{self.predicate}: {self.kept} of {self.files} {self.unit} are read, {self.pruned} are pruned"]
        lines += [f"  {count} by {reason}" for reason, count in self.reasons.items()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        part = self.kept / self.files if self.files else 0.0
        told = note(f"{self.kept:,} of {self.files:,} {self.unit} are read, {self.pruned:,} are pruned")
        reasons = table(("pruned by", self.unit), list(self.reasons.items())) if self.reasons else ""
        return card(self.predicate, told, share(part), reasons)
