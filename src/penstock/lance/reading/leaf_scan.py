"""A namespace's rows as a DataFrame: leaves are chosen while Spark plans, and read by its tasks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema

from penstock.lance.commits.column_notes import known_now
from penstock.lance.format.definition import Definition
from penstock.lance.format.field_ids import field_id
from penstock.lance.format.leaf_columns import leaf_columns
from penstock.lance.format.leaves import Leaf, missing_leaf
from penstock.lance.format.store import Store
from penstock.lance.reading.leaf_pruning import Pruner
from penstock.lance.reading.leaf_reader import FRAGMENT, Reader
from penstock.lance.reading.scanner_filters import quoted, scan_filter
from penstock.predicates import Implication, Nothing, implied_by
from penstock.schema.columns import Column
from penstock.spark.jvm import file_index
from penstock.spark.pushdown import FilterRecorder, needed_columns, row_filters
from penstock.spark.relation import file_records, file_rows
from penstock.spark.types import shown_type
from penstock.spark.workers import map_in_workers

if TYPE_CHECKING:
    from lance import LanceDataset

LEAF, ADDRESS = "_penstock_leaf", "_penstock_address"
_UNKNOWN_SIZE = 2**40
Answer = Callable[[str], str]


@dataclass(frozen=True)
class Scan:
    """The leaves of a namespace at one version, and the columns that are shown of them."""

    spark: SparkSession
    store: Store
    name: str
    definition: Definition
    columns: Sequence[Column]
    leaves: Sequence[Leaf]
    size: int = _UNKNOWN_SIZE  # in bytes, for Spark's choice of joins

    @cached_property
    def schema(self) -> T.StructType:
        return T.StructType([T.StructField(column.name, shown_type(column)) for column in self.columns])

    def frame(
        self, addresses: bool = False, answer: Callable[[Planner], Answer] = lambda planner: planner
    ) -> DataFrame:
        """All rows; with `addresses`, and with the leaf and the place in it of each."""
        schema = T.StructType(list(self.schema.fields))
        if addresses:
            schema = schema.add(LEAF, T.StringType()).add(ADDRESS, T.LongType())
        types = [item.type for item in self.definition.schema]
        reader = Reader(self.store, types, to_arrow_schema(schema, timezone="UTC"), addresses)
        description = f"penstock lance {self.name}"
        index = file_index(self.spark, answer(self.planner), FRAGMENT, {}, self.size, description)
        return map_in_workers(file_rows(self.spark, index), reader, schema)

    def only(self, leaves: Sequence[Leaf]) -> Scan:
        """The same of fewer leaves."""
        return replace(self, leaves=leaves)

    @property
    def planner(self) -> Planner:
        return Planner(self)

    @cached_property
    def pruner(self) -> Pruner:
        return Pruner(self.definition.fields, self.columns_by_id)

    @cached_property
    def columns_by_id(self) -> dict[int, Column]:
        """The columns, and the fields inside of them."""
        return {inner.id: inner for column in self.columns for inner in column.walk()}

    def implied(self, filters: Sequence[object]) -> Implication:
        return implied_by([json.dumps(item) for item in filters], self.columns)

    def dataset(self, leaf: Leaf) -> LanceDataset | None:
        """A leaf at the version to read; None where it was declared only."""
        if leaf.is_empty:
            return None
        found = self.store.find(leaf.location, leaf.version)
        if found is None and (leaf.version is not None or not self.store.is_declared(leaf.location)):
            raise missing_leaf(leaf, self.store)
        return found

    def columns_of(self, leaf: Leaf, dataset: LanceDataset) -> dict[int, str]:
        """The names of the namespace's columns in a leaf, by their ids."""
        known = known_now(self.definition, leaf, dataset)
        return leaf_columns(self.definition, leaf.object_id, dataset, known)


@dataclass(frozen=True)
class Planner:
    """Filters and needed columns as JSON in, fragments out."""

    scan: Scan

    def __call__(self, filters: str) -> str:
        needed = needed_columns(filters)
        implication = self.scan.implied(row_filters(filters))
        kept = self.scan.pruner.kept(self.scan.leaves, implication)
        return file_records(record for leaf in kept for record in self._fragments(leaf, implication, needed))

    def _fragments(
        self, leaf: Leaf, implication: Implication, needed: frozenset[str] | None
    ) -> Iterator[tuple[str, int, tuple[object, ...]]]:
        dataset = self.scan.dataset(leaf)
        if dataset is None:
            return
        schema = dataset.schema
        columns = self.scan.columns_of(leaf, dataset)
        where = scan_filter(implication, self._askable(columns, schema))
        read = {
            place: columns[column.id]
            for place, column in enumerate(self.scan.columns)
            if column.id in columns and (needed is None or column.name in needed)
        }
        for fragment in dataset.get_fragments():
            files = fragment.metadata.files
            path = f"{self.scan.store.uri(leaf.location)}/data/{files[0].path}"
            size = sum(file.file_size_bytes or 0 for file in files)
            constants = (leaf.object_id, leaf.location, dataset.version, fragment.fragment_id, where, json.dumps(read))
            yield path, max(size, 1), constants

    def _askable(self, columns: Mapping[int, str], schema: pa.Schema) -> dict[int, tuple[str, pa.DataType]]:
        """Columns and fields of structs that Lance can filter by: those whose type needs no cast."""
        own = {field_id(item): item for item in self.scan.definition.schema}
        found: dict[int, tuple[str, pa.DataType]] = {}
        for column in self.scan.columns:
            name = columns.get(column.id)
            if name is not None and schema.field(name).type == own[column.id].type:
                found.update(_askable_fields(column, (name,), own[column.id].type))
        return found


def _askable_fields(
    column: Column, path: tuple[str, ...], kind: pa.DataType
) -> Iterator[tuple[int, tuple[str, pa.DataType]]]:
    if pa.types.is_struct(kind):
        for child, item in zip(column.children, kind, strict=True):
            yield from _askable_fields(child, (*path, item.name), item.type)
    elif not pa.types.is_nested(kind):
        yield column.id, (quoted(*path), kind)


def pushed(scan: Scan, predicate: str | SparkColumn) -> Implication:
    """What a predicate implies for the rows that pass it; nothing is read."""
    recorder = FilterRecorder()
    scan.frame(answer=lambda planner: recorder).where(predicate).collect()
    return Nothing() if recorder.filters is None else scan.implied(recorder.filters)
