"""Reads what a table's snapshots inserted, deleted and updated, from the files that a span of snapshots changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from penstock.ducklake.catalog.changed_files import (
    ChangedFiles,
    DeletedFiles,
    InsertedFiles,
    PartlyDeletedFiles,
    SnapshotSpan,
)
from penstock.ducklake.model.files import FileGroup
from penstock.ducklake.reading.deleted_positions import (
    DELETED_FILE,
    DELETED_IN,
    DELETED_POSITION,
    deleted_positions,
)
from penstock.ducklake.reading.duckdb_rows import shown_columns, to_frame, transfer_schema
from penstock.ducklake.reading.scan_columns import CHANGED_IN, FILE, POSITION, ROW_ID_SQL
from penstock.ducklake.reading.table_scan import BranchRows, TableContents, TableScan, without_rows
from penstock.schema.embedded_columns import EMBEDDED_SNAPSHOT_ID
from penstock.spark.local_rows import empty_frame
from penstock.spark.projection import SqlColumn, named, projected

Feed = Literal["changes", "insertions", "deletions"]
# Names that no column of a table has, until the last step.
_SNAPSHOT, _ROW, _TYPE = "_penstock_snapshot", "_penstock_row_id", "_penstock_change_type"
_OTHER_SNAPSHOT, _OTHER_ROW = "_penstock_other_snapshot", "_penstock_other_row_id"
_MOST_SNAPSHOTS = 1000  # in one filter


@dataclass(frozen=True)
class FeedRows:
    """Rows of one choice of files, before Spark reads them; `finish` leaves those that the span changed."""

    span: SnapshotSpan
    scan: TableScan
    contents: TableContents
    finish: Callable[[FeedRows, BranchRows, FileGroup], DataFrame]

    def frames(self) -> Iterator[DataFrame]:
        """The rows of each branch: snapshot, row id and the columns."""
        for group in self.contents.groups:
            for rows in self.scan.rows(group, self.contents):
                yield self.finish(self, rows, group)
        columns, nanoseconds = self.scan.layout.columns, self.scan.layout.nanoseconds
        for inlined in self.contents.inlined:
            frame = to_frame(self.scan.spark, inlined, transfer_schema(columns, nanoseconds, ["row_id", "snapshot_id"]))
            yield _frame(frame, "snapshot_id", shown_columns(columns, nanoseconds), number="row_id")

    def deleted(self, rows: BranchRows, group: FileGroup) -> DataFrame:
        """The deleted positions of a group's files."""
        kinds, inlined = self.contents.delete_kinds[group], self.contents.inlined_deletes
        return deleted_positions(self.scan.spark, rows.planner, rows.index, kinds, inlined)


