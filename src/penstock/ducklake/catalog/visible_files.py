"""Finds the data and delete files that a snapshot shows, grouped by how they are read, and pruned in the database."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, ClassVar

import pyarrow as pa

from penstock.ducklake.catalog.databases import Database, Row
from penstock.ducklake.catalog.file_pruning import Condition, Pruning, Seen, keep_condition
from penstock.ducklake.catalog.file_zones import Ranges, few_ranges, zone_of, zones_of
from penstock.ducklake.catalog.inlined_rows import inlined_rows
from penstock.ducklake.catalog.remembered_answers import Moment
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.model.files import DataFile, DeleteFile, DeleteKind, FileGroup, MappedField
from penstock.ducklake.model.objects import ColumnVersion
from penstock.ducklake.model.snapshot_changes import done_to
from penstock.errors import ConflictError, PenstockError, StaleReadError
from penstock.partitioning import PartitionSpec
from penstock.schema.columns import Column
from penstock.storage.paths import resolve
from penstock.storage.stores import split_path

EVERY_FILE = Condition("1 = 1", ())
MANY_FILES = 10_000  # from which on answers are remembered
# The traits of a group but its mapping, as one number.
_KIND = "foreign_file + 2 * partial + 4 * deleted + 8 * unknown + 16 * era"
# Types that Spark reads out of a shredded variant.
_SHREDDED_FOR_SPARK = (
    "boolean", "int8", "int16", "int32", "int64", "float32", "float64", "varchar", "blob", "date", "timestamp",
    "timestamptz",
)  # fmt: skip
# Files under names that no DuckLake writer gives: whether they have field ids, only they themselves tell.
UNKNOWN_FILE = "d.mapping_id IS NULL AND d.path NOT LIKE '%ducklake-________-____-____-____-____________.parquet'"
# Compaction of this kind takes files out of the catalog that older snapshots still showed.
_FILES_REPLACED = ("merge_adjacent", "compacted_table")


_MOST_SPANS = 100  # in one condition, of which SQLite takes so many


@dataclass(frozen=True)
class RowIdSpan:
    """Row ids above `after` and up to `until`, and the spans of snapshots whose files count theirs from `row_id_start`.

    Files of an update carry the ids of their rows, and DuckDB notes a first one for them too, which means nothing.
    """

    after: int
    until: int | None
    counted: tuple[tuple[int, int], ...]

    @property
    def sql(self) -> str:
        """A condition that leaves out files which have none of the ids."""
        longest = sorted(self.counted, key=lambda span: span[0] - span[1])[:_MOST_SPANS]
        snapshots = "".join(f" OR d.begin_snapshot BETWEEN {first} AND {last}" for first, last in longest)
        end = "" if self.until is None else f" OR d.row_id_start > {self.until}"
        outside = f"(d.row_id_start + d.record_count - 1 <= {self.after}{end})"
        # Never NULL: a file that does not tell is kept.
        return f" AND NOT (d.row_id_start IS NOT NULL AND (d.partial_max IS NOT NULL{snapshots}) AND {outside})"


@dataclass(frozen=True)
class FileScope:
    """A table's files at one snapshot, as the catalog stood when the scan was made.

    Files with an id from `next_file_id` on came later: maintenance may date them back, but their rows were seen.
    """

    made_by: ClassVar[str] = "read()"

    database: Database
    table_id: int
    table_path: str
    at: At
    seen_snapshot: int
    next_file_id: int
    eras: tuple[int, ...] = ()
    inlined_deletes: str | None = None
    has_variants: bool = False
    milliseconds: tuple[int, ...] = ()  # the columns and fields that files may hold as milliseconds
    seen_time: datetime | None = field(default=None, compare=False)  # of the snapshot that was seen
    row_ids: RowIdSpan | None = None  # only files that can have rows with these ids

    @property
    def version(self) -> int:
        """The snapshot's id."""
        return self.at.version

    @property
    def seen(self) -> Seen:
        """What of the table's history there was when the scan was made; mappings are counted with the files."""
        own = self.at.own
        staged = "" if own is None else f" OR mapping_id > {own}"
        return Seen(At(self.seen_snapshot, own).begun(), f"(mapping_id < {self.next_file_id}{staged})")

    def groups(self) -> list[FileGroup]:
        """The kinds of files that the snapshot shows. Those of a large table are looked for once a snapshot."""
        if self.seen_time is None or self.at.own is not None:
            return self._groups()
        moment = Moment(self.seen_snapshot, self.seen_time)
        return self.database.answers.answer(self, moment, self._groups, _are_many)

    def _groups(self) -> list[FileGroup]:
        traits, parameters = self._traits()
        dialect = self.database.dialect
        files = f"""(SELECT d.mapping_id AS mapping_id, d.file_size_bytes AS size, {traits}{dialect.fence_column}
                     FROM ducklake_data_file d WHERE {self._shown()} {dialect.fence if dialect.sorts_groups else ""}
                    ) files"""
        given = [*parameters, *self._shown_parameters()]
        if dialect.sorts_groups:  # most tables have one kind of files, and to see that takes no sorting
            some = self.database.query(f"SELECT mapping_id, {_KIND}, 1, size FROM {files} LIMIT 1", given)
            alone = self._only_group(_group(*some[0])) if some else None
            if not some or alone is not None:
                return [alone] if alone is not None else []
        sql = f"""SELECT mapping_id, {_KIND}, count(*), sum(size) FROM {files}
                  GROUP BY mapping_id, foreign_file, partial, deleted, era, unknown
                  ORDER BY 1, foreign_file, partial, deleted, era, unknown"""
        return [_group(*row) for row in self._joined(sql, given)]

    def _only_group(self, group: FileGroup) -> FileGroup | None:
        """A group with its numbers, if all files are of it."""
        where, parameters = self._members(group)
        sql = f"""SELECT count(*), sum(CASE WHEN {where} THEN 1 ELSE 0 END), sum(d.file_size_bytes)
                  FROM ducklake_data_file d WHERE {self._shown()}"""
        [(count, members, size)] = self.database.query(sql, [*parameters, *self._shown_parameters()])
        return replace(group, file_count=count, size_in_bytes=int(size or 0)) if count == members else None

    def has_relative_files(self) -> bool:
        """Whether some file is found by the table's path."""
        sql = f"SELECT count(*) FROM ducklake_data_file d WHERE {self._shown()} AND d.path_is_relative = ?"
        return bool(self.database.value(sql, [*self._shown_parameters(), True]))

    def other_stores(self) -> list[str]:
        """A path in each store that some file of the table is in, where not all files are found by the table's path."""
        found: list[str] = []
        parameters = [*self._shown_parameters(), False, "%://%"]
        while True:
            others = " AND d.path NOT LIKE ? ESCAPE '!'" * len(found)
            sql = f"""SELECT min(d.path) FROM ducklake_data_file d
                      WHERE {self._shown()} AND d.path_is_relative = ? AND d.path LIKE ?{others}"""
            path = self.database.value(sql, parameters)
            if path is None or path in found:
                return found
            found.append(path)
            parameters.append(re.sub("[!%_]", r"!\g<0>", split_path(path)[0]) + "%")

    def data_files(self, group: FileGroup, keep: Condition = EVERY_FILE) -> list[DataFile]:
        """The files of a group that a condition keeps."""
        where, parameters = self._members(group)
        with self._still(group):
            rows = self.database.query(
                f"""SELECT d.data_file_id, d.path, d.path_is_relative, coalesce(d.file_size_bytes, 0), d.row_id_start,
                           d.begin_snapshot, d.encryption_key, {self._changed_in()}
                    FROM ducklake_data_file d WHERE {self._shown(keep)} AND {keep.sql} AND {where}""",
                [*self._shown_parameters(), *keep.parameters, *parameters],
            )
        return [DataFile(r[0], resolve(self.table_path, r[1], bool(r[2])), *r[3:]) for r in rows]

    def count(self, group: FileGroup, keep: Condition) -> int:
        """How many of a group's files a condition keeps."""
        where, parameters = self._members(group)
        sql = f"SELECT count(*) FROM ducklake_data_file d WHERE {self._shown(keep)} AND {keep.sql} AND {where}"
        [(count,)] = self._joined(sql, [*self._shown_parameters(), *keep.parameters, *parameters])
        return int(count)

    def zones_left(self, group: FileGroup, prunings: Sequence[Pruning]) -> Ranges | None:
        """The ids of files that are left by what is known of many files at once; None where that is nothing."""
        tests = [pruning.zones for pruning in prunings if pruning.zones is not None]
        if not tests or group.file_count < MANY_FILES or self.seen_time is None or self.at.own is not None:
            return None
        moment = Moment(self.seen_snapshot, self.seen_time)
        known = zones_of(self.database).kept(self.database, tests, moment, self.next_file_id)
        return self._partitions_left(group, prunings) if known is None else known

    def _partitions_left(self, group: FileGroup, prunings: Sequence[Pruning]) -> Ranges | None:
        """The same by partition values, which are one a file: of the files that they leave, statistics are asked."""
        told = [
            pruning for pruning in prunings if pruning.source is not None and pruning.source.partition_id is not None
        ]
        if not told or len(told) == len(prunings):
            return None
        keep = keep_condition(told)
        where, parameters = self._members(group)
        sql = f"""SELECT DISTINCT {zone_of("d.data_file_id")} FROM ducklake_data_file d
                  WHERE {self._shown()} AND {keep.sql} AND {where}"""
        rows = self._joined(sql, [*self._shown_parameters(), *keep.parameters, *parameters])
        return few_ranges(sorted(row[0] for row in rows), self.next_file_id)

    def fills_catalog(self, group: FileGroup) -> bool:
        """Whether most files that the catalog has ever known are of a group, and these are many."""
        return group.file_count >= MANY_FILES and 2 * group.file_count > self.next_file_id

    def total(
        self, group: FileGroup, query: Callable[[Condition], Condition], keep: Condition = EVERY_FILE
    ) -> tuple[Any, ...]:
        """The one row of a query over the files `d` of a group that a condition keeps, which it is made of."""
        where, parameters = self._members(group)
        sql = f"{self._shown(keep)} AND {keep.sql} AND {where}"
        asked = query(Condition(sql, (*self._shown_parameters(), *keep.parameters, *parameters)))
        with self._still(group):
            return tuple(self.database.query(asked.sql, asked.parameters)[0])

    def delete_kinds(self, group: FileGroup) -> list[DeleteKind]:
        """The kinds of delete files that a group's files have."""
        where, parameters = self._delete_files(group)
        rows = self._joined(
            f"""SELECT x.format, CASE WHEN x.encryption_key IS NULL THEN 0 ELSE 1 END AS encrypted, sum(x.delete_count)
                FROM {where} GROUP BY x.format, CASE WHEN x.encryption_key IS NULL THEN 0 ELSE 1 END ORDER BY 1, 2""",
            parameters,
        )
        kinds = {(r[0], bool(r[1])): int(r[2] or 0) for r in rows}
        for format_, encrypted in list(kinds):
            if format_ == "puffin":  # a later delete or flush puts a Parquet file in its place
                kinds.setdefault(("parquet", encrypted), 0)
        return [DeleteKind(*kind, count) for kind, count in kinds.items()]

    def delete_files(
        self, group: FileGroup, kinds: Sequence[DeleteKind], keep: Condition = EVERY_FILE
    ) -> list[DeleteFile]:
        """The delete files of a group's files that a condition keeps. `kinds` are those that there were."""
        where, parameters = self._delete_files(group)
        with self._still(group):
            rows = self.database.query(
                f"""SELECT x.data_file_id, x.path, x.path_is_relative, coalesce(x.file_size_bytes, 0), x.format,
                           x.encryption_key, x.begin_snapshot, {self._last_told()}
                    FROM {where} AND {keep.sql}""",
                [*parameters, *keep.parameters],
            )
        files = [DeleteFile(r[0], resolve(self.table_path, r[1], bool(r[2])), *r[3:]) for r in rows]
        if not all(any(kind.is_of(file) for kind in kinds) for file in files):
            raise self._stale("the table's delete files were written anew")
        return files

    def inlined_delete_rows(self) -> list[tuple[int, int, int]]:
        """(data file, position, snapshot) of the deletes that are kept in the catalog itself."""
        if self.inlined_deletes is None:
            return []
        table = self.database.identifier(self.inlined_deletes)
        rows = self.database.query(
            f"SELECT file_id, row_id, begin_snapshot FROM {table} WHERE {self._inlined_applied()}"
        )
        return [(row[0], row[1], row[2]) for row in rows]

    def inlined_rows(
        self, columns: Sequence[Column], history: Sequence[ColumnVersion], *, nanoseconds: bool
    ) -> list[pa.Table]:
        """The rows that live in the catalog itself: columns `v0, v1, ...` of the given columns, and `row_id`."""
        return inlined_rows(self.database, self.table_id, self.at, columns, history, nanoseconds=nanoseconds)

    def mapping(self, mapping_id: int) -> list[MappedField]:
        """The fields of a name mapping."""
        return name_mapping(self.database, mapping_id)

    def _joined(self, sql: str, parameters: Sequence[Any]) -> list[Row]:
        """All rows of a query of files by what other tables know of them."""
        with self.database.joining():
            return self.database.query(sql, parameters)

    @contextmanager
    def _still(self, group: FileGroup) -> Iterator[None]:
        """One state of the database, in which the files are still those that the scan was made for."""
        with self.database.consistent(), self.database.joining():
            self._check(group)
            yield

    def _check(self, group: FileGroup) -> None:
        numbers = ", ".join(map(str, {*self._needed(), self.seen_snapshot}))
        sql = f"SELECT snapshot_id, snapshot_time FROM ducklake_snapshot WHERE snapshot_id IN ({numbers})"
        times: dict[int, Any] = dict(self.database.query(sql))
        for version in self._needed():
            if version not in times:
                raise self._stale(f"snapshot {version} was expired")
        later = "SELECT snapshot_id, changes_made FROM ducklake_snapshot_changes WHERE snapshot_id > ?"
        snapshots: dict[int, str | None] = dict(self.database.query(later, [self.seen_snapshot]))
        if self._was_put_back(times.get(self.seen_snapshot), bool(snapshots)):
            raise self._stale("the catalog was put back to an older state")
        merged = any(_replaces_files(text, self.table_id) for text in snapshots.values())
        # Of snapshots that were expired nobody knows what they did.
        all_known = len(snapshots) == max(snapshots, default=self.seen_snapshot) - self.seen_snapshot
        if merged or not (all_known or self.count(group, EVERY_FILE) == group.file_count):
            raise self._stale("the table's files were replaced")

    def _was_put_back(self, time: Any, has_later: bool) -> bool:
        """Whether the snapshot that was seen is another one by now; of one that was expired there are later ones."""
        if self.seen_time is None:
            return False
        return self.database.time(time) != self.seen_time if time is not None else not has_later

    def _stale(self, event: str) -> PenstockError:
        """The error of a scan that cannot be run any more."""
        return StaleReadError(f"{event} since this DataFrame was made; call {self.made_by} again")

    def _shown(self, keep: Condition = EVERY_FILE) -> str:
        """The data files that the scope is of, for a query of those that a condition keeps."""
        known = "d.data_file_id < ?" + (f" OR d.begin_snapshot = {self.at.own}" if self.at.own else "")
        table = self.database.dialect.unindexed("d.table_id") if keep.by_ids else "d.table_id"
        return f"{table} = ? AND {self._chosen()} AND ({known}){self.row_ids.sql if self.row_ids else ''}"

    def _needed(self) -> tuple[int, ...]:
        return (self.version,)

    def _chosen(self) -> str:
        """The data files that the scope is of."""
        return self.at.visible("d")

    def _partial(self) -> str:
        """The data files whose rows must be told apart by the snapshot that they carry; never NULL."""
        return f"(d.partial_max IS NOT NULL AND d.partial_max > {self.version})"

    def _applied(self, alias: str) -> str:
        """The delete files that hold the deletes of the scope's files."""
        return self.at.visible(alias)

    def _last_told(self) -> str:
        """Up to which snapshot a delete file's positions count: one that the transaction staged counts whole."""
        own = self.at.own
        return (
            str(self.version) if own is None else f"CASE WHEN x.partial_max = {own} THEN {own} ELSE {self.version} END"
        )

    def _inlined_applied(self) -> str:
        return self.at.begun()

    def _changed_in(self) -> str:
        return "NULL"

    def _shown_parameters(self) -> list[Any]:
        return [self.table_id, self.next_file_id]

    def _traits(self) -> tuple[str, list[Any]]:
        deleted, parameters = self._deleted()
        foreign, foreign_parameters = self._foreign()
        sql = f"""CASE WHEN {foreign} THEN 1 ELSE 0 END AS foreign_file,
                  CASE WHEN {self._partial()} THEN 1 ELSE 0 END AS partial,
                  CASE WHEN {deleted} THEN 1 ELSE 0 END AS deleted, {self._era()} AS era,
                  CASE WHEN {UNKNOWN_FILE} THEN 1 ELSE 0 END AS unknown"""
        return sql, [*foreign_parameters, *parameters]

    def _members(self, group: FileGroup) -> tuple[str, list[Any]]:
        """The condition of a group, written so that a plain table's is short."""
        deleted, parameters = self._deleted()
        foreign, foreign_parameters = self._foreign()
        conditions = [
            "d.mapping_id IS NULL" if group.mapping_id is None else f"d.mapping_id = {group.mapping_id}",
            f"{'' if group.foreign else 'NOT '}({foreign})",
            f"{'' if group.partial else 'NOT '}{self._partial()}",
            f"{self._era()} = {group.era}",
            f"{'' if group.deleted else 'NOT '}({deleted})",
            f"{'' if group.unknown else 'NOT '}({UNKNOWN_FILE})",
        ]
        return " AND ".join(conditions), [*foreign_parameters, *parameters]

    def _foreign(self) -> tuple[str, list[Any]]:
        """Encrypted files, and those with what Spark's reader refuses: shredded variants, infinite milliseconds."""
        conditions = ["d.encryption_key IS NOT NULL"]
        if self.has_variants:
            known = ", ".join(f"'{name}'" for name in _SHREDDED_FOR_SPARK)
            conditions.append(
                f"""d.data_file_id IN (SELECT data_file_id FROM ducklake_file_variant_stats
                    WHERE table_id = ? AND shredded_type NOT IN ({known}) AND shredded_type NOT LIKE 'decimal%')"""
            )
        if self.milliseconds:
            conditions.append(
                f"""d.data_file_id IN (SELECT data_file_id FROM ducklake_file_column_stats
                    WHERE table_id = ? AND column_id IN ({", ".join(map(str, self.milliseconds))})
                    AND (min_value = '-infinity' OR max_value = 'infinity'))"""
            )
        return " OR ".join(conditions), [self.table_id] * (len(conditions) - 1)

    def _era(self) -> str:
        whens = " ".join(f"WHEN d.begin_snapshot < {start} THEN {era}" for era, start in enumerate(self.eras))
        return f"CASE {whens} ELSE {len(self.eras)} END" if whens else "0"

    def _deleted(self) -> tuple[str, list[Any]]:
        # NULL in the list would make it unknown of each other file whether it is there.
        shown = f"x.table_id = ? AND {self._applied('x')} AND data_file_id IS NOT NULL"
        sql = f"d.data_file_id IN (SELECT data_file_id FROM ducklake_delete_file x WHERE {shown})"
        parameters = [self.table_id]
        if self.inlined_deletes is None:
            return sql, parameters
        table = self.database.identifier(self.inlined_deletes)
        return f"{sql} OR d.data_file_id IN (SELECT file_id FROM {table} WHERE {self._inlined_applied()})", [
            *parameters
        ]

    def _delete_files(self, group: FileGroup) -> tuple[str, list[Any]]:
        where, parameters = self._members(group)
        sql = f"""ducklake_delete_file x JOIN ducklake_data_file d ON d.data_file_id = x.data_file_id
                  WHERE x.table_id = ? AND {self._applied("x")} AND {self._shown()} AND {where}"""
        return sql, [self.table_id, *self._shown_parameters(), *parameters]


