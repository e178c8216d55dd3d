"""Lists a table's partitions, a page at a time, with what is in each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from penstock.ducklake.inspection.live_files import SIZE, deletes, shown_files
from penstock.ducklake.inspection.pages import Page, Window
from penstock.ducklake.inspection.partition_values import PartitionKeys, PartitionValue
from penstock.ducklake.model.objects import TableInfo
from penstock.ducklake.transaction import Shown

PartitionOrder = Literal["value", "bytes", "rows", "files"]
_UNPARTITIONED = -1  # no partitioning has this number


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
        places = [f"p{place}" for place in range(keys.most_places)]
        texts = [dialect.text(place) for place in places]
        orders = {
            "value": tuple(part for i in places for part in (dialect.integer(i), dialect.text(i))),
            "bytes": ("size",),
            "rows": ("held",),
            "files": ("files",),
        }
        orders["value"] += ("partition_id",)
        window = Window(order, descending, offset, limit).sql(orders, ", ".join(["partition_id", *texts]))
        files, groups = _files(shown, table, places), ", ".join(["partition_id", *texts])
        values = "".join(f"min({place}) AS {place}, " for place in places)
        grouped = f"""SELECT partition_id, {values}count(*) AS files, sum(size) AS size, sum(held) AS held,
                             sum(lost) AS lost FROM ({files}) f GROUP BY {groups}"""
        rows = database.query(f"SELECT partitions.*, count(*) OVER () FROM ({grouped}) partitions {window}")
        total = rows[0][-1] if rows else database.value(f"SELECT count(*) FROM ({grouped}) partitions")
    items = tuple(PartitionSummary(keys.values(row[0], row[1:-5]), *map(int, row[-5:-1])) for row in rows)
    return Page(items, int(total), offset)


def _files(shown: Shown, table: TableInfo, places: list[str]) -> str:
    """A line a file, with the values of its partition `p0, p1, ...`."""
    values = "".join(
        f", CASE WHEN partition_key_index = {number} THEN partition_value END AS {place}"
        for number, place in enumerate(places)
    )
    nulls = ", NULL" * len(places)
    none = str(_UNPARTITIONED)
    parts = [  # the first gives the columns their types
        f"""SELECT data_file_id AS id, {none} AS partition_id, 0 AS size, 0 AS held, 0 AS lost, 0 AS shown{values}
            FROM ducklake_file_partition_value WHERE table_id = {table.id}""",
        f"""SELECT d.data_file_id, coalesce(d.partition_id, {none}), {SIZE}, coalesce(d.record_count, 0), 0, 1{nulls}
            FROM {shown_files(shown, table)}""",
        *(
            f"SELECT {file}, {none}, 0, 0, {rows}, 0{nulls} FROM {source}"
            for file, rows, source in deletes(shown, table)
        ),
    ]
    taken = "".join(f", max({place}) AS {place}" for place in places)
    return f"""SELECT max(partition_id) AS partition_id, max(size) AS size, max(held) AS held, sum(lost) AS lost{taken}
               FROM ({" UNION ALL ".join(parts)}) told GROUP BY id HAVING max(shown) = 1"""
