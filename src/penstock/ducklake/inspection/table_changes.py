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
    added, removed = question.rows()
    files = f"ducklake_data_file WHERE table_id = {table_id} AND {_LIVED}"
    files_added, files_removed = question.count(files, "begin_snapshot"), question.count(files, "end_snapshot")
    mixed, mixed_deletes = question.mixed("data_file"), question.mixed("delete_file")
    found = {}
    for snapshot, kinds in done.items():
        anew = bool(kinds & REWRITING)
        found[snapshot] = Counts(
            None if snapshot in mixed else 0 if anew else added[snapshot],
            None if snapshot in mixed_deletes else 0 if anew else removed[snapshot],
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

    def rows(self) -> tuple[Counter[int], Counter[int]]:
        """The rows that each snapshot added, and that it removed."""
        files = f"ducklake_data_file WHERE table_id = {self.table_id} AND {_LIVED}"
        added = self.count(files, "begin_snapshot", "record_count")
        removed = self.count(files, "end_snapshot", "record_count")
        for name, _ in inlined_tables(self.database, self.table_id):
            inlined = f"{self.database.identifier(name)} WHERE {_LIVED}"
            added += self.count(inlined, "begin_snapshot")
            removed += self.count(inlined, "end_snapshot")
        removed += self._deleted()
        removed.subtract(self._gone_before())
        return added, removed

    def _deleted(self) -> Counter[int]:
        """The rows that the deletes of a snapshot are of; a delete file also has those of the one it took over from."""
        deletes = f"ducklake_delete_file WHERE table_id = {self.table_id} AND {_LIVED}"
        found = self.count(deletes, "begin_snapshot", "delete_count")
        inlined = inlined_delete_table(self.database, self.table_id)
        if inlined is not None:
            found += self.count(f"{self.database.identifier(inlined)} WHERE 1 = 1", "begin_snapshot")
        return found

    def _gone_before(self) -> Counter[int]:
        """The rows that were gone already of what a snapshot removed: of delete files, and of whole data files."""
        of_table = f"x.table_id = {self.table_id} AND d.table_id = {self.table_id}"
        files = "ducklake_data_file d JOIN ducklake_delete_file x ON x.data_file_id = d.data_file_id"
        live = "x.begin_snapshot < d.end_snapshot AND (x.end_snapshot IS NULL OR x.end_snapshot >= d.end_snapshot)"
        found = self.count(f"{files} WHERE {of_table} AND {live}", "d.end_snapshot", "x.delete_count")
        stays = "(d.end_snapshot IS NULL OR d.end_snapshot > x.end_snapshot)"
        found += self.count(f"{files} WHERE {of_table} AND {stays}", "x.end_snapshot", "x.delete_count")
        inlined = inlined_delete_table(self.database, self.table_id)
        if inlined is not None:
            kept = f"{self.database.identifier(inlined)} i ON i.file_id = d.data_file_id"
            earlier = f"d.table_id = {self.table_id} AND i.begin_snapshot < d.end_snapshot"
            found += self.count(f"ducklake_data_file d JOIN {kept} WHERE {earlier}", "d.end_snapshot")
        return found

    def count(self, source: str, snapshot: str, rows: str = "1") -> Counter[int]:
        """How many rows of a source are of each snapshot, each counted as so many."""
        found: Counter[int] = Counter()
        for listed in id_lists(self.snapshots):
            sql = f"""SELECT {snapshot}, sum(coalesce({rows}, 0)) FROM {source} AND {snapshot} IN ({listed})
                      GROUP BY {snapshot}"""
            with self.database.joining():
                found.update({number: int(count) for number, count in self.database.query(sql)})
        return found

    def mixed(self, kind: str) -> set[int]:
        """The snapshots whose rows are in one file with those of others."""
        sql = f"""SELECT DISTINCT begin_snapshot, partial_max FROM ducklake_{kind}
                  WHERE table_id = ? AND partial_max > begin_snapshot"""
        spans = self.database.query(sql, [self.table_id])
        return {number for number in self.snapshots for first, last in spans if first <= number <= last}
