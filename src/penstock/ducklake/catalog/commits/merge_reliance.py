"""Detects rows that came while a merge ran and that its source would have matched instead of inserting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.catalog.file_pruning import keep_condition, prunings
from penstock.ducklake.catalog.inlined_rows import changed_inlined_rows
from penstock.ducklake.catalog.objects import column_versions
from penstock.ducklake.model.snapshots import Snapshot
from penstock.partitioning import PartitionSpec
from penstock.predicates.implication import Implication, allows, mentioned
from penstock.schema.columns import Column
from penstock.schema.types import Order

# Types whose values in Arrow are those that implications speak of, and those that implications count.
_PLAIN = (Order.BOOLEAN, Order.INTEGER, Order.DECIMAL, Order.FLOAT, Order.TEXT)


@dataclass(frozen=True)
class MergeReliance:
    """What a merge relies on: a table, and what is true of every row of it that its source would have matched."""

    table_id: int
    columns: tuple[Column, ...]
    specs: tuple[PartitionSpec, ...]
    matched: Implication

    def is_broken(self, database: Database, base: Snapshot) -> bool:
        """Whether such a row may have come since a snapshot, by statistics of files and values of inlined rows."""
        return self._in_files(database, base) or any(
            allows(self.matched, values) for values in self._inlined(database, base)
        )

    def _in_files(self, database: Database, base: Snapshot) -> bool:
        by_id = {item.id: item for column in self.columns for item in column.walk()}
        possible = keep_condition(prunings(self.matched, self.table_id, self.specs, by_id, database.dialect))
        # Files that were made of older ones since are new too. Of linked files not all statistics are understood.
        sql = f"""SELECT 1 FROM ducklake_data_file d WHERE d.table_id = ? AND d.data_file_id >= ?
                  AND d.end_snapshot IS NULL AND (d.begin_snapshot > ? OR d.partial_max > ?)
                  AND (d.mapping_id IS NOT NULL OR {possible.sql})"""
        parameters = [self.table_id, base.next_file_id, base.id, base.id, *possible.parameters]
        return bool(database.query(sql, parameters))

    def _inlined(self, database: Database, base: Snapshot) -> Iterator[Mapping[int, Any]]:
        """The values of new rows in the columns that matter, by column id; without those that are not understood."""
        wanted = {column.id for column in mentioned(self.matched)}
        columns = [column for column in self.columns if column.id in wanted] or self.columns[:1]
        history = column_versions(database, self.table_id)
        where = f"begin_snapshot > {base.id} AND end_snapshot IS NULL"
        for rows in changed_inlined_rows(database, self.table_id, where, "begin_snapshot", columns, history):
            values = {column.id: _scalars(column, rows.column(i)) for i, column in enumerate(columns)}
            known = {number: each for number, each in values.items() if each is not None}
            for position in range(rows.num_rows):
                yield {number: each[position] for number, each in known.items()}


def _scalars(column: Column, values: pa.ChunkedArray) -> Sequence[Any] | None:
    match column.type.order:
        case _ if column.type.name == "json":
            return None
        case Order.DATE:
            return list(values.cast(pa.date32()).cast(pa.int32()).to_pylist())
        case Order.TIMESTAMP:
            return list(values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64()).to_pylist())
        case order if order in _PLAIN:
            return list(values.to_pylist())
    return None
