"""Writes the SQL that the lists of a table's files have in common: the files that are shown, and what each has lost."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.ducklake.catalog.inlined_rows import inlined_delete_table
from penstock.ducklake.model.objects import TableInfo
from penstock.ducklake.transaction import Shown

SIZE = "coalesce(d.file_size_bytes, 0)"  # other writers may leave it out
INLINED_DELETES = "coalesce(i.deletes, 0)"
DELETED = f"coalesce(x.delete_count, 0) + {INLINED_DELETES}"


@dataclass(frozen=True)
class LiveFiles:
    """Data files `d` of a table, their delete files `x`, and how many deletes `i` the catalog itself keeps."""

    source: str
    where: str

    @classmethod
    def of(cls, shown: Shown, table: TableInfo) -> LiveFiles:
        """The files that a snapshot shows."""
        database, at = shown.database, shown.at
        name = inlined_delete_table(database, table.id)
        if name is None:
            inlined = "SELECT data_file_id AS file_id, 0 AS deletes FROM ducklake_data_file WHERE 1 = 0"
        else:
            kept = database.identifier(name)
            inlined = f"SELECT file_id, count(*) AS deletes FROM {kept} WHERE {at.begun()} GROUP BY file_id"
        return cls(
            f"""ducklake_data_file d
                LEFT JOIN (SELECT data_file_id, path, path_is_relative, file_size_bytes, delete_count
                           FROM ducklake_delete_file WHERE table_id = {table.id} AND {at.visible()}) x
                  ON x.data_file_id = d.data_file_id
                LEFT JOIN ({inlined}) i ON i.file_id = d.data_file_id""",
            f"d.table_id = {table.id} AND {at.visible('d')}",
        )

    def sql(self, joined: str = "") -> str:
        """What stands after FROM, with what else is joined."""
        return f"{self.source} {joined} WHERE {self.where}"


def shown_files(shown: Shown, table: TableInfo) -> str:
    """The same without what they have lost."""
    return f"ducklake_data_file d WHERE d.table_id = {table.id} AND {shown.at.visible('d')}"
