"""Works out how to ask a table's files for its columns: names, eras, and what Spark's reader cannot bridge."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import types as T  # noqa: N812

from penstock.ducklake.model.objects import ColumnVersion
from penstock.ducklake.reading.initial_defaults import spark_can_fill
from penstock.ducklake.reading.row_conversion import Reading, promoted, widened_by_spark
from penstock.schema.columns import Column
from penstock.schema.types import Type
from penstock.spark.parquet_options import ROW_INDEX

_RESERVED = ("_metadata", "_tmp_metadata", "_penstock", "_ducklake")


@dataclass(frozen=True)
class ColumnLayout:
    """A table's columns at a snapshot with the history that older files depend on."""

    columns: tuple[Column, ...]
    history: tuple[ColumnVersion, ...]
    nanoseconds: bool = False

    @property
    def has_variants(self) -> bool:
        """Whether a column, or a field of one, is a variant."""
        return any(item.type.name == "variant" for column in self.columns for item in column.walk())

    @property
    def eras(self) -> tuple[int, ...]:
        """The snapshots from which on files hold something that Spark cannot make up for in the files before.

        A transaction may write files before and after it changes columns, so its own snapshot is an era by itself.
        """
        return tuple(sorted({start for snapshot in self._changes() for start in (snapshot, snapshot + 1)}))

    def reading(self, era: int) -> Reading:
        """How the files of an era are read."""
        newest = self._newest(era)
        missing = {column.id for column in self._unfillable() if newest is not None and self._added(column.id) > newest}
        return self._reading({v.column.id: v.column.type for v in self._older(era)}, missing)

    def is_unsure(self, era: int) -> bool:
        """Whether files of an era may have been written before or after a change: they tell themselves."""
        return self._newest(era) in self._changes()

    @property
    def questions(self) -> tuple[int, ...]:
        """The ids of the columns and fields that unsure files are asked for."""
        changed = {column.id for column in self._unfillable()} | {version.column.id for version in self._outgrown()}
        return tuple(sorted(changed))

    def reading_of(self, held: Mapping[int, Type | None]) -> Reading:
        """How files are read that hold only these of the columns in question, in these types or in today's."""
        missing = {column.id for column in self._unfillable()} - set(held)
        types = {column.id: column.type for column in self._walk()}
        older = {i: kind for i, kind in held.items() if kind and not widened_by_spark(kind, types[i])}
        return self._reading(older, missing)

    def _reading(self, older: Mapping[int, Type], missing: Iterable[int]) -> Reading:
        types = {column.id: column.type for column in self._walk()}
        promotions = {i: promoted(kind, types[i], self.nanoseconds) for i, kind in older.items()}
        return Reading(self.nanoseconds, columns=promotions, missing=frozenset(missing), names=self._names())

    def only_duckdb_reads(self, era: int) -> bool:
        """Whether the files hold something that became JSON since: DuckDB's own text of it, which only DuckDB makes.

        Or a column of the name under which Spark's reader gives the number of a row, which it would take for that.
        """
        if any(version.column.name.lower() == ROW_INDEX for version in self.history):
            return True
        types = {column.id: column.type.name for column in self._walk()}
        return any(types[version.column.id] == "json" for version in self._older(era))

    @property
    def milliseconds(self) -> tuple[int, ...]:
        """The ids of the columns and fields that are or were a timestamp_ms."""
        shown = {column.id for column in self._walk()}
        ever = {version.column.id for version in self.history if version.column.type.name == "timestamp_ms"}
        return tuple(sorted(shown & ever))

    def _changes(self) -> set[int]:
        """The snapshots that added or promoted a column in a way that Spark cannot bridge by itself."""
        added = {self._added(column.id) for column in self._unfillable()}
        return added | {version.end_snapshot for version in self._outgrown() if version.end_snapshot is not None}

    def _newest(self, era: int) -> int | None:
        """The newest snapshot that a file of an era can be of."""
        eras = self.eras
        return eras[era] - 1 if era < len(eras) else None

    def _older(self, era: int) -> list[ColumnVersion]:
        """The versions of columns that hold in an era and whose type Spark does not bring to today's."""
        newest = self._newest(era)
        if newest is None:
            return []
        return [v for v in self._outgrown() if v.column.begin_snapshot <= newest < (v.end_snapshot or newest)]

    def _outgrown(self) -> list[ColumnVersion]:
        types = {column.id: column.type for column in self._walk()}
        return [
            version
            for version in self.history
            if version.end_snapshot is not None
            and version.column.id in types
            and not widened_by_spark(version.column.type, types[version.column.id])
        ]

    def _walk(self) -> Iterable[Column]:
        return (item for column in self.columns for item in column.walk())

    def _added(self, column_id: int) -> int:
        return min(version.column.begin_snapshot for version in self.history if version.column.id == column_id)

    def _unfillable(self) -> list[Column]:
        """Columns and fields with a default that Spark cannot fill in when a file lacks them."""
        plain, top = Reading(self.nanoseconds), {column.id for column in self.columns}
        return [
            item
            for item in self._walk()
            if item.initial_default is not None
            and not (item.id in top and spark_can_fill(plain.read_type(item), plain.shown_type(item)))
        ]

    def _names(self) -> Mapping[int, str]:
        """Names of their own for columns whose name another column had once.

        Spark finds columns by field id, but tests a filter against a row group's statistics by name: in an older file
        that name may be another column's.
        """
        holders: dict[tuple[int | None, str], set[int]] = defaultdict(set)
        for version in self.history:
            holders[version.parent_id, version.column.name.lower()].add(version.column.id)
        names: dict[int, str] = {}

        def visit(parent: int | None, columns: Sequence[Column]) -> None:
            for column in columns:
                shared = len(holders[parent, column.name.lower()]) > 1
                if shared or (parent is None and column.name.lower().startswith(_RESERVED)):
                    names[column.id] = f"_penstock_{column.id}"
                visit(column.id, column.children)

        visit(None, self.columns)
        return names


def shown_schema(columns: Iterable[Column], reading: Reading) -> T.StructType:
    """The schema that users see."""
    return T.StructType([T.StructField(column.name, reading.shown_type(column)) for column in columns])
