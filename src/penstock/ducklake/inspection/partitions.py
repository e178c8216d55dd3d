"""Lists a table's partitions, a page at a time, with what is in each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from penstock.ducklake.inspection.live_files import DELETED, SIZE, LiveFiles
from penstock.ducklake.inspection.pages import Page, Window
from penstock.ducklake.inspection.partition_values import PartitionKeys, PartitionValue
from penstock.ducklake.model.objects import TableInfo
from penstock.ducklake.transaction import Shown

PartitionOrder = Literal["value", "bytes", "rows", "files"]


@dataclass(frozen=True)
class PartitionSummary:
    """A partition and its files; no values are those of files that were written without partitions."""

    values: tuple[PartitionValue, ...]
    file_count: int
    bytes: int
    rows: int  # with those that are deleted
    deleted_rows: int


def partition_summaries(
    shown: Shown,
    table: TableInfo,
    *,
    order: PartitionOrder = "value",
    descending: bool = False,
    offset: int = 0,
    limit: int = 100,
) -> Page[PartitionSummary]:
    """A page of the partitions that files of a snapshot are in; each partitioning that the table had has its own.

    By value means numbers by their size and all else by its text. Rows that the catalog keeps are in no partition yet.
    """
    database, dialect = shown.database, shown.database.dialect
    with database.consistent():
        keys = PartitionKeys.of(shown, table)
        places = range(keys.most_places)
        orders = {
            "value": tuple(part for i in places for part in (dialect.integer(f"p{i}"), dialect.text(f"p{i}"))),
            "bytes": ("size",),
            "rows": ("held",),
            "files": ("files",),
        }
        orders["value"] += ("partition_id",)
        files = _files(shown, table, keys)
        groups = ", ".join(["partition_id", *(dialect.text(f"p{i}") for i in places)])
        values = "".join(f", min(p{i}) AS p{i}" for i in places)
        summed = f"""SELECT partition_id{values}, count(*) AS files, sum(size) AS size, sum(held) AS held,
                            sum(lost) AS lost FROM ({files}) f GROUP BY {groups}"""
        window = Window(order, descending, offset, limit).sql(
            orders, ", ".join(["partition_id", *(dialect.text(f"p{i}") for i in places)])
        )
        rows = database.query(f"SELECT * FROM ({summed}) s {window}")
        total = int(database.value(f"SELECT count(*) FROM (SELECT 1 AS one FROM ({files}) f GROUP BY {groups}) g"))
    items = tuple(
        PartitionSummary(keys.values(row[0], row[1:-4]), int(row[-4]), int(row[-3]), int(row[-2] or 0), int(row[-1]))
        for row in rows
    )
    return Page(items, total, offset)


def _files(shown: Shown, table: TableInfo, keys: PartitionKeys) -> str:
    """The files with the values of their partitions, `p0, p1, ...`."""
    lost = f"{SIZE} AS size, coalesce(d.record_count, 0) AS held, {DELETED} AS lost"
    live = LiveFiles.of(shown, table)
    if not keys.most_places:
        return f"SELECT d.partition_id AS partition_id, {lost} FROM {live.sql()}"
    places = range(keys.most_places)
    values = ", ".join(f"max(CASE WHEN partition_key_index = {i} THEN partition_value END) AS p{i}" for i in places)
    pivoted = f"""SELECT data_file_id, {values} FROM ducklake_file_partition_value
                  WHERE table_id = {table.id} GROUP BY data_file_id"""
    named = "".join(f", v.p{i} AS p{i}" for i in places)
    joined = live.sql(f"LEFT JOIN ({pivoted}) v ON v.data_file_id = d.data_file_id")
    return f"SELECT d.partition_id AS partition_id{named}, {lost} FROM {joined}"
