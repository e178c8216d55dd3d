"""Keeps the bounds of many files together, so that a query of a large table looks at few of them one by one.

A zone is a thousand data files, by their ids. What the catalog says of a file's values never changes, and new files get
greater ids: what was found of a zone stays true. It tells less after some of its files are gone, but nothing wrong.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from weakref import WeakKeyDictionary

from penstock.ducklake.catalog.bound_comparisons import Bound, Comparison
from penstock.ducklake.catalog.databases import Database, Row
from penstock.ducklake.catalog.remembered_answers import Moment
from penstock.ducklake.catalog.snapshots import has_snapshot
from penstock.predicates.values import Interval, ValueSet

ZONE = 1000
_MOST_SOURCES = 64
_MOST_RANGES = 64
_FEW_ZONES = 10  # whose files are quickly looked at one by one
_SAMPLE = 8  # zones that tell whether the others are worth finding
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
Ranges = tuple[tuple[int, int | None], ...]  # of ids, each without its end; the last may have none


def in_ranges(column: str, ranges: Ranges) -> str:
    """SQL that is true for ids in some of the ranges."""
    parts = (f"{column} >= {first}" + ("" if end is None else f" AND {column} < {end}") for first, end in ranges)
    return "(" + " OR ".join(f"({part})" for part in parts) + ")"


def zone_of(column: str) -> str:
    """SQL for the first id of an id's zone."""
    return f"{column} - {column} % {ZONE}"


@dataclass(frozen=True)
class ZoneSource:
    """Rows `s` of a catalog table that tell the bounds of a table's files, in SQL: one a file, by a key.

    Rows that are `empty` have no bounds because the file has no values. `partition` is the partitioning of files that
    have such rows, where they are partition values.
    """

    table: str
    table_id: int
    key: str
    least: str
    greatest: str
    empty: str
    nulls: str
    nans: str
    partition: int | None = None

    def zones(self, database: Database, within: Ranges) -> list[Zone]:
        """The zones of files with certain ids. One without files of the table is left out."""
        dialect = database.dialect
        other = "0" if self.partition is None else f"CASE WHEN d.partition_id = {self.partition} THEN 0 ELSE 1 END"
        # To read a text is what takes long.
        greatest = "least" if self.is_one_value else "greatest"
        second = "" if self.is_one_value else f"CASE WHEN {self.empty} THEN NULL ELSE {self.greatest} END AS greatest,"
        sql = f"""SELECT zone, count(told) - count(*), sum(bounded), count(least), count({greatest}), min(least),
                         max({greatest}), sum(nulls), sum(nans), sum(other)
                  FROM (SELECT {zone_of("d.data_file_id")} AS zone, s.data_file_id AS told,
                               CASE WHEN {self.empty} THEN 0 ELSE 1 END AS bounded,
                               CASE WHEN {self.empty} THEN NULL ELSE {self.least} END AS least, {second}
                               {self.nulls} AS nulls, {self.nans} AS nans, {other} AS other {dialect.fence_column}
                        FROM ducklake_data_file d LEFT JOIN {self.table} s
                          ON s.table_id = d.table_id AND s.data_file_id = d.data_file_id AND {self.key}
                        WHERE d.table_id = {self.table_id} AND {in_ranges("d.data_file_id", within)}
                        {dialect.fence}) files
                  GROUP BY zone ORDER BY zone"""
        with database.joining():
            return [self._zone(row) for row in database.query(sql)]

    @property
    def is_one_value(self) -> bool:
        """Whether a row tells one value and no bounds. NaN is one that is not read."""
        return self.least == self.greatest

    def _zone(self, row: Row) -> Zone:
        first, untold, bounded, leasts, greatests, least, greatest, nulls, nans, others = row
        known = untold == 0 and others == 0
        nan = bool(nans) or (self.is_one_value and leasts != bounded)
        return Zone(first, known, leasts == bounded, greatests == bounded, least, greatest, bool(nulls), nan)


@dataclass(frozen=True)
class Zone:
    """What is known of the files of a zone; the bounds are None where no file has values."""

    first: int
    is_known: bool  # of every file
    knows_least: bool
    knows_greatest: bool
    least: Any
    greatest: Any
    nulls: bool
    nans: bool


@dataclass(frozen=True)
class ZoneTest:
    """A source, and the values that are wanted: a zone without any of them need not be looked at."""

    source: ZoneSource
    values: ValueSet
    compared: Comparison

    def excludes(self, zone: Zone) -> bool:
        """Whether each file of the zone is known to have none of the values."""
        if not zone.is_known or (self.values.null and zone.nulls) or (self.values.nan and zone.nans):
            return False
        return all(self._apart(zone, one) for one in self.values.intervals)

    def _apart(self, zone: Zone, one: Interval) -> bool:
        below = None if one.low is None else self.compared.below(one.low)
        beyond = None if one.high is None else self.compared.beyond(one.high)
        return (zone.knows_greatest and _holds(zone.greatest, below)) or (
            zone.knows_least and _holds(zone.least, beyond)
        )


