"""Tells what snapshots did, newest first: to the lake, or to the rows and files of one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.catalog.snapshots import newest_snapshots, reserved_words, snapshots_by_number
from penstock.ducklake.inspection.changes_in_words import Named, names_of, tables_of, words
from penstock.ducklake.inspection.pages import Page
from penstock.ducklake.inspection.table_changes import Counts, counted_changes
from penstock.ducklake.model.objects import TableInfo
from penstock.ducklake.model.snapshot_changes import done_to, parse_changes, summarise
from penstock.ducklake.model.snapshots import Snapshot


@dataclass(frozen=True)
class SnapshotSummary:
    """A snapshot and what it did: as `snapshots()` shows it, in words, and the ids of the tables that it touched."""

    snapshot: Snapshot
    changes: dict[str, list[str]]
    actions: tuple[str, ...]
    tables: frozenset[int]


@dataclass(frozen=True)
class TableChange:
    """What a snapshot did to one table. Updated rows are removed and added.

    Numbers of rows are None where a merge or flush has since put the rows of several snapshots into one file: then the
    catalog does not tell them apart. Rows that were only written anew are neither added nor removed.
    """

    snapshot: Snapshot
    actions: tuple[str, ...]
    rows_added: int | None
    rows_removed: int | None
    files_added: int
    files_removed: int


def snapshot_summaries(
    database: Database,
    *,
    limit: int = 100,
    before: int | None = None,
    newest: int | None = None,
    table: TableInfo | None = None,
) -> Page[SnapshotSummary]:
    """A page of the snapshots that are kept, or of those that did something to a table; `before` is not among them.

    Whoever looks at a lake as it was gives the `newest` one that there is for them.
    """
    with database.consistent():
        snapshots = _page(database, limit, before, newest, table)
        names = names_of(database, [(s.id, parse_changes(s.changes_made)) for s in snapshots.items])
    reserved = reserved_words()
    items = tuple(_summary(snapshot, names, reserved) for snapshot in snapshots.items)
    return Page(items, snapshots.total, snapshots.offset)


def table_history(
    database: Database, table: TableInfo, *, limit: int = 100, before: int | None = None, newest: int | None = None
) -> Page[TableChange]:
    """A page of the snapshots that did something to a table, with how many rows and files came and went."""
    with database.consistent():
        snapshots = _page(database, limit, before, newest, table)
        names = names_of(database, [(s.id, parse_changes(s.changes_made)) for s in snapshots.items])
        counts = counted_changes(database, table.id, {s.id: done_to(table.id, s.changes_made) for s in snapshots.items})
    items = tuple(
        _change(
            snapshot, words(snapshot.id, parse_changes(snapshot.changes_made), names, table.id), counts[snapshot.id]
        )
        for snapshot in snapshots.items
    )
    return Page(items, snapshots.total, snapshots.offset)


def _summary(snapshot: Snapshot, names: Named, reserved: frozenset[str]) -> SnapshotSummary:
    changes = parse_changes(snapshot.changes_made)
    return SnapshotSummary(
        snapshot,
        summarise(changes, reserved),
        words(snapshot.id, changes, names),
        tables_of(snapshot.id, changes, names),
    )


def _change(snapshot: Snapshot, actions: tuple[str, ...], counts: Counts) -> TableChange:
    return TableChange(
        snapshot, actions, counts.rows_added, counts.rows_removed, counts.files_added, counts.files_removed
    )


def _page(
    database: Database, limit: int, before: int | None, newest: int | None, table: TableInfo | None
) -> Page[Snapshot]:
    if table is None:
        every = "1 = 1" if newest is None else f"snapshot_id <= {int(newest)}"
        after = 0 if before is None else _count(database, f"{every} AND snapshot_id >= {int(before)}")
        ends = [end for end in (before, None if newest is None else newest + 1) if end is not None]
        return Page(tuple(newest_snapshots(database, limit, min(ends, default=None))), _count(database, every), after)
    numbers = [number for number in _touching(database, table.id) if newest is None or number <= newest]
    offset = 0 if before is None else sum(number >= before for number in numbers)
    return Page(
        tuple(snapshots_by_number(database, numbers[offset : offset + limit])), total=len(numbers), offset=offset
    )


def _count(database: Database, which: str) -> int:
    return int(database.value(f"SELECT count(*) FROM ducklake_snapshot WHERE {which}"))


def _touching(database: Database, table_id: int) -> Sequence[int]:
    """The snapshots that did something to a table, newest first. A pattern finds them, and a few too many."""
    sql = "SELECT snapshot_id, changes_made FROM ducklake_snapshot_changes WHERE changes_made LIKE ?"
    found = {snapshot for snapshot, text in database.query(sql, [f"%:{table_id}%"]) if done_to(table_id, text)}
    began = database.query(
        f"""SELECT DISTINCT t.begin_snapshot FROM ducklake_table t
            JOIN ducklake_snapshot s ON s.snapshot_id = t.begin_snapshot WHERE t.table_id = {table_id}"""
    )
    return sorted({*found, *(number for (number,) in began)}, reverse=True)
