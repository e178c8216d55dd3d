"""Rows of a DataFrame become fragments of leaves, written by the tasks; nothing shows before the driver commits."""

from __future__ import annotations

import json
import pickle
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from penstock.errors import InvalidError
from penstock.lance.commits.column_notes import known_now
from penstock.lance.commits.recovery import as_others_left
from penstock.lance.format.definition import Definition
from penstock.lance.format.field_ids import field_id
from penstock.lance.format.leaf_columns import leaf_columns, leaf_schema
from penstock.lance.format.leaves import Leaf, Values, object_id
from penstock.lance.format.names import directory
from penstock.lance.format.partition_values import partition_texts
from penstock.lance.format.store import Store
from penstock.lance.reading.array_conversion import convert, missing
from penstock.schema.columns import Column
from penstock.schema.types import Type
from penstock.spark.arrow_transfer import in_batches_of, run_in_batches
from penstock.spark.file_tasks import file_writing_job
from penstock.spark.workers import map_in_workers
from penstock.spark.write_job import Distribution, distributed, grouping
from penstock.storage.filesystems import (
    delete_directory,
    delete_file,
    list_files,
    make_directory,
    open_file,
    open_output,
)
from penstock.storage.parquet.partitions import split_by_partition

if TYPE_CHECKING:
    from lance import LanceDataset

ROWS_PER_FILE = 1_048_576
_ROWS_SPLIT_AT_ONCE = 65536
_HELD_BYTES = 256 * 2**20  # of rows that a task keeps before it writes those of its fullest leaf
_FRAGMENT_BYTES = 512 * 2**20  # a task for each, roughly
_JOURNAL = "__penstock_"  # before a write's id: a folder of its own, so that none stays for all
_RESULT = "written binary"


@dataclass(frozen=True)
class WrittenLeaf:
    """Fragments that a task wrote for one leaf, not yet part of it; `version` is the leaf's that they were made for."""

    object_id: str
    values: Values
    location: str
    version: int | None
    fragments: Sequence[str] = field(repr=False)
    rows: int

    @property
    def files(self) -> list[str]:
        """The paths of the fragments' files below the namespace's root."""
        found = [file["path"] for fragment in self.fragments for file in json.loads(fragment)["files"]]
        return [f"{self.location}/data/{path}" for path in found]


@dataclass(frozen=True)
class WriteJob:
    """What every task does with its rows. `leaves` are those that are there, by id, without a version if their rows are
    replaced."""

    store: Store
    name: str
    definition: Definition
    types: Mapping[int, Type]
    leaves: Mapping[str, Leaf]
    write_id: str
    rows_per_file: int = ROWS_PER_FILE

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for written in self._written(in_batches_of(_ROWS_SPLIT_AT_ONCE, iter(batches))):
            yield pa.RecordBatch.from_pydict({"written": [pickle.dumps(written)]})

    def _written(self, batches: Iterable[pa.RecordBatch]) -> Iterator[WrittenLeaf]:
        held: dict[Values, list[pa.RecordBatch]] = {}
        for batch in batches:
            for values, rows in split_by_partition(batch, self._keys(batch)):
                held.setdefault(values, []).append(rows)
            while sum(map(_size, held.values())) > _HELD_BYTES:
                fullest = max(held, key=lambda values: _size(held[values]))
                yield self._flushed(fullest, held.pop(fullest))
        for values in sorted(held, key=repr):
            yield self._flushed(values, held[values])

    def _keys(self, batch: pa.RecordBatch) -> list[pa.StringArray]:
        columns = dict(zip(self.definition.schema.names, batch.columns, strict=True))
        return partition_texts(columns, self.definition, self.types)

    def _flushed(self, values: Values, batches: Sequence[pa.RecordBatch]) -> WrittenLeaf:
        from lance.fragment import write_fragments

        leaf = object_id(self.name, self.definition.fields, values)
        target = self.leaves.get(leaf)
        location = directory(leaf) if target is None else target.location
        rows = pa.Table.from_batches(batches)
        dataset, table = self._shaped(rows, leaf, target)
        fragments = write_fragments(
            _aligned(table),
            dataset or self.store.uri(location),
            schema=table.schema,
            mode=self._mode(location, dataset),
            max_rows_per_file=self.rows_per_file,
            storage_options=dict(self.store.options) or None,
        )
        files = [f"{location}/data/{file.path}" for fragment in fragments for file in fragment.files]
        _note(self.store, self.write_id, files)
        told = [json.dumps(one.to_json()) for one in fragments]
        return WrittenLeaf(leaf, values, location, dataset and dataset.version, told, rows.num_rows)

    def _shaped(self, rows: pa.Table, leaf: str, target: Leaf | None) -> tuple[LanceDataset | None, pa.Table]:
        """The rows in the shape of their leaf, and the version of it that they are made for; None for a new one."""
        if target is None or not target.version:
            return None, self._new(rows, leaf)
        dataset, made_anew = as_others_left(self.store, target)
        known = known_now(self.definition, target, dataset)
        columns = leaf_columns(self.definition, leaf, dataset, known, made_anew)
        return dataset, self._fitted(rows, dataset.schema, columns, leaf)

    def _mode(self, location: str, dataset: LanceDataset | None) -> str:
        if dataset is not None:
            return "append"
        return "create" if self.store.find(location) is None else "overwrite"

    def _new(self, rows: pa.Table, leaf: str) -> pa.Table:
        """The rows for a leaf that has the namespace's columns."""
        schema = leaf_schema(self.definition)
        arrays = [_value(column, item, item.name, leaf) for column, item in zip(rows.columns, schema, strict=True)]
        return pa.Table.from_arrays(arrays, schema=schema)

    def _fitted(self, rows: pa.Table, schema: pa.Schema, columns: Mapping[int, str], leaf: str) -> pa.Table:
        """The rows for a leaf with columns of its own."""
        places = {}
        for place, item in enumerate(self.definition.schema):
            if field_id(item) not in columns:
                raise InvalidError(
                    f"leaf {leaf} has no column {item.name!r}, which the namespace has: rows with it cannot be written"
                    " there; bring the leaf into the namespace's shape with align() first, after adopt() if another"
                    " program has changed it"
                )
            places[columns[field_id(item)]] = place
        arrays = [
            _value(rows.column(places[item.name]), item, self.definition.schema.field(places[item.name]).name, leaf)
            if item.name in places
            else missing(rows.num_rows, item, leaf)
            for item in schema
        ]
        return pa.Table.from_arrays(arrays, schema=schema)


