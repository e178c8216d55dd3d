"""Scans a namespace as a DataFrame: leaves are chosen while Spark plans a query, and read by its tasks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812

from penstock.lance.commits.column_notes import current_column_notes
from penstock.lance.commits.leaf_records import BYTES
from penstock.lance.format.dataset_store import DatasetStore, new_session
from penstock.lance.format.definition import NamespaceDefinition, definition_in
from penstock.lance.format.field_ids import field_id
from penstock.lance.format.kept_versions import check_kept
from penstock.lance.format.leaf_columns import leaf_columns
from penstock.lance.format.leaves import Leaf, leaves_in, missing_leaf_error
from penstock.lance.format.manifest import Manifest
from penstock.lance.format.schema_conversion import namespace_columns
from penstock.lance.reading.fragment_runs import FragmentRun, joined_runs
from penstock.lance.reading.leaf_pruning import LeafPruner
from penstock.lance.reading.leaf_reader import FRAGMENT_SCHEMA, LeafReader
from penstock.lance.reading.scanner_filters import quoted_path, scanner_filter
from penstock.predicates import Implication, Nothing, implied_by
from penstock.schema.columns import Column
from penstock.spark.file_records import FileRecord, file_records
from penstock.spark.jvm import file_index
from penstock.spark.packed_arrays import can_pack, takes_packed, unpacked, with_packed
from penstock.spark.pushdown import FilterRecorder, needed_columns, row_filters
from penstock.spark.relation import file_rows
from penstock.spark.releases import arrow_schema_of
from penstock.spark.types import shown_type
from penstock.spark.workers import map_in_workers

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.lance import _Session as Session

LEAF, ADDRESS = "_penstock_leaf", "_penstock_address"
_UNKNOWN_SIZE = 2**40


@dataclass(frozen=True)
class LeafScan:
    """The leaves of a namespace at one version, and the columns that Spark sees of them."""

    spark: SparkSession
    store: DatasetStore
    name: str
    definition: NamespaceDefinition
    columns: Sequence[Column]
    leaves: Sequence[Leaf]
    size: int = _UNKNOWN_SIZE  # in bytes, for Spark's choice of joins

    @cached_property
    def schema(self) -> T.StructType:
        """The columns as Spark sees them."""
        return T.StructType([T.StructField(column.name, shown_type(column)) for column in self.columns])

    def frame(self, addresses: bool = False, planner: Callable[[str], str] | None = None) -> DataFrame:
        """All rows; with `addresses`, each with its leaf and its address there. `planner` stands in for the scan's."""
        packed = self._packed if takes_packed(self.spark) else {}
        columns = enumerate(self.schema.fields)
        schema = T.StructType([T.StructField(f.name, T.BinaryType()) if n in packed else f for n, f in columns])
        if addresses:
            schema = schema.add(LEAF, T.StringType()).add(ADDRESS, T.LongType())
        types = [item.type for item in self.definition.schema]
        taken = with_packed(arrow_schema_of(schema), packed)
        reader = LeafReader(self.store, types, taken, addresses, frozenset(packed))
        description = f"penstock lance {self.name}"
        answer = LeafPlanner(self) if planner is None else planner
        index = file_index(self.spark, answer, FRAGMENT_SCHEMA, {}, self.size, description)
        size = None if self.size == _UNKNOWN_SIZE else self.size
        return unpacked(map_in_workers(file_rows(self.spark, index, size), reader, schema), packed)

    @cached_property
    def _packed(self) -> dict[int, T.DataType]:
        """The places of columns that may go to Spark as bytes, with the types that they are shown in."""
        columns = enumerate(zip(self.definition.schema, self.schema, strict=True))
        return {place: shown.dataType for place, (own, shown) in columns if can_pack(own.type, shown.dataType)}

    def only(self, leaves: Sequence[Leaf]) -> LeafScan:
        """The scan of some of its leaves."""
        return replace(self, leaves=leaves)

    @cached_property
    def pruner(self) -> LeafPruner:
        """What leaves out leaves by their partition values."""
        return LeafPruner(self.definition.fields, self.columns_by_id)

    @cached_property
    def columns_by_id(self) -> dict[int, Column]:
        """The columns, and the fields inside of them, by id."""
        return {inner.id: inner for column in self.columns for inner in column.walk()}

    def implied(self, filters: Sequence[object]) -> Implication:
        """What Spark's filters imply for the rows that pass them."""
        return implied_by([json.dumps(item) for item in filters], self.columns)

    @cached_property
    def _session(self) -> Session:
        return new_session()

    def dataset(self, leaf: Leaf) -> LanceDataset | None:
        """Open a leaf at the version to read; None where it was only declared, NotFoundError where it is gone."""
        if leaf.is_empty:
            return None
        found = self.store.find(leaf.location, leaf.version, self._session)
        if found is None and (leaf.version is not None or not self.store.is_declared(leaf.location)):
            raise missing_leaf_error(leaf, self.store)
        return found

    def columns_of(self, leaf: Leaf, dataset: LanceDataset) -> dict[int, str]:
        """The names of the namespace's columns in a leaf, by their ids."""
        notes = current_column_notes(self.definition, leaf, dataset)
        return leaf_columns(self.definition, leaf.object_id, dataset, notes)