@dataclass(frozen=True)
class TargetFiles(FileScope):
    """The files of a table whose rows a statement changes."""

    def _stale(self, event: str) -> PenstockError:
        return ConflictError(f"{event} by another writer while rows of them were changed; repeat what you did")


def _group(mapping_id: int | None, kind: int, count: int, size: int | None) -> FileGroup:
    foreign, partial, deleted, unknown = (bool(kind & bit) for bit in (1, 2, 4, 8))
    return FileGroup(mapping_id, foreign, partial, deleted, kind >> 4, count, int(size or 0), unknown)


def _are_many(groups: Sequence[FileGroup]) -> bool:
    return sum(group.file_count for group in groups) >= MANY_FILES


def _replaces_files(changes: str | None, table_id: int) -> bool:
    kinds = done_to(table_id, changes)
    # A second delete is noted as a merge too, but its delete files tell the same of older snapshots as those before.
    return not kinds.isdisjoint(_FILES_REPLACED) and "deleted_from_table" not in kinds


def name_mapping(database: Database, mapping_id: int) -> list[MappedField]:
    """The fields of a name mapping."""
    rows = database.query(
        """SELECT column_id, source_name, target_field_id, parent_column, is_partition FROM ducklake_name_mapping
           WHERE mapping_id = ?""",
        [mapping_id],
    )
    return [MappedField(r[0], r[1], r[2], r[3], bool(r[4])) for r in rows]


def partitions_of_files(
    database: Database, at: At, table_id: int, spec: PartitionSpec
) -> dict[int, tuple[str | None, ...]]:
    """The partition of each data file that was written under a partitioning: the values of its key, in order."""
    sql = f"""SELECT v.data_file_id, v.partition_key_index, v.partition_value
              FROM ducklake_file_partition_value v JOIN ducklake_data_file f ON f.data_file_id = v.data_file_id
              WHERE f.table_id = ? AND f.partition_id = ? AND {at.visible("f")}"""
    with database.joining():
        rows = database.query(sql, [table_id, spec.partition_id])
    found: dict[int, dict[int, str | None]] = {}
    for file, place, value in rows:
        found.setdefault(file, {})[place] = value
    places = [field.key_index for field in spec.fields]
    return {file: tuple(values.get(place) for place in places) for file, values in found.items()}
