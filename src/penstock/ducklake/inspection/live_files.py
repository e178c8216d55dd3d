"""Writes the SQL that the lists of a table's files have in common: the files that are shown, and what they have lost.

Lists are put together by UNION and GROUP BY, not by joins: a catalog without indexes, whose planner knows nothing of
its tables yet, joins thousands of files by looking at each for each.
"""

from __future__ import annotations

from penstock.ducklake.catalog.inlined_rows import inlined_delete_table
from penstock.ducklake.model.objects import TableInfo
from penstock.ducklake.transaction import Shown

SIZE = "coalesce(d.file_size_bytes, 0)"  # other writers may leave it out


def shown_files(shown: Shown, table: TableInfo) -> str:
    """What stands after FROM: the data files `d` that a snapshot shows."""
    return f"ducklake_data_file d WHERE d.table_id = {table.id} AND {shown.at.visible('d')}"


def delete_files(shown: Shown, table: TableInfo) -> str:
    """The delete files `x` that it shows."""
    return f"ducklake_delete_file x WHERE x.table_id = {table.id} AND {shown.at.visible('x')}"


def inlined_deletes(shown: Shown, table: TableInfo) -> str | None:
    """The deletes `i` that the catalog itself keeps, where it can keep any."""
    name = inlined_delete_table(shown.database, table.id)
    return None if name is None else f"{shown.database.identifier(name)} i WHERE {shown.at.begun('i')}"


def deletes(shown: Shown, table: TableInfo) -> list[tuple[str, str, str]]:
    """All that tells of deletes: each time the data file, how many rows of it, and what stands after FROM."""
    inlined = inlined_deletes(shown, table)
    kept = [("i.file_id", "1", inlined)] if inlined is not None else []
    return [("x.data_file_id", "coalesce(x.delete_count, 0)", delete_files(shown, table)), *kept]
