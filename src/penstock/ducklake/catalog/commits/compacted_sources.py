"""Checks that the files which a compaction read are still what it read, in the transaction that replaces them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.catalog.id_lists import id_lists
from penstock.ducklake.catalog.inlined_rows import inlined_delete_table
from penstock.errors import ConflictError


@dataclass(frozen=True)
class SourceState:
    """What a data file had lost when it was read: by a delete file, and in the catalog."""

    delete_file_id: int | None = None
    inlined_deletes: int = 0


@dataclass(frozen=True)
class CompactedSources:
    """The files that a compaction of a table read. The log of changes does not tell of everything that others do."""

    table_id: int
    table_name: str
    states: Mapping[int, SourceState]

    def check(self, database: Database) -> None:
        """Raise a ConflictError where one of them is gone, or has lost other rows since."""
        if self._found(database) != self.states:
            raise ConflictError(
                f"files of table {self.table_name} were deleted from or replaced by another writer while they were "
                "compacted; nothing was committed: call it again"
            )

    def _found(self, database: Database) -> dict[int, SourceState]:
        name = inlined_delete_table(database, self.table_id)
        found: dict[int, SourceState] = {}
        for listed in id_lists(self.states):
            live = f"table_id = ? AND end_snapshot IS NULL AND data_file_id IN ({listed})"
            deletes: dict[int, int] = {}
            for file_id, delete_id in database.query(
                f"SELECT data_file_id, delete_file_id FROM ducklake_delete_file WHERE {live}", [self.table_id]
            ):
                deletes[file_id] = -1 if file_id in deletes else delete_id  # two of them are never right
            inlined: dict[int, int] = {}
            if name is not None:
                table = database.identifier(name)
                inlined = dict(
                    database.query(
                        f"SELECT file_id, count(*) FROM {table} WHERE file_id IN ({listed}) GROUP BY file_id"
                    )
                )
            for (file_id,) in database.query(
                f"SELECT data_file_id FROM ducklake_data_file WHERE {live}", [self.table_id]
            ):
                found[file_id] = SourceState(deletes.get(file_id), inlined.get(file_id, 0))
        return found