def run(frame: DataFrame, job: WriteJob, distribution: Distribution, columns: Sequence[Column]) -> list[WrittenLeaf]:
    """Let the tasks write. When the job fails, the files of all its tasks are removed."""
    by_name = {column.name: F.col(frame.columns[place]) for place, column in enumerate(columns)}
    keys = [
        grouping(item.transform, _source(by_name, job.definition.source(number).path))
        for item in job.definition.fields
        for number in item.sources
    ]
    spread = distributed(frame, keys, _FRAGMENT_BYTES, distribution)

    def attempt(rows: DataFrame) -> list[WrittenLeaf]:
        with journal(job.store, job.write_id) as told, file_writing_job(rows.sparkSession, None, job.write_id):
            told += [pickle.loads(row.written) for row in map_in_workers(rows, job, _RESULT).collect()]
        return told

    return run_in_batches(spread, attempt)


def _source(columns: Mapping[str, SparkColumn], path: Sequence[str]) -> SparkColumn:
    """A column, or a field of a struct."""
    found = columns[path[0]]
    for name in path[1:]:
        found = found.getField(name)
    return found


def new_write_id() -> str:
    return uuid4().hex


@contextmanager
def journal(store: Store, write_id: str) -> Iterator[list[WrittenLeaf]]:
    """A job whose tasks `note` the files that they write: when it fails, those are removed.

    When it comes through, those that are not in what the tasks told, which goes into the list: a task was tried again.
    """
    directory = f"{store.root}{_JOURNAL}{write_id}/"
    make_directory(directory)
    told: list[WrittenLeaf] = []
    try:
        yield told
        notes = list(list_files(directory))
        if len(notes) > len(told):
            _delete_noted(store, notes, {name for leaf in told for name in leaf.files})
    except BaseException:
        _delete_noted(store, list(list_files(directory)))
        raise
    finally:
        for path in list(list_files(directory)):
            delete_file(path)
        delete_directory(directory)


def _delete_noted(store: Store, notes: Sequence[str], keep: Container[str] = ()) -> None:
    for note in notes:
        with open_file(note) as file:
            for name in json.loads(file.read()):
                if name not in keep:
                    delete_file(store.uri(name))


def _note(store: Store, write_id: str, files: Sequence[str]) -> None:
    with open_output(f"{store.root}{_JOURNAL}{write_id}/{uuid4().hex}") as out:
        out.write(json.dumps(files).encode())


def _value(array: pa.ChunkedArray, item: pa.Field, column: str, leaf: str) -> Any:
    if array.null_count and not item.nullable:
        raise InvalidError(f"column {column} of leaf {leaf} takes no NULL, and {array.null_count} rows have one")
    return convert(array, item.type, column, leaf)


def _size(batches: Iterable[pa.RecordBatch]) -> int:
    return sum(batch.nbytes for batch in batches)


def _aligned(table: pa.Table) -> pa.Table:
    """A copy where there are decimals: Spark's are at addresses that Lance cannot read them from."""
    if not any("decimal" in str(item.type) for item in table.schema):
        return table
    return table.take(pa.array(np.arange(table.num_rows)))
