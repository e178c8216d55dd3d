"""Conditions, run inside the catalog database, that are true for data files which cannot hold a matching row.

A file is pruned only by what is known of it: rows of statistics or partition values that say so in a form that is
understood. The catalog's tables have no indexes, so every condition is a scan of its own, none is run once a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from penstock.catalog.bounds import Bound, Comparison, comparison
from penstock.catalog.dialects import Dialect
from penstock.model.columns import Column
from penstock.model.types import Type
from penstock.partitioning import Bucket, PartitionField, PartitionSpec
from penstock.partitioning.buckets import same_buckets
from penstock.predicates.implication import And, Anything, ColumnIn, Implication, Nothing, Or, size, summary
from penstock.predicates.values import Interval, ValueSet

_MOST_INTERVALS = 64
_MOST_POINTS = 1000
_MOST_CONDITIONS = 64  # inside one OR
_NO_PARTITION = -1


@dataclass(frozen=True)
class Condition:
    """A piece of SQL with the parameters of its placeholders, in their order."""

    sql: str
    parameters: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Source:
    """A catalog table whose rows tell something about data files, under a partitioning if one is given."""

    table: str
    table_id: int
    key: str
    partition_id: int | None = None

    def files(self, rows: Condition) -> Condition:
        """The data files `d` that have such a row."""
        sql = f"d.data_file_id IN (SELECT data_file_id FROM {self.table} WHERE table_id = ? AND {rows.sql})"
        parameters: tuple[Any, ...] = (self.table_id, *rows.parameters)
        if self.partition_id is None:
            return Condition(sql, parameters)
        return Condition(
            f"(COALESCE(d.partition_id, {_NO_PARTITION}) = ? AND {sql})", (self.partition_id, *parameters)
        )


@dataclass(frozen=True)
class Pruning(Condition):
    """A condition that is true (and never NULL) for the files that `reason` shows to hold no match.

    Prunings by a single source keep it, and its condition on rows, so that many can share one scan.
    """

    reason: str = ""
    source: Source | None = None
    rows: Condition | None = None


def prunings(
    implication: Implication,
    table_id: int,
    specs: Sequence[PartitionSpec],
    columns: Mapping[int, Column],
    dialect: Dialect,
    table: Callable[[str], str] = str,
) -> tuple[Pruning, ...]:
    """Every way to prune a table's files, one for each part of a conjunction and source of knowledge.

    `columns` are the table's by id, nested ones too; `table` qualifies the name of a catalog table.
    """
    planner = _Planner(table_id, specs, columns, dialect, table)
    return tuple(planner.prunings(implication))


def keep(prunings: Iterable[Pruning]) -> Condition:
    """The condition for the files that none of these prunes, with one scan for each source."""
    simple = [one for one in prunings if one.source is not None]
    conditions = [Condition(one.sql, one.parameters) for one in prunings if one.source is None]
    for source, group in groupby(sorted(simple, key=_source_order), key=lambda one: one.source):
        if source is not None:
            conditions.append(source.files(_any(one.rows for one in group if one.rows is not None)))
    return _all(Condition(f"NOT {one.sql}", one.parameters) for one in conditions)


class _Planner:
    def __init__(
        self,
        table_id: int,
        specs: Sequence[PartitionSpec],
        columns: Mapping[int, Column],
        dialect: Dialect,
        table: Callable[[str], str],
    ) -> None:
        self.table_id = table_id
        self.specs = specs
        self.columns = columns
        self.dialect = dialect
        self.table = table
        self.statistics = Source(table("ducklake_file_column_stats"), table_id, "column_id")

    def prunings(self, implication: Implication) -> Iterator[Pruning]:
        for part in implication.children if isinstance(implication, And) else (implication,):
            if size(part) > _MOST_CONDITIONS:
                yield from self.prunings(summary(part))
            elif isinstance(part, ColumnIn):
                yield from self.column(part)
            elif isinstance(part, Nothing):
                yield Pruning("(1 = 1)", (), "no row can match")
            elif isinstance(part, Or):
                yield from self.alternatives(part)

    def column(self, wanted: ColumnIn) -> Iterator[Pruning]:
        for spec in self.specs:
            for field in spec.fields:
                if field.column_id == wanted.column.id and field.column_id in self.columns:
                    yield from self.partition(spec, field, wanted)
        rows = statistics_without(wanted.values, wanted.column.type, self.dialect)
        if rows is not None:
            yield self.simple(f"statistics of {wanted.path}", self.statistics, wanted.column.id, rows)

    def partition(self, spec: PartitionSpec, field: PartitionField, wanted: ColumnIn) -> Iterator[Pruning]:
        type = wanted.column.type
        values = field.transform.project(wanted.values, type)
        rows = None if values is None else value_without(values, field.transform.result(type), self.dialect)
        if rows is None:
            return
        if isinstance(field.transform, Bucket):
            rows = _all([rows, self.always_hashed_alike(wanted.column)])
        name = self.table("ducklake_file_partition_value")
        source = Source(name, self.table_id, "partition_key_index", spec.partition_id)
        yield self.simple(f"partition {field.transform.describe(wanted.path)}", source, field.key_index, rows)

    def always_hashed_alike(self, column: Column) -> Condition:
        """Files keep the buckets of the type that their column had when they, or what they were made of, were written."""
        types = same_buckets(column.type)
        other = f"table_id = ? AND column_id = ? AND column_type NOT IN ({_placeholders(types)})"
        sql = f"(SELECT COUNT(*) FROM {self.table('ducklake_column')} WHERE {other}) = 0"
        return Condition(sql, (self.table_id, column.id, *types))

    def simple(self, reason: str, source: Source, key: int, rows: Condition) -> Pruning:
        keyed = Condition(f"({source.key} = ? AND {rows.sql})", (key, *rows.parameters))
        files = source.files(keyed)
        return Pruning(files.sql, files.parameters, reason, source, keyed)

    def alternatives(self, either: Or) -> Iterator[Pruning]:
        """A file is pruned where every alternative is excluded, by whatever excludes it."""
        found = [keep_none(self.prunings(child)) for child in either.children]
        if all(one is not None for one in found):
            every = _all(one for one in found if one is not None)
            yield Pruning(every.sql, every.parameters, "each of " + ...)