@dataclass(frozen=True)
class ChangeFeed:
    """The changes of a span of snapshots, as the catalog knew them in one consistent state of the database."""

    feed: Feed
    scan: TableScan
    span: SnapshotSpan
    inserted: Sequence[FeedRows]
    deleted: Sequence[FeedRows]

    @classmethod
    def of(cls, feed: Feed, scan: TableScan, span: SnapshotSpan) -> ChangeFeed:
        """Look up the changes of a span, of whose last snapshot `scan` is. Call it inside `Database.consistent()`."""

        def chosen(files: type[ChangedFiles]) -> tuple[SnapshotSpan, TableScan, TableContents]:
            changed = replace(scan, scope=files.of(scan.scope, span), row_ids=True)
            return span, changed, changed.contents()

        inserted, deleted = [], []
        if feed != "deletions":
            inserted = [FeedRows(*chosen(InsertedFiles), _of_inserted_files)]
        if feed != "insertions":
            deleted = [
                FeedRows(*chosen(PartlyDeletedFiles), _of_partly_deleted_files),
                FeedRows(*chosen(DeletedFiles), _of_deleted_files),
            ]
        return cls(feed, scan, span, inserted, deleted)

    def frame(self) -> DataFrame:
        """The changes as a DataFrame; nothing is read before Spark runs a query on it."""
        inserted = [frame for rows in self.inserted for frame in rows.frames()]
        deleted = [frame for rows in self.deleted for frame in rows.frames()]
        if self.feed != "changes":
            return self._named(inserted + deleted)
        insertions = self._told_apart(inserted, deleted, "insert", "update_postimage")
        deletions = self._told_apart(deleted, inserted, "delete", "update_preimage")
        return self._named(insertions + deletions)

    def _told_apart(
        self, frames: Sequence[DataFrame], others: Sequence[DataFrame], alone: str, paired: str
    ) -> list[DataFrame]:
        """The type of a change: another one if the same snapshot changed the same row in the other way too."""
        if not frames:
            return []
        rows, updating = reduce(DataFrame.union, frames), self.span.updating
        if not others or updating == ():
            return [rows.withColumn(_TYPE, F.lit(alone))]
        other = reduce(DataFrame.union, others)
        if updating is not None and len(updating) <= _MOST_SNAPSHOTS:
            other = other.where(F.col(_SNAPSHOT).isin(*updating))
        other = other.select(F.col(_SNAPSHOT).alias(_OTHER_SNAPSHOT), F.col(_ROW).alias(_OTHER_ROW))
        same = (F.col(_SNAPSHOT) == F.col(_OTHER_SNAPSHOT)) & (F.col(_ROW) == F.col(_OTHER_ROW))
        kind = F.when(F.col(_OTHER_ROW).isNull(), alone).otherwise(paired)
        return [rows.join(other, same, "left").withColumn(_TYPE, kind).drop(_OTHER_SNAPSHOT, _OTHER_ROW)]

    def _named(self, frames: Sequence[DataFrame]) -> DataFrame:
        """The columns in order; a table's own may have the same names as those of the feed."""
        own = {"snapshot_id": _SNAPSHOT, "rowid": _ROW, **({"change_type": _TYPE} if self.feed == "changes" else {})}
        columns = [column.name for column in self.scan.layout.columns]
        if frames:
            told = [SqlColumn(name, internal) for name, internal in own.items()]
            return projected(reduce(DataFrame.union, frames), [*told, *named(*columns)])
        nothing = empty_frame(self.scan.spark, self.scan.schema)
        types = {name: "string" if name == "change_type" else "bigint" for name in own}
        told = [SqlColumn(name, f"CAST(NULL AS {kind})") for name, kind in types.items()]
        return projected(nothing, [*told, *named(*columns)])


def _frame(rows: DataFrame, snapshot: str, shown: Sequence[SqlColumn], number: str = ROW_ID_SQL) -> DataFrame:
    return projected(rows, [SqlColumn(_SNAPSHOT, snapshot), SqlColumn(_ROW, number), *shown])


def _of_inserted_files(changed: FeedRows, rows: BranchRows, group: FileGroup) -> DataFrame:
    """Without the rows of other snapshots, and without those that their own snapshot deleted."""
    frame, span = rows.frame, changed.span
    if group.partial:
        snapshot = F.col(EMBEDDED_SNAPSHOT_ID)
        frame = frame.where(snapshot.between(span.first, span.last) & ~snapshot.isin(*span.rewritten))
    if group.deleted:
        frame = without_rows(frame, changed.deleted(rows, group), F.col(CHANGED_IN) == F.col(DELETED_IN))
    return _frame(frame, EMBEDDED_SNAPSHOT_ID if group.partial else CHANGED_IN, rows.shown)


def _of_deleted_files(changed: FeedRows, rows: BranchRows, group: FileGroup) -> DataFrame:
    """What was left of the files when they ended."""
    frame = without_rows(rows.frame, changed.deleted(rows, group)) if group.deleted else rows.frame
    return _frame(frame, CHANGED_IN, rows.shown)


def _of_partly_deleted_files(changed: FeedRows, rows: BranchRows, group: FileGroup) -> DataFrame:
    """Only the rows that the span deleted: a later delete file may repeat the positions of an earlier one.

    The join is on the file too, which is a constant of each: Spark then reads only the files that it finds there.
    """
    first = F.min(DELETED_IN).alias(DELETED_IN)
    dated = changed.deleted(rows, group).groupBy(DELETED_FILE, DELETED_POSITION).agg(first)
    deleted = dated.where(F.col(DELETED_IN) >= changed.span.first)
    place = (F.col(FILE) == F.col(DELETED_FILE)) & (F.col(POSITION) == F.col(DELETED_POSITION))
    never_shown = F.col(CHANGED_IN).eqNullSafe(F.col(DELETED_IN))
    frame = rows.frame.join(deleted, place).where(~never_shown)
    return _frame(frame, DELETED_IN, rows.shown)
