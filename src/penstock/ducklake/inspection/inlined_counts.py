"""Counts the rows and deletes that the catalog itself keeps, of many tables at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.catalog.inlined_rows import inlined_delete_name
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.model.objects import TableInfo

_MOST_PARTS = 100  # of one statement: SQLite takes 500


def inlined_row_counts(database: Database, at: At, tables: Sequence[TableInfo]) -> dict[int, int]:
    """How many rows that a snapshot shows are kept in the catalog, by table."""
    ids = ", ".join(str(table.id) for table in tables) if len(tables) == 1 else None
    where = f"WHERE table_id IN ({ids})" if ids else ""
    rows = database.query(f"SELECT table_id, table_name FROM ducklake_inlined_data_tables {where}")
    existing = database.existing([name for _, name in rows])
    counts = counted(
        database,
        (
            (table_id, f"{database.identifier(name)} WHERE {at.visible()}")
            for table_id, name in rows
            if name in existing
        ),
    )
    for table in tables:
        for _, staged, _ in database.staged_inlined(table.id):
            counts[table.id] = counts.get(table.id, 0) + staged.num_rows
    return counts


def inlined_delete_counts(database: Database, at: At, tables: Sequence[TableInfo]) -> Mapping[int, int]:
    """How many rows of files that a snapshot shows are deleted in the catalog itself, by table."""
    names = {inlined_delete_name(table.id): table.id for table in tables}
    return counted(
        database,
        (
            (
                names[name],
                f"""{database.identifier(name)} i JOIN ducklake_data_file d ON d.data_file_id = i.file_id
                    WHERE {at.begun("i")} AND {at.visible("d")}""",
            )
            for name in sorted(database.existing(list(names)))
        ),
    )


def counted(database: Database, sources: Iterable[tuple[int, str]]) -> dict[int, int]:
    """The rows of each source, which is what stands after FROM, added up by the number beside it."""
    parts = [f"SELECT {number} AS number, count(*) AS counted FROM {source}" for number, source in sources]
    counts: dict[int, int] = defaultdict(int)
    for start in range(0, len(parts), _MOST_PARTS):
        with database.joining():
            rows = database.query(" UNION ALL ".join(parts[start : start + _MOST_PARTS]))
        for number, count in rows:
            counts[int(number)] += int(count)
    return dict(counts)
