"""Offsets of streams: whatever the limits, the batches between them give every row of every snapshot once, in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.ducklake.streaming.admission import NO_LIMITS, Limits, next_offset
from penstock.ducklake.streaming.offsets import Offset, Piece, RowSpan, before, cut, pieces
from penstock.errors import InvalidError

TABLE = 7


@dataclass(frozen=True)
class History:
    """What each snapshot did: the ids of the rows that it changed, and what the catalog thinks that these are."""

    shown: frozenset[int]
    changed: dict[int, frozenset[int]]
    told: dict[int, list[RowSpan]]
    first: int

    def rows(self, piece: Piece) -> list[tuple[int, int]]:
        found = []
        for snapshot in range(piece.first, piece.last + 1):
            ids = self.shown if piece.initial else self.changed.get(snapshot, frozenset())
            found += [(snapshot, row) for row in sorted(ids) if _within(row, piece)]
        return found

    def spans(self, snapshot: int, initial: bool) -> Sequence[RowSpan]:
        return self.told[self.first if initial else snapshot]


def _within(row: int, piece: Piece) -> bool:
    return (piece.after is None or row > piece.after) and (piece.until is None or row <= piece.until)


ids = st.frozensets(st.integers(0, 30), max_size=12)
spans = st.lists(
    st.builds(lambda first, length, rows: RowSpan(first, first + length, rows), st.integers(0, 30), st.integers(0, 12),
              st.integers(0, 12)),
    max_size=3,
)  # fmt: skip


@st.composite
def histories(draw: st.DrawFn) -> History:
    first = draw(st.integers(0, 3))
    changed = draw(st.dictionaries(st.integers(first + 1, first + 8), ids, max_size=6))
    told = {snapshot: draw(spans) for snapshot in (first, *changed)}
    return History(draw(ids), changed, told, first)


limits = st.builds(Limits, st.none() | st.integers(1, 3), st.none() | st.integers(1, 9))


@given(histories(), st.lists(limits, min_size=1, max_size=6), st.booleans())
def test_every_row_of_every_snapshot_comes_once(history: History, chosen: list[Limits], initial: bool) -> None:
    start = before(TABLE, history.first) if initial else Offset(TABLE, history.first)
    given_rows: list[tuple[int, int]] = []
    for step in range(500):
        end = next_offset(start, sorted(s for s in history.changed if s > start.snapshot), history.spans,
                          chosen[step % len(chosen)])  # fmt: skip
        if end == start:
            break
        end = Offset.of(end.json)
        given_rows += [row for piece in pieces(start, end) for row in history.rows(piece)]
        start = end
    else:
        pytest.fail("the stream does not come to an end")
    wanted = [(history.first, row) for row in sorted(history.shown)] if initial else []
    wanted += [(snapshot, row) for snapshot in sorted(history.changed) for row in sorted(history.changed[snapshot])]
    assert given_rows == wanted


@given(histories(), st.integers(1, 3))
def test_a_batch_has_no_more_snapshots_than_it_may(history: History, most: int) -> None:
    changed = sorted(history.changed)
    end = next_offset(Offset(TABLE, history.first), changed, history.spans, Limits(snapshots=most))
    assert sum(snapshot <= end.snapshot for snapshot in changed) == min(most, len(changed))


@given(st.integers(1, 2_000), st.integers(20, 500))
def test_rows_whose_ids_are_known_are_split_evenly(rows: int, most: int) -> None:
    told, after, sizes = [RowSpan(100, 100 + rows - 1, rows)], -1, []
    while (until := cut(told, after, most)) is not None:
        sizes.append(until - max(after, 99))
        after = until
    sizes.append(100 + rows - 1 - max(after, 99))
    assert sum(sizes) == rows
    assert set(sizes[:-1]) <= {most}
    assert 0 < sizes[-1] <= most


def test_without_limits_what_is_left_of_a_snapshot_goes_with_the_next_ones() -> None:
    start = Offset(TABLE, 3, row=10, initial=True)
    end = next_offset(start, [5, 9], lambda *_: (), NO_LIMITS)
    assert end == Offset(TABLE, 9)
    assert list(pieces(start, end)) == [Piece(3, 3, 10, None, True), Piece(4, 9)]


def test_what_is_left_of_a_beginning_may_be_of_a_later_snapshot() -> None:
    start, moved = Offset(TABLE, 3, row=10, initial=True), Offset(TABLE, 8, row=10, initial=True)
    part = next_offset(moved, (), lambda *_: [RowSpan(0, 29, 30)], Limits(rows=5))
    assert list(pieces(start, part)) == [Piece(8, 8, 10, 15, True)]
    rest = next_offset(replace(part, snapshot=9), (), lambda *_: [RowSpan(0, 29, 30)], NO_LIMITS)
    assert list(pieces(part, rest)) == [Piece(9, 9, 15, None, True)]
    assert list(pieces(rest, Offset(TABLE, 11))) == [Piece(10, 11)]


@pytest.mark.parametrize(
    "text", ["", "7", "[]", "null", '{"snapshot": 3}', '{"table": "x", "snapshot": 3}', '{"a": 1}']
)
def test_an_offset_of_another_source_is_refused(text: str) -> None:
    with pytest.raises(InvalidError, match="is no offset of a lake's table"):
        Offset.of(text)


@pytest.mark.parametrize("value", [0, -1, True, 1.5, "3"])
def test_a_limit_is_a_number_from_1(value: object) -> None:
    with pytest.raises(InvalidError, match="max_rows_per_trigger cannot be"):
        Limits(rows=value)  # type: ignore[arg-type]
