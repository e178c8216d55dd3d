"""Decides which data files of a snapshot can hold a matching row, inside the catalog database.

The conditions made here are true for data files which cannot hold one.

A file is pruned only by what is known of it: rows of statistics or partition values that say so in a form that is
understood. Not every catalog has indexes, so every condition is a scan of its own, none is run once a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import groupby
from typing import Any

from penstock.ducklake.catalog.bound_comparisons import Bound, Comparison, comparison
from penstock.ducklake.catalog.dialects import Dialect
from penstock.ducklake.catalog.file_zones import Ranges, ZoneSource, ZoneTest, in_ranges
from penstock.partitioning import Bucket, Identity, PartitionField, PartitionSpec
from penstock.partitioning.buckets import same_buckets
from penstock.predicates.implication import And, ColumnIn, Implication, Nothing, Or, size, summary
from penstock.predicates.values import Interval, ValueSet
from penstock.schema.columns import Column
from penstock.schema.types import Type

_MOST_INTERVALS = 64
_MOST_POINTS = 1000
_MOST_CONDITIONS = 16  # inside one OR, each a scan of its own
_NO_PARTITION = -1


@dataclass(frozen=True)
class Condition:
    """A piece of SQL with the parameters of its placeholders, in their order."""

    sql: str
    parameters: tuple[Any, ...] = ()
    _: KW_ONLY
    by_ids: bool = False  # whether it names the ids of few data files


@dataclass(frozen=True)
class Seen:
    """The part of a table's history that tells something of a scan's files: what came later is about others.

    Each is SQL that is true for rows of a catalog table. So a condition on files means the same whenever it is asked.
    """

    columns: str = "1 = 1"
    mappings: str = "1 = 1"


@dataclass(frozen=True)
class FileFacts:
    """A catalog table whose rows tell something about data files, under a partitioning if one is given."""

    table: str
    table_id: int
    key: str
    partition_id: int | None = None
    within: Ranges | None = None  # the ids of the data files that are asked for; all when None
    table_column: str = "table_id"

    def files(self, rows: Condition) -> Condition:
        """The data files `d` that have such a row."""
        some = "data_file_id IS NOT NULL" if self.within is None else in_ranges("data_file_id", self.within)
        where = f"{self.table_column} = ? AND {some} AND {rows.sql}"
        sql = f"d.data_file_id IN (SELECT data_file_id FROM {self.table} WHERE {where})"
        parameters: tuple[Any, ...] = (self.table_id, *rows.parameters)
        if self.partition_id is None:
            return Condition(sql, parameters)
        return Condition(f"(COALESCE(d.partition_id, {_NO_PARTITION}) = ? AND {sql})", (self.partition_id, *parameters))


@dataclass(frozen=True)
class Pruning(Condition):
    """A condition that is true (and never NULL) for the files that `reason` shows to hold no match.

    Prunings by a single source keep it, and its condition on rows, so that many can share one scan.
    """

    reason: str = ""
    source: FileFacts | None = None
    rows: Condition | None = None
    zones: ZoneTest | None = None  # that excludes only files which are pruned


ALL_SEEN = Seen()


def prunings(
    implication: Implication,
    table_id: int,
    specs: Sequence[PartitionSpec],
    columns: Mapping[int, Column],
    dialect: Dialect,
    table: Callable[[str], str] = str,
    within: Ranges | None = None,
    seen: Seen = ALL_SEEN,
    *,
    is_most: bool = False,
) -> tuple[Pruning, ...]:
    """Every way to prune a table's files, one for each part of a conjunction and source of knowledge.

    `columns` are the table's by id, nested ones too; `table` qualifies the name of a catalog table; `within` are the
    ids of files that are asked for, if not all are: of others the conditions say nothing; `seen` is what counts of the
    table's history; `is_most` whether most of the catalog's files are the table's, so that to read all is quickest.
    """
    planner = _PruningRules(table_id, specs, columns, dialect, table, within, seen, is_most and within is None)
    return tuple(planner.prunings(implication))


def keep_condition(prunings: Sequence[Pruning]) -> Condition:
    """The condition for the files that none of these prunes, with one scan for each source."""
    conditions = [Condition(one.sql, one.parameters) for one in prunings if one.source is None]
    simple = sorted((one for one in prunings if one.source is not None), key=_source_order)
    for source, group in groupby(simple, key=lambda one: one.source):
        if source is not None:
            conditions.append(source.files(_any(one.rows for one in group if one.rows is not None)))
    return _all(Condition(f"NOT ({one.sql})", one.parameters) for one in conditions)


def kept_within(prunings: Sequence[Pruning], within: Ranges | None) -> Condition:
    """The same, of files with certain ids only, if they are given."""
    kept = keep_condition(prunings)
    if within is None:
        return kept
    return Condition(f"({in_ranges('d.data_file_id', within)} AND {kept.sql})", kept.parameters, by_ids=True)


class _PruningRules:
    """Makes the prunings of one table."""

    def __init__(
        self,
        table_id: int,
        specs: Sequence[PartitionSpec],
        columns: Mapping[int, Column],
        dialect: Dialect,
        table: Callable[[str], str],
        within: Ranges | None,
        seen: Seen,
        reads_all: bool,
    ) -> None:
        self.table_id = table_id
        self.specs = specs
        self.columns = columns
        self.dialect = dialect
        self.table = table
        self.within = within
        self.seen = seen
        self.table_column = dialect.unindexed("table_id") if reads_all else "table_id"
        self.statistics = self.facts("ducklake_file_column_stats", "column_id")

    def facts(self, table: str, key: str, partition_id: int | None = None) -> FileFacts:
        return FileFacts(self.table(table), self.table_id, key, partition_id, self.within, self.table_column)

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
            test = self.statistics_test(wanted)
            yield self.simple(f"statistics of {wanted.path}", self.statistics, wanted.column.id, rows, test)

    def partition(self, spec: PartitionSpec, field: PartitionField, wanted: ColumnIn) -> Iterator[Pruning]:
        type = field.transform.result(wanted.column.type)
        values = field.transform.project(wanted.values, wanted.column.type)
        rows = None if values is None else value_without(values, type, self.dialect)
        if values is None or rows is None:
            return
        trusted = [] if isinstance(field.transform, Identity) else [self.no_file_was_added()]
        if isinstance(field.transform, Bucket):
            trusted.append(self.always_hashed_alike(wanted.column))
        source = self.facts("ducklake_file_partition_value", "partition_key_index", spec.partition_id)
        reason = f"partition {field.transform.describe(wanted.path)}"
        test = None if trusted else self.partition_test(source, field.key_index, values, type)
        yield self.simple(reason, source, field.key_index, _all([rows, *trusted]), test)

    def no_file_was_added(self) -> Condition:
        """The condition that no file of the table was added by its path.

        An added file has the text of its path as partition value, untransformed; so has a file made of it.
        """
        mappings = self.table("ducklake_column_mapping")
        added = f"SELECT COUNT(*) FROM {mappings} WHERE table_id = ? AND {self.seen.mappings}"
        return Condition(f"({added}) = 0", (self.table_id,))

    def always_hashed_alike(self, column: Column) -> Condition:
        """The condition that the column has always had a type with the same buckets.

        A file keeps the buckets of the type that its column had when its rows were written; so do rewritten ones.
        """
        types = same_buckets(column.type)
        placeholders = ", ".join("?" * len(types))
        other = f"table_id = ? AND column_id = ? AND column_type NOT IN ({placeholders}) AND {self.seen.columns}"
        sql = f"(SELECT COUNT(*) FROM {self.table('ducklake_column')} WHERE {other}) = 0"
        return Condition(sql, (self.table_id, column.id, *types))

    def simple(self, reason: str, source: FileFacts, key: int, rows: Condition, zones: ZoneTest | None) -> Pruning:
        keyed = Condition(f"({source.key} = ? AND {rows.sql})", (key, *rows.parameters))
        files = source.files(keyed)
        return Pruning(files.sql, files.parameters, reason, source, keyed, zones)

    def statistics_test(self, wanted: ColumnIn) -> ZoneTest | None:
        """What `statistics_without` says of single files, for many."""
        compared = comparison(wanted.column.type, self.dialect)
        if compared is None or len(compared.readings) != 1:
            return None
        [reading] = compared.readings
        source = ZoneSource(
            self.statistics.table, self.table_id, f"s.column_id = {wanted.column.id}",
            reading("s.min_value"), reading("s.max_value"), "s.value_count = 0 AND s.null_count > 0",
            "CASE WHEN s.null_count = 0 THEN 0 ELSE 1 END", "CASE WHEN s.contains_nan = FALSE THEN 0 ELSE 1 END",
        )  # fmt: skip
        return ZoneTest(source, wanted.values.coarsened(_MOST_INTERVALS), compared)

    def partition_test(self, of: FileFacts, key: int, values: ValueSet, type: Type) -> ZoneTest | None:
        """What `value_without` says of single files, for many."""
        compared = comparison(type, self.dialect)
        if compared is None or len(compared.readings) != 1:
            return None
        value = compared.readings[0]("s.partition_value")
        is_null = "s.partition_value IS NULL"
        source = ZoneSource(
            of.table, self.table_id, f"s.partition_key_index = {key}", value, value, is_null,
            f"CASE WHEN {is_null} THEN 1 ELSE 0 END", "0", of.partition_id,
        )  # fmt: skip
        return ZoneTest(source, values.coarsened(_MOST_INTERVALS), compared)

    def alternatives(self, either: Or) -> Iterator[Pruning]:
        """A file is pruned where every alternative is excluded, by whatever excludes it."""
        excluded = [tuple(self.prunings(child)) for child in either.children]
        if all(excluded):
            every = _all(_any(ways) for ways in excluded)
            reasons = dict.fromkeys(one.reason for ways in excluded for one in ways)
            yield Pruning(every.sql, every.parameters, " and ".join(reasons))


def statistics_without(values: ValueSet, type: Type, dialect: Dialect) -> Condition | None:
    """The condition on rows of statistics that leave none of these values possible."""
    only_nulls = Condition("(value_count = 0 AND null_count > 0)")  # 0 and 0 is what types without statistics have
    outside = _outside("max_value", "min_value", values.coarsened(_MOST_INTERVALS), comparison(type, dialect))
    if outside is not None and values.nan:
        outside = _all([outside, Condition("contains_nan = FALSE")])
    if not values.null:
        return only_nulls if outside is None else _any([only_nulls, outside])
    return None if outside is None else _all([Condition("null_count = 0"), outside])


def value_without(values: ValueSet, type: Type, dialect: Dialect) -> Condition | None:
    """The condition on rows of partition values that are none of these values."""
    compared = comparison(type, dialect)
    null = Condition("partition_value IS NULL")
    listed, rest = _listed(values, compared)
    outside = _outside("partition_value", "partition_value", rest, compared)
    if outside is None or compared is None:
        return None if values.null else null
    conditions = [outside, _not_in("partition_value", listed, compared), Condition("partition_value IS NOT NULL")]
    if values.nan:
        conditions.append(Condition(f"{compared.readings[0]('partition_value')} IS NOT NULL"))
    other = _all(one for one in conditions if one is not None)
    return other if values.null else _any([null, other])


def _outside(greatest: str, least: str, values: ValueSet, compared: Comparison | None) -> Condition | None:
    """No interval meets the values from `least` to `greatest`; None where that is never known."""
    if not values.intervals:
        return _TRUE
    if compared is None:
        return None
    apart = [_apart(greatest, least, one, compared) for one in values.intervals]
    known = [one for one in apart if one is not None]
    return _all(known) if len(known) == len(apart) else None


def _apart(greatest: str, least: str, one: Interval, compared: Comparison) -> Condition | None:
    below = None if one.low is None else compared.below(one.low)
    beyond = None if one.high is None else compared.beyond(one.high)
    ways = [
        _compare(text, bound, compared) for text, bound in ((greatest, below), (least, beyond)) if bound is not None
    ]
    return _any(ways) if ways else None


def _compare(text: str, bound: Bound, compared: Comparison) -> Condition:
    return _all(
        Condition(f"{reading(text)} {bound.operator} {compared.placeholder}", (bound.parameter,))
        for reading in compared.readings
    )


def _listed(values: ValueSet, compared: Comparison | None) -> tuple[tuple[Any, ...], ValueSet]:
    """The single values of a set that can be named one by one, and the rest of the set."""
    if compared is None:
        return (), values
    named = [(one, compared.point(one)) for one in values.intervals]
    points = tuple(point for _, point in named if point is not None)
    if len(points) > _MOST_POINTS:
        return (), values.coarsened(_MOST_INTERVALS)
    rest = ValueSet(tuple(one for one, point in named if point is None), values.null, values.nan)
    return points, rest.coarsened(_MOST_INTERVALS)


def _not_in(text: str, points: tuple[Any, ...], compared: Comparison) -> Condition | None:
    if not points:
        return None
    options = ", ".join([compared.placeholder] * len(points))
    return Condition(f"{compared.readings[0](text)} NOT IN ({options})", points)


def _source_order(one: Pruning) -> tuple[str, int]:
    if one.source is None or one.source.partition_id is None:
        return "", _NO_PARTITION
    return one.source.table, one.source.partition_id


_TRUE = Condition("1 = 1")


def _all(conditions: Iterable[Condition]) -> Condition:
    return _joined(" AND ", conditions)


def _any(conditions: Iterable[Condition]) -> Condition:
    return _joined(" OR ", conditions)


def _joined(joint: str, conditions: Iterable[Condition]) -> Condition:
    parts = list(conditions) or [_TRUE]
    sql = joint.join(part.sql for part in parts)
    return Condition(f"({sql})" if len(parts) > 1 else sql, tuple(p for part in parts for p in part.parameters))
