"""A table as a stream: how far it can go, and the rows between two of its offsets."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from penstock.ducklake.attachment import Attachment
from penstock.ducklake.catalog.changed_files import snapshot_span
from penstock.ducklake.catalog.objects import column_versions, columns_at
from penstock.ducklake.catalog.row_history import (
    changed_spans,
    changing_snapshots,
    counting_snapshots,
    present_snapshots,
    shown_spans,
)
from penstock.ducklake.catalog.snapshots import find_snapshot, oldest_snapshot
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.catalog.visible_files import RowIdSpan
from penstock.ducklake.model.objects import TableInfo
from penstock.ducklake.reading.change_feed import ChangeFeed, Feed
from penstock.ducklake.reading.column_layout import shown_schema
from penstock.ducklake.reading.row_conversion import Reading
from penstock.ducklake.reading.table_scan import TableScan, table_scan
from penstock.ducklake.streaming.admission import NO_LIMITS, Limits, next_offset
from penstock.ducklake.streaming.offsets import BEFORE_ALL_ROWS, Offset, Piece, RowSpan, before, pieces
from penstock.ducklake.transaction import Shown
from penstock.errors import InvalidError, NotFoundError, StaleReadError, UnsupportedError
from penstock.schema.columns import Column
from penstock.spark.local_rows import empty_frame
from penstock.spark.workers import map_in_workers

FEED_COLUMNS = ("snapshot_id", "rowid", "change_type")
_FAR_BEHIND = 100  # snapshots that changed nothing here, after which a stream notes that it has passed them
_OWN = "_penstock_"  # and the place of a column, while a table's own may have the same names as the feed's
_OTHER = "_penstock_other_"


@dataclass(frozen=True)
class StreamOptions:
    """What a stream gives: from `start` on, which is the first snapshot whose changes count.

    Without one it begins with the table as it is.
    """

    start: int | None = None
    changes: bool = False
    limits: Limits = NO_LIMITS
    fail_on_data_loss: bool = True
    nanoseconds: bool = False


@dataclass(frozen=True)
class StreamedColumns:
    """The columns that a stream shows, and the snapshot that they are of; they keep their names and types."""

    columns: tuple[Column, ...]
    snapshot: int

    def check(self, now: Sequence[Column], snapshot: int, table: str) -> None:
        """Raise an UnsupportedError where a later snapshot lacks one of them, or has it in another type."""
        there = {item.id: item for column in now for item in column.walk()}
        for kept in (item for column in self.columns for item in column.walk()):
            found = there.get(kept.id)
            if found is None:
                raise UnsupportedError(
                    f"column {kept.name} of {table} was dropped by snapshot {snapshot} or before, and the stream shows "
                    "it; start the stream anew, without the column"
                )
            if found.type != kept.type:
                raise UnsupportedError(
                    f"column {kept.name} of {table} is {found.type} in snapshot {snapshot}, and the stream shows it as "
                    f"{kept.type}; start the stream anew"
                )


@dataclass(frozen=True)
class StreamDefinition:
    """A stream before it starts: a table with the columns that it had when the stream was asked for."""

    table: TableInfo
    shown: StreamedColumns
    options: StreamOptions


class TableStream:
    """The changes of one table, or its insertions, from snapshot to snapshot. Spark calls it from one thread at a time.

    Only what is committed counts, whatever transaction the thread that started the stream is in.
    """

    def __init__(self, attachment: Attachment, definition: StreamDefinition) -> None:
        self._attachment, self._table = attachment, definition.table
        self._shown, self._options = definition.shown, definition.options
        self._database = attachment.catalog.database
        self._until: int | None = None  # the last snapshot that a stream of what is there now gets to
        self._known: dict[int, bool] = {}  # snapshots that were looked at, and whether they changed the table
        self._lock = threading.RLock()

    @property
    def schema(self) -> T.StructType:
        """The columns."""
        own = shown_schema(self._shown.columns, Reading(self._options.nanoseconds))
        types = dict(zip(FEED_COLUMNS, (T.LongType(), T.LongType(), T.StringType()), strict=True))
        feed = [T.StructField(name, types[name]) for name in FEED_COLUMNS] if self._options.changes else []
        return T.StructType([*feed, *own.fields])

    def prepare_available_now(self) -> None:
        """From now on nothing counts that is committed later."""
        self._until = self._attachment.current_snapshot().id

    def newest(self) -> str:
        """The offset of the newest snapshot, for those who watch the stream."""
        return Offset(self._table.id, self._attachment.current_snapshot().id).json

    def latest(self, start: str | None, unlimited: bool) -> str | None:
        """Where the batch ends that begins at `start`; the same for no batch, or None where none was yet."""
        with self._lock, self._database.consistent():
            newest = self._until if self._until is not None else self._attachment.current_snapshot().id
            begin = self._first(newest) if start is None else self._offset(start)
            if self._is_lost(begin):
                return self._moved(begin, unlimited).json
            self._look_at(begin.snapshot, newest)
            changed = [s for s, is_changed in self._known.items() if is_changed and begin.snapshot < s <= newest]
            end = next_offset(begin, sorted(changed), self._spans, self._limits(unlimited))
            if end == begin and newest - begin.snapshot >= _FAR_BEHIND:
                end = Offset(self._table.id, newest)
        return None if start is None and end == begin else end.json

    def _limits(self, unlimited: bool) -> Limits:
        return NO_LIMITS if unlimited else self._options.limits

    def _is_lost(self, begin: Offset) -> bool:
        """Whether rows of the beginning are still to be given, and nobody can read it any more."""
        is_begun = begin.initial and begin.row is not None and not self._options.fail_on_data_loss
        return is_begun and find_snapshot(self._database, begin.snapshot) is None

    def _moved(self, begin: Offset, unlimited: bool) -> Offset:
        """The end of a batch that goes on with the whole table as the oldest snapshot shows it that is kept.

        Row ids stay, and new rows have greater ones: none comes that was given before.
        """
        kept = replace(begin, snapshot=oldest_snapshot(self._database, begin.snapshot))
        self._check_table(kept.snapshot)
        return next_offset(kept, (), self._spans, self._limits(unlimited))

    def batch(self, start: str | None, end: str) -> DataFrame:
        """The rows after one offset and up to another."""
        last = self._offset(end)
        if start is not None:
            first = self._offset(start)
        elif last.initial:
            first = before(last.table, last.snapshot)
        else:
            first = self._first(None)
        try:
            with self._lock, self._database.consistent():
                frames = [self._rows(piece) for piece in pieces(first, last)]
            return reduce(DataFrame.union, frames) if frames else empty_frame(self._attachment.spark, self.schema)
        except StaleReadError as error:
            # When a query starts again, Spark asks for the last batch that it has finished, and does not run it.
            return self._failing(str(error))

    def _failing(self, message: str) -> DataFrame:
        """Rows of the stream that fail when somebody runs them."""
        # Not an expression: Spark would fold it away with a filter that is false for what stands beside it.
        return map_in_workers(self._attachment.spark.range(1), _Failing(message), self.schema)

    def commit(self, end: str) -> None:
        """Forget what is needed only for rows up to an offset."""
        done = Offset.of(end).snapshot
        with self._lock:
            self._known = {snapshot: changed for snapshot, changed in self._known.items() if snapshot > done}

    def _first(self, newest: int | None) -> Offset:
        start = self._options.start
        if start is not None:
            return Offset(self._table.id, start - 1)
        if newest is None:
            raise InvalidError(
                f"the checkpoint of this stream of {self._table.full_name} began at a snapshot, and start is "
                '"initial" now; give the start that it had, or take a new checkpoint'
            )
        return before(self._table.id, newest)

    def _offset(self, text: str) -> Offset:
        found = Offset.of(text)
        if found.table != self._table.id:
            raise InvalidError(
                f"the checkpoint of this stream is of another table than {self._table.full_name}, which may have been "
                "dropped and made anew since; take a new checkpoint"
            )
        return found

    def _look_at(self, after: int, newest: int) -> None:
        """Note what the snapshots did that were not looked at yet."""
        after = max(after, max(self._known, default=after))
        if after >= newest:
            return
        self._check_table(newest)
        found = changing_snapshots(self._database, self._table.id, after, newest, deletes=self._options.changes)
        lost = _gaps(after + 1, newest, found)
        self._check_lost(lost)
        self._known |= {**found, **{last: True for _, last in lost}}  # rows of lost ones may still be there

    def _check_table(self, snapshot: int) -> None:
        sql = f"SELECT count(*) FROM ducklake_table WHERE table_id = ? AND {At(snapshot).visible()}"
        if not self._database.value(sql, [self._table.id]):
            raise NotFoundError(f"table {self._table.full_name} was dropped, and its stream ends")

    def _check_lost(self, lost: Sequence[tuple[int, int]]) -> None:
        if lost and self._options.fail_on_data_loss:
            first, last = lost[0][0], lost[-1][1]
            raise StaleReadError(
                f"snapshots {first} to {last} were expired before the stream of {self._table.full_name} read them: "
                "what they changed may be lost; start anew with a new checkpoint, or pass over them with "
                "failOnDataLoss=false (fail_on_data_loss=False)"
            )

    def _spans(self, snapshot: int, initial: bool) -> list[RowSpan]:
        database, table_id = self._database, self._table.id
        if initial:
            return [RowSpan(*span) for span in shown_spans(database, table_id, snapshot)]
        found = changed_spans(database, table_id, snapshot, deletes=self._options.changes)
        return [RowSpan(*span) for span in found]

    def _rows(self, piece: Piece) -> DataFrame:
        lost = piece.initial and find_snapshot(self._database, piece.last) is None
        if piece.initial and not piece.is_bounded and not lost and not self._options.changes:
            scan = self._scan(piece.last)
            return scan.frame(scan.contents())
        if not piece.initial:
            frame = self._changes(piece)
        else:
            frame = self._initial_from_kept(piece) if lost else self._initial(piece)
        names = frame.columns
        frame = _unnamed(frame, _OWN)
        row_id = F.col(f"{_OWN}1")
        if piece.is_bounded and piece.after is not None:
            frame = frame.where(row_id > piece.after)
        if piece.until is not None:
            frame = frame.where(row_id <= piece.until)
        if self._options.changes:
            return frame.toDF(*names)
        return frame.drop(f"{_OWN}0", f"{_OWN}1").toDF(*names[2:])

    def _limited(self, scan: TableScan, piece: Piece) -> TableScan:
        """The scan of those files alone that can have rows of a piece."""
        if not piece.is_bounded:
            return scan
        counted = counting_snapshots(self._database, self._table.id, piece.last)
        after = BEFORE_ALL_ROWS if piece.after is None else piece.after
        return replace(scan, scope=replace(scan.scope, row_ids=RowIdSpan(after, piece.until, counted)))

    def _initial_from_kept(self, piece: Piece) -> DataFrame:
        """What is left of a beginning that was expired: its rows in the oldest snapshot that is kept.

        That has rows of later snapshots too. Where the batches that follow give these, they are left out here.
        """
        if self._options.fail_on_data_loss:
            raise StaleReadError(
                f"snapshot {piece.last}, which the stream of {self._table.full_name} begins with, was expired before "
                "all of its rows were read; start anew with a new checkpoint, or go on with what the oldest snapshot "
                "shows that is kept, with failOnDataLoss=false (fail_on_data_loss=False)"
            )
        kept = oldest_snapshot(self._database, piece.last)
        frame = self._initial(replace(piece, first=kept, last=kept))
        if piece.until is not None:
            return frame  # the batch that follows goes on with a whole table too: see `_moved`
        rows, later = _unnamed(frame, _OWN), _unnamed(self._feed("insertions", Piece(piece.last + 1, kept)), _OTHER)
        return rows.join(later, F.col(f"{_OWN}1") == F.col(f"{_OTHER}1"), "left_anti").toDF(*frame.columns)

    def _initial(self, piece: Piece) -> DataFrame:
        """The whole table, as the feed would tell of it."""
        scan = replace(self._limited(self._scan(piece.last), piece), row_ids=True)
        frame = scan.frame(scan.contents())
        names = frame.columns[:-1]
        unique = frame.toDF(*(f"{_OWN}{place}" for place in range(len(names))), f"{_OWN}row")
        told = [F.lit(piece.last).cast("bigint"), F.col(f"{_OWN}row")]
        told += [F.lit("insert")] if self._options.changes else []
        shown = unique.select(*told, *(F.col(f"{_OWN}{place}") for place in range(len(names))))
        return shown.toDF(*FEED_COLUMNS[: len(told)], *names)

    def _changes(self, piece: Piece) -> DataFrame:
        return self._feed("changes" if self._options.changes else "insertions", piece)

    def _feed(self, feed: Feed, piece: Piece) -> DataFrame:
        database = self._database
        there = present_snapshots(database, piece.first, piece.last)
        lost = _gaps(piece.first, piece.last, {*there, *(s for s, changed in self._known.items() if not changed)})
        self._check_lost(lost)
        scan = self._limited(self._scan(piece.last), piece)
        needed = tuple(number for number in (piece.first, piece.last) if number in there)
        span = snapshot_span(database, self._table.id, piece.first, piece.last, needed)
        return ChangeFeed.of(feed, scan, span).frame()

    def _scan(self, snapshot: int) -> TableScan:
        database, shown = self._database, self._shown
        if snapshot > shown.snapshot:
            history = column_versions(database, self._table.id)
            shown.check(columns_at(history, At(snapshot)), snapshot, self._table.full_name)
        at = Shown(database, At(snapshot), self._attachment.catalog.data_path)
        nanoseconds = self._options.nanoseconds
        return table_scan(self._attachment, at, self._table, nanoseconds=nanoseconds, columns=shown.columns)


def _unnamed(frame: DataFrame, prefix: str) -> DataFrame:
    return frame.toDF(*(f"{prefix}{place}" for place in range(len(frame.columns))))


@dataclass(frozen=True)
class _Failing:
    """Raises an error in the place of rows."""

    message: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise StaleReadError(self.message)


def _gaps(first: int, last: int, there: Sequence[int] | set[int] | dict[int, bool]) -> list[tuple[int, int]]:
    """The spans of numbers from the first to the last that are not there."""
    gaps, expected = [], first
    for number in [*sorted(number for number in there if first <= number <= last), last + 1]:
        if number > expected:
            gaps.append((expected, number - 1))
        expected = number + 1
    return gaps
