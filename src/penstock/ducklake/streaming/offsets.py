"""Says how far a stream out of a table has come, and what lies between two such places."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.errors import InvalidError

BEFORE_ALL_ROWS = -1


@dataclass(frozen=True)
class Offset:
    """A place in the history of a table: everything up to it has been given.

    That is all that the snapshots until `snapshot` did, if `row` is None; else of the last of them only the rows whose
    ids are at most `row`. What an `initial` snapshot did is to show the whole table.
    """

    table: int
    snapshot: int
    row: int | None = None
    initial: bool = False

    @property
    def json(self) -> str:
        """The text that Spark keeps in the checkpoint."""
        told: dict[str, object] = {"table": self.table, "snapshot": self.snapshot}
        told |= {} if self.row is None else {"row": self.row}
        return json.dumps(told | ({"initial": True} if self.initial else {}))

    @staticmethod
    def of(text: str) -> Offset:
        """Reads the text of a checkpoint."""
        try:
            found = json.loads(text)
            return Offset(int(found["table"]), int(found["snapshot"]), found.get("row"), found.get("initial", False))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InvalidError(
                f"{text!r} is no offset of a lake's table: the checkpoint is of a stream from elsewhere; take a new one"
            ) from None


@dataclass(frozen=True)
class Piece:
    """Rows of a stream that are read in one way: of the snapshots from `first` to `last`, of some row ids.

    Those whose ids are greater than `after` and at most `until`, where these are given. `initial` is the whole table as
    `last` shows it.
    """

    first: int
    last: int
    after: int | None = None
    until: int | None = None
    initial: bool = False

    @property
    def is_bounded(self) -> bool:
        """Whether some row ids are left out."""
        return self.until is not None or (self.after is not None and self.after != BEFORE_ALL_ROWS)


def pieces(start: Offset, end: Offset) -> Iterator[Piece]:
    """What lies between two offsets, in order and without an overlap.

    The start of a stream that begins with the table as it is, is an initial offset before the first row: see `before`.
    Where that snapshot was expired on the way, the rest is of a later one, which is initial too.
    """
    if start.row is not None and (start.snapshot == end.snapshot or end.initial):
        yield Piece(end.snapshot, end.snapshot, start.row, end.row, start.initial)
        return
    if start.row is not None:
        yield Piece(start.snapshot, start.snapshot, start.row, None, start.initial)
    whole = end.snapshot if end.row is None else end.snapshot - 1
    if whole > start.snapshot:
        yield Piece(start.snapshot + 1, whole)
    if end.row is not None:
        yield Piece(end.snapshot, end.snapshot, None, end.row)


def before(table: int, snapshot: int) -> Offset:
    """Where a stream begins that gives a snapshot's whole table first."""
    return Offset(table, snapshot, BEFORE_ALL_ROWS, True)


@dataclass(frozen=True)
class RowSpan:
    """How many rows a snapshot changed whose ids are from `first` to `last`, as far as the catalog can tell."""

    first: int
    last: int
    rows: int

    def upto(self, after: int, until: int) -> float:
        """About how many have ids greater than `after` and at most `until`."""
        held = min(until, self.last) - max(after, self.first - 1)
        return self.rows * max(held, 0) / (self.last - self.first + 1)


def cut(spans: Sequence[RowSpan], after: int, most: int) -> int | None:
    """The row id up to which there are about `most` rows more; None where all that are left are not more than that."""
    if not spans or sum(span.upto(after, span.last) for span in spans) <= most:
        return None
    low, high = after + 1, max(span.last for span in spans)  # at least one id: a stream has to get on
    while low < high:
        middle = (low + high + 1) // 2
        if sum(span.upto(after, middle) for span in spans) <= most:
            low = middle
        else:
            high = middle - 1
    return low
