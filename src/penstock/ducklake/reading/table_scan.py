"""Reads a table at a snapshot as a DataFrame: one branch for each kind of file that must be read in its own way."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from penstock.ducklake.attachment import Attachment, KnownKinds
from penstock.ducklake.catalog.inlined_rows import inlined_delete_table
from penstock.ducklake.catalog.objects import column_versions, columns_at, partition_specs
from penstock.ducklake.catalog.snapshots import latest_snapshot
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.catalog.visible_files import FileScope, TargetFiles
from penstock.ducklake.files.sealed_keys import Seal
from penstock.ducklake.model.files import DataFile, DeleteKind, FileGroup, MappedField
from penstock.ducklake.model.objects import TableInfo
from penstock.ducklake.reading.catalog_aggregates import AnsweringPlanner
from penstock.ducklake.reading.column_layout import ColumnLayout, shown_schema
from penstock.ducklake.reading.deleted_positions import DELETED_FILE, DELETED_POSITION, deleted_positions
from penstock.ducklake.reading.duckdb_reader import DUCKDB_FILE, duckdb_file, read_rows
from penstock.ducklake.reading.duckdb_rows import shown_columns, to_frame, transfer_schema
from penstock.ducklake.reading.file_planner import FilePlanner
from penstock.ducklake.reading.file_types import (
    bare_columns,
    conversions_for,
    field_types,
    file_kinds,
    names_of,
    opaque_columns,
    types_of,
    unsure_columns,
)
from penstock.ducklake.reading.initial_defaults import EXISTS_DEFAULT, default_sql, spark_can_fill
from penstock.ducklake.reading.name_mapping import MappedReading, mapped_reading, mapping_by_position, source_names
from penstock.ducklake.reading.planned_deletes import PlannedDeletes, are_readable, inlined_positions
from penstock.ducklake.reading.row_conversion import Reading
from penstock.ducklake.reading.scan_columns import CHANGED_IN, FILE, POSITION, ROW_ID, ROW_ID_SQL, ROW_ID_START
from penstock.ducklake.transaction import Shown
from penstock.errors import NotFoundError, UnsupportedError
from penstock.partitioning import PartitionSpec
from penstock.schema.columns import Column
from penstock.schema.embedded_columns import (
    EMBEDDED_ROW_ID,
    EMBEDDED_ROW_ID_FIELD,
    EMBEDDED_SNAPSHOT_ID,
    EMBEDDED_SNAPSHOT_ID_FIELD,
)
from penstock.spark.connect.file_lists import NO_FILTERS
from penstock.spark.connect.sessions import is_connect
from penstock.spark.expressions import spark_quoted
from penstock.spark.jvm import file_index
from penstock.spark.local_rows import empty_frame
from penstock.spark.projection import SqlColumn, named, projected
from penstock.spark.relation import file_rows, parquet_rows
from penstock.spark.stores import prepare_other_store
from penstock.spark.types import FIELD_ID
from penstock.spark.workers import map_in_workers
from penstock.storage.paths import is_local

Answer = Callable[[FilePlanner], Callable[[str], str]]
ConstantsOf = Callable[[DataFile], tuple[object, ...]]
Files = frozenset[int] | None  # some files of a group, or all
_BARE = -1  # no column has this id: under it are the names of columns in files without field ids
_EMBEDDED_FIELD_IDS = {
    EMBEDDED_ROW_ID: EMBEDDED_ROW_ID_FIELD,
    EMBEDDED_SNAPSHOT_ID: EMBEDDED_SNAPSHOT_ID_FIELD,
}


@dataclass(frozen=True)
class TableContents:
    """What the catalog says of a table at a snapshot, read in one consistent state of the database."""

    groups: Sequence[FileGroup]
    delete_kinds: Mapping[FileGroup, Sequence[DeleteKind]]
    inlined_deletes: Sequence[tuple[int, int, int]]
    inlined: Sequence[pa.Table]
    mappings: Mapping[int, Sequence[MappedField]]


@dataclass(frozen=True)
class BranchRows:
    """Rows of one kind of file, and over them the columns as shown; with deleted rows, unless they are left out.

    Where deletes or row ids need them, the frame also has each row's file and its position there.
    """

    frame: DataFrame
    shown: Sequence[SqlColumn]
    planner: FilePlanner
    index: Any
    left_out: bool = False


@dataclass(frozen=True)
class TableScan:
    """What a read needs: the files, the columns, and the partition specifications that files were written with."""

    spark: SparkSession
    scope: FileScope
    layout: ColumnLayout
    specs: Sequence[PartitionSpec]
    table_name: str
    known_kinds: KnownKinds
    row_ids: bool = False
    addresses: bool = False  # whether rows carry their file and position; for inlined rows no file, and the row id
    filters: str = NO_FILTERS  # of the columns as shown: what a Spark Connect session chooses files by
    without: frozenset[int] = frozenset()  # files that are left out, for the same

    def contents(self) -> TableContents:
        """Ask the catalog what the table holds. Call it inside `Database.consistent()`."""
        groups = self.scope.groups()
        if groups:
            self._check_folder()
        if any(group.is_of_others for group in groups):
            for path in self.scope.other_stores():
                prepare_other_store(self.spark, path, self.scope.table_path)
        deleted = [group for group in groups if group.deleted]
        mapped = {group.mapping_id for group in groups if group.mapping_id is not None}
        return TableContents(
            groups,
            {group: self.scope.delete_kinds(group) for group in deleted},
            self.scope.inlined_delete_rows() if deleted else (),
            self._inlined_rows(),
            {mapping_id: self.scope.mapping(mapping_id) for mapping_id in mapped},
        )

    def _check_folder(self) -> None:
        path = self.scope.table_path
        if is_local(path) and not os.path.isdir(path.removeprefix("file://")) and self.scope.has_relative_files():
            raise NotFoundError(
                f"the files of {self.table_name} are gone: there is no folder {path}; bring it back, or attach with "
                "data_path where the files are now and override_data_path=True"
            )

    def _inlined_rows(self) -> list[pa.Table]:
        scope, layout = self.scope, self.layout
        columns, history, nanoseconds = layout.columns, layout.history, layout.nanoseconds
        return scope.inlined_rows(columns, history, nanoseconds=nanoseconds)

    def frame(self, contents: TableContents) -> DataFrame:
        """The table's rows; nothing is read before Spark runs a query on them."""
        branches = [
            self._finished(rows, group, contents)
            for group in contents.groups
            for rows in self.rows(group, contents, self._answer(group, contents))
        ]
        branches += [self._from_inlined(rows) for rows in contents.inlined]
        if not branches:
            return empty_frame(self.spark, self.schema)
        return reduce(DataFrame.union, branches)

    def _answer(self, group: FileGroup, contents: TableContents) -> Answer:
        """Lets Spark's reader leave out deleted rows; where it cannot, `_finished` does."""
        if is_connect(self.spark):
            return AnsweringPlanner
        by_duckdb = group.foreign or self.layout.only_duckdb_reads(group.era)
        if not group.deleted or by_duckdb or not are_readable(contents.delete_kinds[group]):
            return AnsweringPlanner
        kinds, inlined = contents.delete_kinds[group], inlined_positions(contents.inlined_deletes)
        return lambda planner: PlannedDeletes(planner, kinds, inlined)

    @property
    def schema(self) -> T.StructType:
        """The schema of `frame`."""
        schema = shown_schema(self.layout.columns, Reading(self.layout.nanoseconds))
        for name in [ROW_ID] * self.row_ids + [FILE, POSITION] * self.addresses:
            schema.add(name, T.LongType())
        return schema

    def rows(self, group: FileGroup, contents: TableContents, answer: Answer = AnsweringPlanner) -> list[BranchRows]:
        """The rows of a group's files. `answer` may put something between Spark's question and the planner."""
        if group.foreign or self.layout.only_duckdb_reads(group.era):
            if group.mapping_id is not None:
                raise UnsupportedError(
                    f"{self.table_name} has added files that only DuckDB can read (a column became JSON, a variant "
                    "holds a type Spark does not know, a timestamp_ms is infinite), and those are not read by a name "
                    "mapping; let DuckDB write them anew: CREATE TABLE ... AS FROM the table"
                )
            return [self._by_duckdb(group, answer)]
        if group.mapping_id is not None:
            return self._mapped(group, contents.mappings[group.mapping_id], answer)
        return self._of_others(group, answer) if group.unknown else self._by_field_id(group, answer)

    def _by_field_id(self, group: FileGroup, answer: Answer, only: Files = None) -> list[BranchRows]:
        if self.layout.is_unsure(group.era):
            return self._unsure(group, answer, only)
        return [self._native(group, self.layout.reading(group.era), None, answer, only)]

    def _of_others(self, group: FileGroup, answer: Answer) -> list[BranchRows]:
        """Branches for the files that have field ids, and for each kind of file that has not."""
        files = self.scope.data_files(group)
        known = self._kinds((_BARE,), files, partial(bare_columns, self.spark))
        kinds: dict[tuple[MappedField, ...], set[int]] = {}
        for file in files:
            columns = columns_at(self.layout.history, At(file.begin_snapshot))
            mapping = mapping_by_position(columns, names_of(known[file.id]))
            kinds.setdefault(mapping, set()).add(file.id)
        branches = []
        for mapping, ids in kinds.items():
            only = frozenset(ids)
            branches += (
                self._mapped(group, mapping, answer, only) if mapping else self._by_field_id(group, answer, only)
            )
        return branches

    def _mapped(
        self, group: FileGroup, mapping: Sequence[MappedField], answer: Answer, only: Files = None
    ) -> list[BranchRows]:
        """A branch for each kind of file of one mapping that there is."""
        columns, nanoseconds = self.layout.columns, self.layout.nanoseconds
        promotions = self.layout.reading(group.era).columns
        unsure = tuple(column.id for column in unsure_columns(columns))
        if not unsure:
            mapped = mapped_reading(columns, mapping, nanoseconds, promotions)
            return [self._native(group, mapped.reading, mapped, answer, only)]
        files = self._files(group, only)
        known = self._kinds(unsure, files, partial(file_kinds, self.spark, columns, source_names(mapping)))
        branches = []
        for kinds in sorted({known[file.id] for file in files}):
            conversions = {**promotions, **conversions_for(kinds, columns, nanoseconds)}
            mapped = mapped_reading(columns, mapping, nanoseconds, conversions)
            of_kind = frozenset(file.id for file in files if known[file.id] == kinds)
            branches.append(self._native(group, mapped.reading, mapped, answer, of_kind))
        return branches

    def _kinds(
        self, question: tuple[int, ...], files: Sequence[DataFile], ask: Callable[[Sequence[DataFile]], dict[int, str]]
    ) -> dict[int, str]:
        """What files say of themselves, by their ids; each is asked once."""
        known = self.known_kinds.setdefault(question, {})
        new = {file.id: file for file in files if (file.id, file.path) not in known}
        known.update({(id, new[id].path): answer for id, answer in ask(list(new.values())).items()})
        return {file.id: known[file.id, file.path] for file in files}

    def _files(self, group: FileGroup, only: Files) -> list[DataFile]:
        return [file for file in self.scope.data_files(group) if only is None or file.id in only]

    def _unsure(self, group: FileGroup, answer: Answer, only: Files = None) -> list[BranchRows]:
        """A branch for each kind of file of a snapshot that changed columns too."""
        questions = self.layout.questions
        files = self._files(group, only)
        # No column has the id 0: these are other answers.
        known = self._kinds((0, *questions), files, partial(field_types, self.spark, questions))
        branches = []
        for held in sorted({known[file.id] for file in files}):
            of_kind = frozenset(file.id for file in files if known[file.id] == held)
            branches.append(self._native(group, self.layout.reading_of(types_of(held)), None, answer, of_kind))
        return branches

    def _native(
        self,
        group: FileGroup,
        reading: Reading,
        mapped: MappedReading | None,
        answer: Answer,
        files: Files = None,
    ) -> BranchRows:
        """Spark's own Parquet scan, of certain files only if they are given."""
        numbered = self._numbered(group)
        numbers = [T.StructField(name, T.LongType()) for name in (FILE, ROW_ID_START, CHANGED_IN) if numbered]
        constants = T.StructType([*numbers, *(mapped.constants.fields if mapped else [])])

        def constants_of(file: DataFile) -> tuple[object, ...]:
            own = (file.id, file.row_id_start, file.changed_in) if numbered else ()
            return (*own, *mapped.constants_of(file.path)) if mapped else own

        planner = self._planner(group, reading.names, constants_of)
        if files is not None:
            planner = replace(planner, files=files, opaque=opaque_columns(self.layout.columns, reading.columns))
        schema = self._file_schema(group, reading, mapped)
        shown = [self._shown(column, reading, mapped) for column in self.layout.columns]
        computed = {
            item.sql: reading.read_name(column)
            for item, column in zip(shown, self.layout.columns, strict=True)
            if not (reading.is_shown_as_read(column) or (mapped and column.id in mapped.hive))
        }
        asked = answer(planner)
        index, left_out = self._index(asked, constants, computed, group), isinstance(asked, PlannedDeletes)
        return BranchRows(
            parquet_rows(self.spark, index, schema, with_deletes=left_out), shown, planner, index, left_out
        )

    def _planner(self, group: FileGroup, names: Mapping[int, str], constants_of: ConstantsOf) -> FilePlanner:
        columns = self.layout.columns
        asked = {} if is_connect(self.spark) else names  # where it is Spark that asks
        return FilePlanner(
            self.scope, self.specs, group, columns, asked, constants_of, check=self._check_folder, without=self.without
        )

    def _index(
        self, answer: Callable[[str], str], constants: T.StructType, derived: Mapping[str, str], group: FileGroup
    ) -> Any:
        told = (
            f"ducklake {self.table_name} at snapshot {self.scope.at.version}, {group.file_count} files before pruning"
        )
        return file_index(self.spark, answer, constants, derived, group.size_in_bytes, told, self.filters)

    def _shown(self, column: Column, reading: Reading, mapped: MappedReading | None) -> SqlColumn:
        from_path = mapped.shown(column) if mapped else None
        value = reading.shown(column, spark_quoted(reading.read_name(column))) if from_path is None else from_path
        return SqlColumn(column.name, value)

    def _file_schema(self, group: FileGroup, reading: Reading, mapped: MappedReading | None) -> T.StructType:
        fields = [
            _with_default(reading.read_field(column), column, reading)
            for column in self.layout.columns
            if column.id not in reading.missing and not (mapped and column.id in mapped.hive)
        ]
        if self._numbered(group):
            fields.append(T.StructField(POSITION, T.LongType()))
        for name in [EMBEDDED_ROW_ID] * self.row_ids + [EMBEDDED_SNAPSHOT_ID] * group.partial:
            metadata = {FIELD_ID: _EMBEDDED_FIELD_IDS[name]} if reading.by_field_id else {}
            fields.append(T.StructField(name, T.LongType(), True, metadata))
        return T.StructType(fields)

    def _numbered(self, group: FileGroup) -> bool:
        return group.deleted or self.row_ids or self.addresses

    def _by_duckdb(self, group: FileGroup, answer: Answer) -> BranchRows:
        """One row a file, which DuckDB reads in the workers; filters reach the index by the optimizer rule."""
        carried = {column.id: f"v{i}" for i, column in enumerate(self.layout.columns)}
        seal = Seal()
        planner = self._planner(group, carried, lambda file: duckdb_file(file, self.layout, seal))
        index = self._index(answer(planner), DUCKDB_FILE, {}, group)
        others = (FILE, ROW_ID_START, CHANGED_IN, POSITION, EMBEDDED_ROW_ID, EMBEDDED_SNAPSHOT_ID)
        schema = transfer_schema(self.layout.columns, self.layout.nanoseconds, others)
        rows = map_in_workers(file_rows(self.spark, index), read_rows(schema, seal), schema)
        return BranchRows(rows, shown_columns(self.layout.columns, self.layout.nanoseconds), planner, index)

    def _finished(self, rows: BranchRows, group: FileGroup, contents: TableContents) -> DataFrame:
        """Without the rows that the snapshot does not show, and with row ids where asked for."""
        frame, shown = rows.frame, list(rows.shown)
        if group.partial:
            frame = frame.where(F.col(EMBEDDED_SNAPSHOT_ID) <= self.scope.version)
        if group.deleted and not rows.left_out:
            kinds, inlined = contents.delete_kinds[group], contents.inlined_deletes
            frame = without_rows(frame, deleted_positions(self.spark, rows.planner, rows.index, kinds, inlined))
        if self.row_ids:
            shown.append(SqlColumn(ROW_ID, ROW_ID_SQL))
        shown += named(FILE, POSITION) * self.addresses
        return projected(frame, shown)

    def _from_inlined(self, rows: pa.Table) -> DataFrame:
        columns, nanoseconds = self.layout.columns, self.layout.nanoseconds
        shown = shown_columns(columns, nanoseconds) + [SqlColumn(ROW_ID, "`row_id`")] * self.row_ids
        address = [SqlColumn(FILE, "CAST(NULL AS bigint)"), SqlColumn(POSITION, "`row_id`")]
        shown += address * self.addresses
        return projected(to_frame(self.spark, rows, transfer_schema(columns, nanoseconds, ["row_id"])), shown)


