"""Removes rows of the catalog that a transaction replaces, if they are still those that it looked at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.catalog.id_lists import id_lists
from penstock.errors import ConflictError


@dataclass(frozen=True)
class RemovedRows:
    """Rows of a catalog table, by a condition; with their number, and how many of them have ended, where it counts."""

    table: str
    where: str
    rows: int | None = None
    ended: int | None = None

    def remove(self, database: Database) -> None:
        """Delete them; a ConflictError where another writer was there first."""
        table = database.identifier(self.table)
        if self.rows is not None:
            ended = "0" if self.ended is None else "count(end_snapshot)"
            [found] = database.query(f"SELECT count(*), {ended} FROM {table} WHERE {self.where}")
            if tuple(found) != (self.rows, self.ended or 0):
                raise ConflictError(
                    f"rows of {self.table} were changed by another writer meanwhile; nothing was committed: call it "
                    "again"
                )
        database.execute(f"DELETE FROM {table} WHERE {self.where}")


def removed_by_id(
    table: str, key: str, ids: Iterable[int], *, counted: bool = False, of: int | None = None
) -> Iterator[RemovedRows]:
    """Rows by their ids; `counted` where each id has one row, which has to be there. `of` a table, by whose index."""
    owner = "" if of is None else f"table_id = {of} AND "
    for listed in id_lists(ids):
        yield RemovedRows(table, f"{owner}{key} IN ({listed})", listed.count(",") + 1 if counted else None)
