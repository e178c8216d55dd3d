"""Chooses how far the next batch of a stream goes, by the limits that its user set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from penstock.ducklake.streaming.offsets import Offset, RowSpan, cut
from penstock.errors import InvalidError

Spans = Callable[[int, bool], Sequence[RowSpan]]  # of a snapshot, and whether it is the initial one


@dataclass(frozen=True)
class Limits:
    """How much one batch may have. Rows are counted by the catalog, and only about right after a compaction."""

    snapshots: int | None = None
    rows: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("max_snapshots_per_trigger", self.snapshots), ("max_rows_per_trigger", self.rows)):
            whole = isinstance(value, int) and not isinstance(value, bool)
            if value is not None and not (whole and value > 0):
                raise InvalidError(f"{name} cannot be {value!r}; it takes a whole number from 1")


NO_LIMITS = Limits()


def next_offset(start: Offset, changed: Iterable[int], spans: Spans, limits: Limits) -> Offset:
    """Where a batch ends that begins at `start`, of the snapshots that changed something since; `start` for nothing.

    A snapshot with more rows than a batch may have is split by row ids, which stay what they are when files are
    compacted. What is left of one is a batch of its own.
    """
    whole = replace(start, row=None)
    if start.row is not None:
        until = None if limits.rows is None else cut(spans(start.snapshot, start.initial), start.row, limits.rows)
        if until is not None or limits != NO_LIMITS:
            return replace(start, row=until)
    end, taken, rows = whole, 0, 0
    for snapshot in changed:
        if taken == limits.snapshots:
            break
        if limits.rows is not None:
            found = spans(snapshot, False)
            count = sum(span.rows for span in found)
            if not taken and count > limits.rows:
                return Offset(start.table, snapshot, cut(found, -1, limits.rows))
            if taken and rows + count > limits.rows:
                break
            rows += count
        end, taken = Offset(start.table, snapshot), taken + 1
    return end