def open_scan(spark: SparkSession, manifest: Manifest, name: str, version: int | None = None) -> LeafScan:
    """The scan of a namespace as it is now, or at a version of its manifest."""
    if version is not None:
        check_kept(manifest, name, version)
    state = manifest.state(version)
    definition = definition_in(manifest, state, name)
    leaves = leaves_in(state, name, definition.fields)
    if version is not None:
        time = manifest.time_of(state.version)
        leaves = [leaf if leaf.version is not None else _leaf_at_time(manifest.store, leaf, time) for leaf in leaves]
    sizes = [entry.properties.get(BYTES) for entry in state.below(name) if entry.kind == "table"]
    size = _UNKNOWN_SIZE if None in sizes else sum(int(size or 0) for size in sizes)
    columns = namespace_columns(spark, definition.schema)
    return LeafScan(spark, manifest.store, name, definition, columns, leaves, size)


def _leaf_at_time(store: DatasetStore, leaf: Leaf, time: datetime) -> Leaf:
    """Another writer's leaf at the newest version that there was at a time; its first where there was none yet."""
    dataset = store.find(leaf.location)
    if dataset is None:
        return leaf
    versions: list[Any] = dataset.versions()
    before = [item["version"] for item in versions if item["timestamp"].astimezone(UTC) <= time]
    return replace(leaf, version=max(before, default=versions[0]["version"]))


@dataclass(frozen=True)
class LeafPlanner:
    """Answers Spark's planner: takes filters and needed columns as JSON, returns the fragments to read."""

    scan: LeafScan

    def __call__(self, filters: str) -> str:
        needed = needed_columns(filters)
        implication = self.scan.implied(row_filters(filters))
        kept = self.scan.pruner.kept(self.scan.leaves, implication)
        found = self.scan.store.each(lambda leaf: list(self._fragments(leaf, implication, needed)), kept)
        return file_records(record for records in found for record in records)

    def _fragments(self, leaf: Leaf, implication: Implication, needed: frozenset[str] | None) -> Iterator[FileRecord]:
        dataset = self.scan.dataset(leaf)
        if dataset is None:
            return
        schema = dataset.schema
        columns = self.scan.columns_of(leaf, dataset)
        where = scanner_filter(implication, self._filterable_columns(columns, schema))
        read = {
            place: columns[column.id]
            for place, column in enumerate(self.scan.columns)
            if column.id in columns and (needed is None or column.name in needed)
        }
        columns_read = json.dumps(read)
        for run in joined_runs(map(FragmentRun.of, dataset.get_fragments())):
            path = f"{self.scan.store.uri(leaf.location)}/data/{run.first_file}"
            constants = (leaf.object_id, leaf.location, dataset.version, json.dumps(run.numbers), where, columns_read)
            yield path, max(run.size, 1), constants

    def _filterable_columns(self, columns: Mapping[int, str], schema: pa.Schema) -> dict[int, tuple[str, pa.DataType]]:
        """Columns and fields of structs that Lance can filter by: those whose type needs no cast."""
        own = {field_id(item): item for item in self.scan.definition.schema}
        found: dict[int, tuple[str, pa.DataType]] = {}
        for column in self.scan.columns:
            name = columns.get(column.id)
            if name is not None and schema.field(name).type == own[column.id].type:
                found.update(_filterable_fields(column, (name,), own[column.id].type))
        return found


def _filterable_fields(
    column: Column, path: tuple[str, ...], kind: pa.DataType
) -> Iterator[tuple[int, tuple[str, pa.DataType]]]:
    if pa.types.is_struct(kind):
        for child, item in zip(column.children, kind, strict=True):
            yield from _filterable_fields(child, (*path, item.name), item.type)
    elif not pa.types.is_nested(kind):
        yield column.id, (quoted_path(*path), kind)


def pushed_implication(scan: LeafScan, predicate: str | SparkColumn) -> Implication:
    """What a predicate implies for the rows that pass it; nothing is read."""
    recorder = FilterRecorder()
    scan.frame(planner=recorder).where(predicate).collect()
    return Nothing() if recorder.filters is None else scan.implied(recorder.filters)