def without_rows(rows: DataFrame, deleted: DataFrame, where: SparkColumn | None = None) -> DataFrame:
    """Leave out rows by file and position.

    This is an anti-join on one long, made of both: no file has 2^32 rows. With a condition on both sides, only rows
    that it is true for are left out.
    """
    key = F.shiftleft(F.col(FILE), 32) + F.col(POSITION)
    deleted_key = (F.shiftleft(F.col(DELETED_FILE), 32) + F.col(DELETED_POSITION)).alias("_penstock_deleted")
    same = key == F.col("_penstock_deleted")
    if where is None:
        return rows.join(deleted.select(deleted_key), same, "left_anti")
    return rows.join(deleted.withColumns({"_penstock_deleted": deleted_key}), same & where, "left_anti")


def _with_default(field: T.StructField, column: Column, reading: Reading) -> T.StructField:
    shown = reading.shown_type(column)
    if column.initial_default is None or not spark_can_fill(field.dataType, shown):
        return field
    return T.StructField(
        field.name, field.dataType, True, {**field.metadata, EXISTS_DEFAULT: default_sql(column, shown)}
    )


def table_scan(
    attachment: Attachment,
    shown: Shown,
    table: TableInfo,
    *,
    row_ids: bool = False,
    addresses: bool = False,
    nanoseconds: bool = False,
    columns: tuple[Column, ...] | None = None,
) -> TableScan:
    """A scan of a table at a snapshot, or as a transaction sees it. Call it inside `Database.consistent()`.

    `columns` are those to show, of another snapshot, which have the same types in this one if they are there.
    """
    database = shown.database
    history = tuple(column_versions(database, table.id))
    layout = ColumnLayout(columns_at(history, shown.at) if columns is None else columns, history, nanoseconds)
    latest = latest_snapshot(database)
    scope = (TargetFiles if addresses else FileScope)(
        database, table.id, table.path, shown.at, latest.id, latest.next_file_id, layout.eras,
        inlined_delete_table(database, table.id), layout.has_variants, layout.milliseconds, latest.time,
    )  # fmt: skip
    return TableScan(
        attachment.spark, scope, layout, partition_specs(database, table.id), table.full_name,
        attachment.known_file_kinds, row_ids, addresses,
    )  # fmt: skip
