"""Lists a table's files, a page at a time, and how many there are of which size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from penstock.ducklake.catalog.databases import Row
from penstock.ducklake.inspection.live_files import DELETED, INLINED_DELETES, SIZE, LiveFiles, shown_files
from penstock.ducklake.inspection.pages import Page, Window
from penstock.ducklake.inspection.partition_values import PartitionKeys, PartitionValue, values_of_files
from penstock.ducklake.model.objects import TableInfo
from penstock.ducklake.transaction import Shown
from penstock.storage.paths import resolve

FileOrder = Literal["id", "size", "rows", "deleted"]
_KEYS = {
    "id": ("d.data_file_id",),
    "size": (SIZE,),
    "rows": ("d.record_count",),
    "deleted": (DELETED,),
}
_LEAST, _MOST = 10, 50  # as powers of two, the sizes that are told apart: below a kilobyte all are alike


@dataclass(frozen=True)
class FileSummary:
    """A data file with what it has lost; `stored_path` is its path as the catalog has it."""

    id: int
    path: str  # absolute
    stored_path: str
    size: int
    rows: int  # with those that are deleted
    deleted_rows: int
    delete_file: str | None  # absolute
    delete_size: int
    inlined_deletes: int  # of the deleted rows, those that the catalog itself keeps
    partition: tuple[PartitionValue, ...]
    begin_snapshot: int
    row_id_start: int | None
    encrypted: bool
    mapping: int | None  # of the names in a file without field ids


@dataclass(frozen=True)
class SizeBucket:
    """The files of at least `low` bytes and of less than `high`."""

    low: int
    high: int
    file_count: int
    bytes: int


def file_summaries(
    shown: Shown,
    table: TableInfo,
    *,
    order: FileOrder = "id",
    descending: bool = False,
    offset: int = 0,
    limit: int = 100,
) -> Page[FileSummary]:
    """A page of the data files that a snapshot shows."""
    window = Window(order, descending, offset, limit).sql(_KEYS, "d.data_file_id")
    database = shown.database
    with database.consistent():
        total = int(database.value(f"SELECT count(*) FROM {shown_files(shown, table)}"))
        rows = database.query(
            f"""SELECT d.data_file_id, d.path, d.path_is_relative, {SIZE}, coalesce(d.record_count, 0), {DELETED},
                       x.path, x.path_is_relative, coalesce(x.file_size_bytes, 0), {INLINED_DELETES},
                       d.begin_snapshot, d.row_id_start, CASE WHEN d.encryption_key IS NULL THEN 0 ELSE 1 END,
                       d.mapping_id, d.partition_id
                FROM {LiveFiles.of(shown, table).sql()} {window}"""
        )
        partitioned = [row[0] for row in rows if row[-1] is not None]
        values = values_of_files(database, table.id, partitioned)
        keys = PartitionKeys.of(shown, table) if partitioned else PartitionKeys({}, {})
    items = tuple(_summary(table, row, keys.values(row[-1], values.get(row[0], ()))) for row in rows)
    return Page(items, total, offset)


def _summary(table: TableInfo, row: Row, partition: tuple[PartitionValue, ...]) -> FileSummary:
    return FileSummary(
        id=row[0],
        path=resolve(table.path, row[1], bool(row[2])),
        stored_path=row[1],
        size=int(row[3]),
        rows=int(row[4]),
        deleted_rows=int(row[5]),
        delete_file=None if row[6] is None else resolve(table.path, row[6], bool(row[7])),
        delete_size=int(row[8]),
        inlined_deletes=int(row[9]),
        partition=partition,
        begin_snapshot=row[10],
        row_id_start=row[11],
        encrypted=bool(row[12]),
        mapping=row[13],
    )


def file_sizes(shown: Shown, table: TableInfo) -> list[SizeBucket]:
    """How many files there are of which size: from a power of two to the next, without gaps."""
    whens = " ".join(f"WHEN {SIZE} < {1 << power} THEN {power}" for power in range(_LEAST, _MOST))
    found = {
        int(power): (int(count), int(size))
        for power, count, size in shown.database.query(
            f"""SELECT power, count(*), sum(size)
                FROM (SELECT {SIZE} AS size, CASE {whens} ELSE {_MOST} END AS power FROM {shown_files(shown, table)}) f
                GROUP BY power"""
        )
    }
    powers = range(min(found), max(found) + 1) if found else ()
    return [_bucket(power, *found.get(power, (0, 0))) for power in powers]


def _bucket(power: int, count: int, size: int) -> SizeBucket:
    return SizeBucket(0 if power == _LEAST else 1 << (power - 1), 1 << power, count, size)
