"""Finds the files and inlined rows of a table's change feed: those by which a span of snapshots changed rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, Self

import pyarrow as pa

from penstock.ducklake.catalog.commits.conflicts import DELETED, INSERTED
from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.catalog.inlined_rows import changed_inlined_rows
from penstock.ducklake.catalog.visible_files import FileScope
from penstock.ducklake.model.objects import ColumnVersion
from penstock.ducklake.model.snapshot_changes import done_to
from penstock.schema.columns import Column

# A compaction of these kinds ends files and begins others with the same rows, in a snapshot that does nothing else.
REWRITING = {"rewrite_delete", "compacted_table"}


@dataclass(frozen=True)
class SnapshotSpan:
    """Snapshots from the first to the last, both included, but for those that only wrote a table's rows anew."""

    first: int
    last: int
    rewritten: tuple[int, ...]
    updating: tuple[int, ...] | None  # the only ones that can have updated rows, if they are known
    first_file_id: int  # of the files that the first snapshot or a later one wrote
    needed: tuple[int, ...]  # those that must not be expired when the changes are read

    def holds(self, snapshot: str) -> str:
        """SQL that is true for a snapshot of the span."""
        within = f"{snapshot} BETWEEN {self.first} AND {self.last}"
        left_out = f" AND {snapshot} NOT IN ({', '.join(map(str, self.rewritten))})" if self.rewritten else ""
        return f"({within}{left_out})"


def snapshot_span(
    database: Database, table_id: int, first: int, last: int, needed: tuple[int, ...] | None = None
) -> SnapshotSpan:
    """The snapshots of a table's change feed. Of those that were expired nobody knows what they did.

    `needed` are those that must be there when the changes are read: by default the first and the last.
    """
    sql = "SELECT snapshot_id, changes_made FROM ducklake_snapshot_changes WHERE snapshot_id BETWEEN ? AND ?"
    rows = database.query(sql, [first, last])
    done = {snapshot: done_to(table_id, changes) for snapshot, changes in rows}
    rewritten = tuple(snapshot for snapshot, kinds in done.items() if kinds & REWRITING)
    updating = tuple(snapshot for snapshot, kinds in done.items() if kinds & {*INSERTED} and kinds & {*DELETED})
    all_known = len(rows) == last + 1 - first and all(changes is not None for _, changes in rows)
    before = database.value("SELECT max(next_file_id) FROM ducklake_snapshot WHERE snapshot_id < ?", [first])
    known = updating if all_known else None
    return SnapshotSpan(first, last, rewritten, known, before or 0, (first, last) if needed is None else needed)


@dataclass(frozen=True)
class ChangedFiles(FileScope):
    """A choice of data files that hold changed rows; `changed_in` of each is a snapshot that the choice is about."""

    made_by: ClassVar[str] = "changes()"
    inlined_by: ClassVar[Literal["begin_snapshot", "end_snapshot"] | None] = None  # what dates a change of inlined rows

    span: SnapshotSpan = field(kw_only=True)

    @classmethod
    def of(cls, scope: FileScope, span: SnapshotSpan) -> Self:
        return cls(**{item.name: getattr(scope, item.name) for item in fields(FileScope)}, span=span)

    def inlined_rows(
        self, columns: Sequence[Column], history: Sequence[ColumnVersion], *, nanoseconds: bool
    ) -> list[pa.Table]:
        """The changed rows that live in the catalog, each with its `snapshot_id`."""
        if self.inlined_by is None:
            return []
        lived = "(end_snapshot IS NULL OR end_snapshot > begin_snapshot)"
        where = f"{self.span.holds(self.inlined_by)} AND {lived}"
        return changed_inlined_rows(
            self.database, self.table_id, where, self.inlined_by, columns, history, nanoseconds=nanoseconds
        )

    def _needed(self) -> tuple[int, ...]:
        return self.span.needed

    def _partial(self) -> str:
        return "(1 = 0)"

    def _applied(self, alias: str) -> str:
        return f"{alias}.begin_snapshot <= {self.span.last}"


@dataclass(frozen=True)
class InsertedFiles(ChangedFiles):
    """Files that came in the span or hold rows that did. `deleted` are those that lost rows in their own snapshot."""

    inlined_by = "begin_snapshot"

    def _chosen(self) -> str:
        whole = f"(d.partial_max IS NULL AND {self.span.holds('d.begin_snapshot')})"
        part = f"(d.partial_max >= {self.span.first} AND d.begin_snapshot <= {self.span.last})"
        return f"({whole} OR {part}) AND (d.end_snapshot IS NULL OR d.end_snapshot > d.begin_snapshot)"

    def _partial(self) -> str:
        return "(d.partial_max IS NOT NULL)"

    def _inlined_applied(self) -> str:
        return self.span.holds("begin_snapshot")

    def _deleted(self) -> tuple[str, list[Any]]:
        sources = [("data_file_id", f"ducklake_delete_file WHERE table_id = {self.table_id} AND")]
        if self.inlined_deletes is not None:
            sources.append(("file_id", f"{self.database.identifier(self.inlined_deletes)} WHERE"))
        within = self.span.holds("begin_snapshot")
        same = (
            f"(d.data_file_id, d.begin_snapshot) IN (SELECT {file}, begin_snapshot FROM {table} {within})"
            for file, table in sources
        )
        return f"d.partial_max IS NULL AND ({' OR '.join(same)})", []

    def _changed_in(self) -> str:
        return "d.begin_snapshot"


@dataclass(frozen=True)
class DeletedFiles(ChangedFiles):
    """Files that the span deleted whole. `deleted` are those that had lost rows before."""

    def _chosen(self) -> str:
        return f"({self.span.holds('d.end_snapshot')} AND d.end_snapshot > d.begin_snapshot)"

    def _inlined_applied(self) -> str:
        ended = (
            f"SELECT d.data_file_id FROM ducklake_data_file d WHERE d.table_id = {self.table_id} AND {self._chosen()}"
        )
        return f"{self.at.begun()} AND file_id IN ({ended})"

    def _changed_in(self) -> str:
        return "d.end_snapshot"


@dataclass(frozen=True)
class PartlyDeletedFiles(ChangedFiles):
    """Files of which the span may have deleted single rows; and the inlined rows that it deleted.

    The catalog does not say up to which snapshot a delete file goes: it cannot know of any after it was written.
    """

    inlined_by = "end_snapshot"

    def _chosen(self) -> str:
        written = f"x.delete_file_id >= {self.span.first_file_id} AND {self._applied('x')}"
        thinned = f"SELECT x.data_file_id FROM ducklake_delete_file x WHERE x.table_id = {self.table_id} AND {written}"
        by_files = f"d.data_file_id IN ({thinned})"
        if self.inlined_deletes is None:
            return by_files
        table = self.database.identifier(self.inlined_deletes)
        return f"({by_files} OR d.data_file_id IN (SELECT file_id FROM {table} WHERE {self._inlined_applied()}))"

    def _inlined_applied(self) -> str:
        return self.span.holds("begin_snapshot")

    def _deleted(self) -> tuple[str, list[Any]]:
        return "1 = 1", []

    def _changed_in(self) -> str:
        return "CASE WHEN d.partial_max IS NULL THEN d.begin_snapshot END"
