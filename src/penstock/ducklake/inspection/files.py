"""Lists a table's files, a page at a time, and how many there are of which size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from penstock.ducklake.catalog.databases import Row
from penstock.ducklake.catalog.id_lists import id_lists
from penstock.ducklake.inspection.live_files import SIZE, delete_files, deletes, inlined_deletes, shown_files
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
    "deleted": ("sum(f.lost)",),
}
_DATA_FILES = f"""d.data_file_id, d.path, d.path_is_relative, {SIZE}, coalesce(d.record_count, 0), d.begin_snapshot,
    d.row_id_start, CASE WHEN d.encryption_key IS NULL THEN 0 ELSE 1 END, d.mapping_id"""
_DELETE_FILES = """x.data_file_id, x.path, x.path_is_relative, coalesce(x.file_size_bytes, 0),
    coalesce(x.delete_count, 0)"""
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
    window = Window(order, descending, offset, limit)
    database = shown.database
    with database.consistent():
        total = int(database.value(f"SELECT count(*) FROM {shown_files(shown, table)}"))
        ids = _ids(shown, table, window)
        found = _details(shown, table, ids)
    return Page(tuple(found[number] for number in ids), total, offset)


def _ids(shown: Shown, table: TableInfo, window: Window) -> list[int]:
    if window.order == "deleted":
        parts = [f"SELECT d.data_file_id AS id, 0 AS lost, 1 AS shown FROM {shown_files(shown, table)}"]
        parts += [f"SELECT {file}, {rows}, 0 FROM {source}" for file, rows, source in deletes(shown, table)]
        sql = f"""SELECT f.id FROM ({" UNION ALL ".join(parts)}) f GROUP BY f.id HAVING max(f.shown) = 1
                  {window.sql(_KEYS, "f.id")}"""
    else:
        sql = f"SELECT d.data_file_id FROM {shown_files(shown, table)} {window.sql(_KEYS, 'd.data_file_id')}"
    return [number for (number,) in shown.database.query(sql)]


def _details(shown: Shown, table: TableInfo, ids: Sequence[int]) -> dict[int, FileSummary]:
    rows, partitions = _Rows(shown), _partitions(shown, table, ids)
    deleted = {row[0]: row for row in rows.of(_DELETE_FILES, delete_files(shown, table), "x.data_file_id", ids)}
    source = inlined_deletes(shown, table)
    inlined: dict[int, int] = {}
    if source is not None:
        inlined.update(rows.of("i.file_id, count(*)", source, "i.file_id", ids, "GROUP BY i.file_id"))
    found = {}
    for row in rows.of(_DATA_FILES, shown_files(shown, table), "d.data_file_id", ids):
        _, delete_path, is_relative, delete_size, count = deleted.get(row[0], (row[0], None, False, 0, 0))
        found[row[0]] = FileSummary(
            id=row[0],
            path=resolve(table.path, row[1], bool(row[2])),
            stored_path=row[1],
            size=int(row[3]),
            rows=int(row[4]),
            deleted_rows=int(count) + int(inlined.get(row[0], 0)),
            delete_file=None if delete_path is None else resolve(table.path, delete_path, bool(is_relative)),
            delete_size=int(delete_size),
            inlined_deletes=int(inlined.get(row[0], 0)),
            partition=partitions.get(row[0], ()),
            begin_snapshot=row[5],
            row_id_start=row[6],
            encrypted=bool(row[7]),
            mapping=row[8],
        )
    return found


def _partitions(shown: Shown, table: TableInfo, ids: Sequence[int]) -> dict[int, tuple[PartitionValue, ...]]:
    keys = PartitionKeys.of(shown, table)
    if not keys.specs:
        return {}
    values = values_of_files(shown.database, table.id, ids)
    rows = _Rows(shown).of("d.data_file_id, d.partition_id", shown_files(shown, table), "d.data_file_id", ids)
    return {number: keys.values(partition, values.get(number, ())) for number, partition in rows}


@dataclass(frozen=True)
class _Rows:
    """Rows about some files."""

    shown: Shown

    def of(self, select: str, source: str, id: str, ids: Sequence[int], more: str = "") -> Iterator[Row]:
        """What is selected from a source, for the files of some ids."""
        for listed in id_lists(ids):
            yield from self.shown.database.query(f"SELECT {select} FROM {source} AND {id} IN ({listed}) {more}")


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