def _holds(value: Any, bound: Bound | None) -> bool:
    """Whether a bound holds for a value as the database gives it; none is needed where no file has values."""
    if bound is None:
        return False
    if value is None:
        return True
    parameter = bound.parameter
    if isinstance(value, bytes) and isinstance(parameter, str):
        parameter = parameter.encode()
    elif isinstance(value, Decimal) and isinstance(parameter, str):
        parameter = Decimal(parameter)
    elif isinstance(value, str | bytes) != isinstance(parameter, str | bytes):
        return False
    return _OPERATORS[bound.operator](value, parameter)


@dataclass
class _Known:
    """The zones of a source, of files with ids below `end`; none before it is asked for again."""

    zones: list[Zone] = field(default_factory=list)
    end: int = 0


@dataclass
class FileZones:
    """The zones of a catalog that were asked for. Each call takes the database's lock, which guards them too.

    They do not hold the database: they go when it does.
    """

    _moment: Moment | None = None  # when they were true
    _known: dict[ZoneSource, _Known] = field(default_factory=dict)

    def kept(self, database: Database, tests: Sequence[ZoneTest], moment: Moment, next_file_id: int) -> Ranges | None:
        """The ids of files that the tests leave; None where that is not known, or would be many ranges.

        At the moment all ids below `next_file_id` were given. The first question for a source is answered only where to
        find its zones takes no longer than to look at its files once, and they are worth it. As soon as few zones are
        left, no other source is asked.
        """
        with database.consistent():
            if self._moment is not None and not has_snapshot(database, self._moment):
                # A catalog may be put back to an older state, and go on from there: its files are others then.
                self._moment, self._known = None, {}
            if not has_snapshot(database, moment):
                return None
            if self._moment is None or moment.snapshot > self._moment.snapshot:
                self._moment = moment  # first: a question that fails may have found some zones
            end = next_file_id - next_file_id % ZONE
            told = self._told(database, tests, end)
            return few_ranges(sorted(_left(told)), end) if told else None

    def _told(self, database: Database, tests: Sequence[ZoneTest], end: int) -> list[tuple[ZoneTest, list[Zone]]]:
        """Tests with the zones before an id: as many as are needed of those whose zones are known, or worth finding."""
        told: list[tuple[ZoneTest, list[Zone]]] = []
        for test in sorted(tests, key=self._effort):
            if told and len(_left(told)) <= _FEW_ZONES:
                break
            asked = self._was_asked_for(test.source)
            if asked or (database.dialect.summarizes_first and _is_worth(database, test, end)):
                told.append((test, [zone for zone in self._zones(database, test.source, end) if zone.first < end]))
        return told

    def _effort(self, test: ZoneTest) -> tuple[bool, bool]:
        """What is known goes first, and partition values before bounds: they are fewer."""
        known = self._known.get(test.source)
        return known is None or not known.zones, test.source.partition is None

    def _was_asked_for(self, source: ZoneSource) -> bool:
        if source in self._known:
            return True
        if len(self._known) >= _MOST_SOURCES:
            self._known = {}
        self._known[source] = _Known()
        return False

    def _zones(self, database: Database, source: ZoneSource, end: int) -> list[Zone]:
        known = self._known[source]
        if known.end < end:
            known.zones.extend(source.zones(database, ((known.end, end),)))
            known.end = end
        return known.zones


def _left(told: Sequence[tuple[ZoneTest, Sequence[Zone]]]) -> set[int]:
    """The zones that no test excludes, by their first ids."""
    return set.intersection(*({zone.first for zone in zones if not test.excludes(zone)} for test, zones in told))


def _is_worth(database: Database, test: ZoneTest, end: int) -> bool:
    """Whether a few zones, from everywhere, show that a test excludes most of them."""
    count = end // ZONE
    places = sorted({number * count // _SAMPLE for number in range(_SAMPLE)})
    zones = test.source.zones(database, tuple((place * ZONE, place * ZONE + ZONE) for place in places))
    return 2 * sum(map(test.excludes, zones)) > len(zones)


def few_ranges(firsts: Sequence[int], end: int) -> Ranges | None:
    """The zones that begin so, in order, and all files from an id on; None where that would be many ranges."""
    ranges = _joined(firsts, end)
    return ranges if len(ranges) <= _MOST_RANGES else None


def _joined(firsts: Iterable[int], end: int) -> Ranges:
    """Zones as ranges of ids, and all that come after the last known one."""
    joined: list[tuple[int, int]] = []
    for first in firsts:
        start = joined.pop()[0] if joined and joined[-1][1] == first else first
        joined.append((start, first + ZONE))
    return (*joined, (end, None))


_zones: WeakKeyDictionary[Database, FileZones] = WeakKeyDictionary()


def zones_of(database: Database) -> FileZones:
    """The zones that are known of an open catalog."""
    return _zones.setdefault(database, FileZones())
