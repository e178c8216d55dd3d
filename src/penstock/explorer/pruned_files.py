"""Tells which data files a filter leaves out and by what, from the catalog alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.ducklake.catalog import objects
from penstock.ducklake.catalog.file_pruning import Condition, Pruning, keep_condition, prunings
from penstock.ducklake.catalog.visible_files import EVERY_FILE, UNKNOWN_FILE
from penstock.ducklake.model.objects import TableInfo
from penstock.ducklake.transaction import Shown
from penstock.explorer.duckdb_filters import Answer, filters_of
from penstock.explorer.worker_processes import answered
from penstock.predicates import implied_by
from penstock.schema.columns import Column
from penstock.storage.paths import resolve

_STRIPS = 120
_OF_OTHERS = f"(d.mapping_id IS NOT NULL OR ({UNKNOWN_FILE}))"


@dataclass(frozen=True)
class Amount:
    """Files: how many, and how large."""

    files: int
    bytes: int


@dataclass(frozen=True)
class Reason:
    """What leaves files out, and how many it would by itself."""

    name: str
    amount: Amount


@dataclass(frozen=True)
class Strip:
    """Files that were written one after the other: from which number on, how many, how many are read."""

    first: int
    files: int
    kept: int


@dataclass(frozen=True)
class KeptFile:
    """A data file that is read."""

    id: int
    path: str
    rows: int
    size: int


@dataclass(frozen=True)
class PrunedFiles:
    """What a filter does to the data files of a table."""

    all: Amount
    kept: Amount
    reasons: tuple[Reason, ...]
    strips: tuple[Strip, ...]
    first_kept: tuple[KeptFile, ...]

    @property
    def pruned(self) -> Amount:
        """What need not be read."""
        return Amount(self.all.files - self.kept.files, self.all.bytes - self.kept.bytes)


def pruned_files(
    shown: Shown, table: TableInfo, predicate: str, offset: int = 0, count: int = 50, answer: Answer = answered
) -> PrunedFiles:
    """Which files a filter, in DuckDB's SQL, leaves out. Raises InvalidError where DuckDB does not take it."""
    files = _Files(shown, table)
    columns = objects.columns_at(objects.column_versions(shown.database, table.id), shown.at)
    filters = filters_of(predicate, columns, answer, table=table.name)
    ways = files.prunings(filters, columns)
    keep = keep_condition(ways)
    timed = {column.id for column in columns if any("timestamp" in item.type.name for item in column.walk())}
    if timed and ways and files.amount(Condition(_OF_OTHERS)).files:
        # Times in files of others may be rounded otherwise than their statistics are, so that these say nothing.
        clear = keep_condition(files.prunings(filters, [column for column in columns if column.id not in timed]))
        keep = Condition(
            f"(({_OF_OTHERS} AND {clear.sql}) OR (NOT {_OF_OTHERS} AND {keep.sql}))",
            (*clear.parameters, *keep.parameters),
        )
    reasons = {way.reason: Reason(way.reason, files.amount(Condition(way.sql, way.parameters))) for way in ways}
    return PrunedFiles(
        files.amount(EVERY_FILE),
        files.amount(keep),
        tuple(sorted(reasons.values(), key=lambda reason: -reason.amount.files)),
        tuple(files.strips(keep)),
        tuple(files.listed(keep, offset, count)),
    )


@dataclass(frozen=True)
class _Files:
    """The data files of a table at a snapshot."""

    shown: Shown
    table: TableInfo

    def prunings(self, filters: Sequence[str], columns: Sequence[Column]) -> tuple[Pruning, ...]:
        database = self.shown.database
        by_id = {item.id: item for column in columns for item in column.walk()}
        specs = objects.partition_specs(database, self.table.id)
        return prunings(implied_by(filters, columns), self.table.id, specs, by_id, database.dialect)

    def amount(self, which: Condition) -> Amount:
        sql = f"SELECT count(*), coalesce(sum(d.file_size_bytes), 0) FROM {self._source(which)}"
        [(count, size)] = self.shown.database.query(sql, self._parameters(which))
        return Amount(count, int(size))

    def strips(self, keep: Condition) -> list[Strip]:
        sql = f"SELECT min(d.data_file_id), max(d.data_file_id) FROM {self._source(EVERY_FILE)}"
        [(first, last)] = self.shown.database.query(sql, self._parameters(EVERY_FILE))
        if first is None:
            return []
        width = (last - first) // _STRIPS + 1
        every, kept = (self._by_strip(which, first, width) for which in (EVERY_FILE, keep))
        return [Strip(start, count, kept.get(start, 0)) for start, count in sorted(every.items())]

    def _by_strip(self, which: Condition, first: int, width: int) -> dict[int, int]:
        strip = f"d.data_file_id - (d.data_file_id - {first}) % {width}"
        sql = f"SELECT {strip}, count(*) FROM {self._source(which)} GROUP BY {strip}"
        return {int(start): count for start, count in self.shown.database.query(sql, self._parameters(which))}

    def listed(self, which: Condition, offset: int, count: int) -> list[KeptFile]:
        sql = f"""SELECT d.data_file_id, d.path, d.path_is_relative, d.record_count, coalesce(d.file_size_bytes, 0)
                  FROM {self._source(which)} ORDER BY d.data_file_id LIMIT {count} OFFSET {offset}"""
        rows = self.shown.database.query(sql, self._parameters(which))
        return [KeptFile(r[0], resolve(self.table.path, r[1], bool(r[2])), r[3], r[4]) for r in rows]

    def _source(self, which: Condition) -> str:
        return f"ducklake_data_file d WHERE d.table_id = ? AND {self.shown.at.visible('d')} AND {which.sql}"

    def _parameters(self, which: Condition) -> list[object]:
        return [self.table.id, *which.parameters]
