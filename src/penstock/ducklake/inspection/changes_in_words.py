"""Says what a snapshot did in words: `inserted into main.orders`."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.ducklake.catalog.commits.conflicts import COMPACTED, DELETED, INSERTED
from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.catalog.id_lists import id_lists
from penstock.ducklake.model.snapshot_changes import SnapshotChange, quoted_parts

_ENTRIES = {"schema": "schema", "table": "table", "view": "view", "scalar_macro": "macro", "table_macro": "macro"}
_WORDS = {
    **{f"created_{kind}": f"created {word}" for kind, word in _ENTRIES.items()},
    **{f"dropped_{kind}": f"dropped {word}" for kind, word in _ENTRIES.items()},
    "altered_table": "altered table",
    "altered_view": "altered view",
    **dict.fromkeys(INSERTED, "inserted into"),
    **dict.fromkeys(DELETED, "deleted from"),
    "merge_adjacent": "merged files of",
    "rewrite_delete": "wrote files anew of",
    "compacted_table": "compacted",
    "inline_flush": "flushed rows of",
    "flushed_inlined": "flushed rows of",
}
_OF_TABLES = {*INSERTED, *DELETED, *COMPACTED, "altered_table", "dropped_table"}
Changes = Sequence[SnapshotChange]


@dataclass(frozen=True)
class Named:
    """What things were called, by their ids: each name with the snapshot it began with.

    `begun` are tables by the snapshot that a name of theirs began with, and that name; `first` is where they began.
    """

    names: dict[int, list[tuple[int, str]]]
    begun: dict[tuple[int, str], int]
    first: dict[int, int]

    def name(self, thing: int, snapshot: int) -> str:
        """The name of a thing as a snapshot left it, or as it was when the snapshot dropped it."""
        known = self.names.get(thing)
        if not known:
            return f"number {thing}"
        return known[max(0, bisect_right(known, snapshot, key=lambda one: one[0]) - 1)][1]


def names_of(database: Database, snapshots: Sequence[tuple[int, Changes]]) -> Named:
    """What is needed to say what some snapshots did."""
    ids = {int(change.value) for _, changes in snapshots for change in changes if change.value.isdigit()}
    numbers = [snapshot for snapshot, changes in snapshots if any(c.kind == "created_table" for c in changes)]
    schemas: dict[int, str] = dict(database.query("SELECT schema_id, schema_name FROM ducklake_schema"))
    names: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for listed in id_lists(ids):
        for kind in ("table", "view", "macro", "schema"):
            rows = database.query(
                f"""SELECT {kind}_id, begin_snapshot, schema_id, {kind}_name FROM ducklake_{kind}
                    WHERE {kind}_id IN ({listed}) ORDER BY begin_snapshot"""
            )
            for thing, begin, schema, name in rows:
                names[thing].append((begin, name if kind == "schema" else f"{schemas.get(schema, '?')}.{name}"))
    begun: dict[tuple[int, str], int] = {}
    first: dict[int, int] = {}
    for listed in id_lists(numbers):
        sql = f"""SELECT table_id, begin_snapshot, schema_id, table_name FROM ducklake_table
                  WHERE begin_snapshot IN ({listed})"""
        for table, begin, schema, name in database.query(sql):
            begun[begin, f"{schemas.get(schema, '?')}.{name}"] = table
    for listed in id_lists(set(begun.values())):
        sql = f"SELECT table_id, min(begin_snapshot) FROM ducklake_table WHERE table_id IN ({listed}) GROUP BY table_id"
        first.update(dict(database.query(sql)))
    return Named(names, begun, first)


def words(snapshot: int, changes: Changes, names: Named, table: int | None = None) -> tuple[str, ...]:
    """What a snapshot did, or what it did to one table; each thing once."""
    # A second delete from a file is noted as a flush and a merge too: it puts one delete file in another's place.
    deleted = {change.value for change in changes if change.kind in DELETED}
    said = [
        _sentence(snapshot, change, names)
        for change in changes
        if not (change.kind in COMPACTED and change.value in deleted)
        and (table is None or _table(snapshot, change, names) == table)
    ]
    return tuple(dict.fromkeys(said))


def tables_of(snapshot: int, changes: Changes, names: Named) -> frozenset[int]:
    """The tables that a snapshot did something to."""
    touched = (_table(snapshot, change, names) for change in changes)
    return frozenset(table for table in touched if table is not None)


def _table(snapshot: int, change: SnapshotChange, names: Named) -> int | None:
    """The table that a change was made to."""
    if change.kind == "created_table":
        return names.begun.get((snapshot, _thing(snapshot, change, names)))
    return int(change.value) if change.kind in _OF_TABLES and change.value.isdigit() else None


def _sentence(snapshot: int, change: SnapshotChange, names: Named) -> str:
    thing = _thing(snapshot, change, names)
    if change.kind == "created_table" and names.first.get(_table(snapshot, change, names) or 0, snapshot) < snapshot:
        return f"renamed a table to {thing}"
    return f"{_WORDS.get(change.kind, change.kind.replace('_', ' '))} {thing}"


def _thing(snapshot: int, change: SnapshotChange, names: Named) -> str:
    if change.value.isdigit():
        return names.name(int(change.value), snapshot)
    return ".".join(quoted_parts(change.value))
