"""Counts the rows and files of a table that snapshots added and removed, as far as the catalog tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from penstock.ducklake.catalog.changed_files import REWRITING
from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.catalog.id_lists import id_lists
from penstock.ducklake.catalog.inlined_rows import inlined_delete_table, inlined_tables

_LIVED = "(end_snapshot IS NULL OR end_snapshot > begin_snapshot)"  # not removed by the snapshot that it came with


@dataclass(frozen=True)
class Counts:
    """How much a snapshot added to a table, and removed; None where the catalog does not tell."""

    rows_added: int | None
    rows_removed: int | None
    files_added: int
    files_removed: int


def counted_changes(database: Database, table_id: int, done: Mapping[int, Set[str]]) -> dict[int, Counts]:
    """What each of some snapshots added and removed, given the kinds of changes that they made to the table."""
    question = _Question(database, table_id, done)
    added, files_added = question.files("data_file", "begin", "record_count")
    removed, files_removed = question.files("data_file", "end", "record_count")
    deleted, _ = question.files("delete_file", "begin", "delete_count")
    replaced, _ = question.files("delete_file", "end", "delete_count")
    for name, _ in inlined_tables(database, table_id):
        added += question.count(f"{database.identifier(name)} WHERE {_LIVED} AND begin_snapshot")
        removed += question.count(f"{database.identifier(name)} WHERE {_LIVED} AND end_snapshot")
    inlined = inlined_delete_table(database, table_id)
    if inlined is not None:
        name = database.identifier(inlined)
        deleted += question.count(f"{name} WHERE begin_snapshot")
        # Those of a file that was deleted whole were gone before.
        replaced += question.count(
            f"ducklake_data_file d JOIN {name} i ON i.file_id = d.data_file_id WHERE d.end_snapshot"
        )
    removed += deleted
    removed.subtract(replaced)
    unclear = question.unclear("data_file"), question.unclear("delete_file")
    found = {}
    for snapshot, kinds in done.items():
        anew = bool(kinds & REWRITING)
        found[snapshot] = Counts(
            None if snapshot in unclear[0] else 0 if anew else added[snapshot],
            None if snapshot in unclear[1] else 0 if anew else removed[snapshot],
            files_added[snapshot],
            files_removed[snapshot],
        )
    return found


@dataclass(frozen=True)
class _Question:
    """What is asked about some snapshots, for each of them."""

    database: Database
    table_id: int
    snapshots: Iterable[int]

    def files(self, kind: str, end: str, rows: str) -> tuple[Counter[int], Counter[int]]:
        """The rows, and the number, of the files that begin or end with each snapshot."""
        held: Counter[int] = Counter()
        count: Counter[int] = Counter()
        for listed in id_lists(self.snapshots):
            sql = f"""SELECT {end}_snapshot, sum(coalesce({rows}, 0)), count(*) FROM ducklake_{kind}
                      WHERE table_id = ? AND {_LIVED} AND {end}_snapshot IN ({listed}) GROUP BY {end}_snapshot"""
            for snapshot, total, number in self.database.query(sql, [self.table_id]):
                held[snapshot] += int(total)
                count[snapshot] += int(number)
        return held, count

    def count(self, source: str) -> Counter[int]:
        """The rows of a source, which ends with what is one of the snapshots."""
        snapshot = source.split()[-1]
        found: Counter[int] = Counter()
        for listed in id_lists(self.snapshots):
            sql = f"SELECT {snapshot}, count(*) FROM {source} IN ({listed}) GROUP BY {snapshot}"
            found.update({number: int(count) for number, count in self.database.query(sql)})
        return found

    def unclear(self, kind: str) -> set[int]:
        """The snapshots whose rows are in one file with those of others."""
        sql = f"""SELECT DISTINCT begin_snapshot, partial_max FROM ducklake_{kind}
                  WHERE table_id = ? AND partial_max > begin_snapshot"""
        spans = self.database.query(sql, [self.table_id])
        return {number for number in self.snapshots for first, last in spans if first <= number <= last}
