"""Collects what an import did with each thing that it found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from penstock.ducklake.model.snapshot_changes import quoted_name

Action = Literal["brought", "changed", "left"]
REPORT = "object string, kind string, action string, rows long, note string"
Line = tuple[str, str, Action, int | None, str | None]


@dataclass
class ImportReport:
    """The lines of a report: what a thing is called, what it is, what was done, how many rows it has, and why."""

    lines: list[Line] = field(default_factory=list)

    def brought(self, name: tuple[str, ...], kind: str, rows: int | None = None, note: str | None = None) -> None:
        """Something is in the lake as it was."""
        self._add(name, kind, "brought", rows, note)

    def changed(self, name: tuple[str, ...], kind: str, note: str) -> None:
        """Something is in the lake as something else."""
        self._add(name, kind, "changed", None, note)

    def left(self, name: tuple[str, ...], kind: str, note: str) -> None:
        """Something is not in the lake."""
        self._add(name, kind, "left", None, note)

    def _add(self, name: tuple[str, ...], kind: str, action: Action, rows: int | None, note: str | None) -> None:
        self.lines.append((quoted_name(*name), kind, action, rows, note))
