"""Writes the rows of a DataFrame as fragments of leaves, in Spark's tasks; they are part of no leaf yet."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from penstock.errors import InvalidError
from penstock.lance.commits.column_notes import current_column_notes
from penstock.lance.commits.recovery import dataset_to_extend
from penstock.lance.format.array_conversion import convert_array, null_array
from penstock.lance.format.dataset_store import DatasetStore, new_session
from penstock.lance.format.definition import NamespaceDefinition
from penstock.lance.format.field_ids import field_id
from penstock.lance.format.leaf_columns import leaf_columns, new_leaf_schema
from penstock.lance.format.leaves import Leaf, PartitionValues, leaf_object_id
from penstock.lance.format.object_ids import leaf_directory
from penstock.lance.format.partition_values import partition_texts
from penstock.lance.writing.fixed_vectors import joined, with_fixed_vectors
from penstock.lance.writing.quick_texts import with_quick_texts
from penstock.lance.writing.write_journal import WrittenFragments, record_files, write_journal
from penstock.schema.columns import Column
from penstock.schema.types import Type
from penstock.spark.arrow_offsets import with_offsets
from penstock.spark.arrow_transfer import in_batches_of
from penstock.spark.file_tasks import file_writing_job
from penstock.spark.packed_columns import Job, run_on_rows
from penstock.spark.workers import map_in_workers
from penstock.spark.write_job import Distribution, distributed, grouping
from penstock.storage.ended_tasks import check_task
from penstock.storage.filesystems import delete_file
from penstock.storage.parquet.partitions import split_by_partition

if TYPE_CHECKING:
    from lance import FragmentMetadata, LanceDataset
    from lance.lance import _Session as Session

ROWS_PER_FILE = 1_048_576
_ROWS_SPLIT_AT_ONCE = 65536
_HELD_BYTES = 256 * 2**20  # of rows that a task keeps before it writes those of its fullest leaf
_FRAGMENT_BYTES = 512 * 2**20  # a task for each, roughly
_RESULT = "written binary"


@dataclass(frozen=True)
class FragmentWriteJob:
    """Writes the rows of a task: each to the leaf of its partition values.

    `leaves` are those that are there, by id, without a version if their rows are replaced.
    """

    store: DatasetStore
    name: str
    definition: NamespaceDefinition
    types: Mapping[int, Type]
    leaves: Mapping[str, Leaf]
    writer_id: str
    rows_per_file: int = ROWS_PER_FILE

    @cached_property
    def _session(self) -> Session:
        """What the new leaves of one task share: to make one for each takes as long as to write thousands of rows."""
        return new_session()

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for written in self._written(in_batches_of(_ROWS_SPLIT_AT_ONCE, map(with_offsets, batches))):
            yield pa.RecordBatch.from_pydict({"written": [pickle.dumps(written)]})

    def _written(self, batches: Iterable[pa.RecordBatch]) -> Iterator[WrittenFragments]:
        held: dict[PartitionValues, list[pa.RecordBatch]] = {}
        sizes: dict[PartitionValues, int] = {}
        for batch in (with_fixed_vectors(one, self.definition.schema) for one in batches):
            for values, rows in split_by_partition(batch, self._partition_texts(batch)):
                held.setdefault(values, []).append(rows)
                sizes[values] = sizes.get(values, 0) + rows.nbytes
            while sum(sizes.values()) > _HELD_BYTES:
                fullest = max(sizes, key=sizes.__getitem__)
                del sizes[fullest]
                yield self._write_leaf(fullest, held.pop(fullest))
        for values in sorted(held, key=repr):
            yield self._write_leaf(values, held[values])

    def _partition_texts(self, batch: pa.RecordBatch) -> list[pa.StringArray]:
        columns = dict(zip(self.definition.schema.names, batch.columns, strict=True))
        return partition_texts(columns, self.definition, self.types)

    def _write_leaf(self, values: PartitionValues, batches: Sequence[pa.RecordBatch]) -> WrittenFragments:
        leaf = leaf_object_id(self.name, self.definition.fields, values)
        target = self.leaves.get(leaf)
        location = leaf_directory(leaf) if target is None else target.location
        rows = joined(batches)  # to convert many small pieces takes longer
        dataset, table = self._with_leaf_columns(rows, leaf, target)
        fragments = self._fragments(_with_aligned_decimals(table), location, dataset)
        self._record([f"{location}/data/{file.path}" for fragment in fragments for file in fragment.files])
        texts = [json.dumps(one.to_json()) for one in fragments]
        return WrittenFragments(leaf, values, location, dataset and dataset.version, texts, rows.num_rows)

    def _record(self, files: Sequence[str]) -> None:
        """Enter files into the job's journal; those of a task that has ended, which nobody reads that for, go."""
        try:
            check_task()
            record_files(self.store, self.writer_id, files)
        except BaseException:
            for name in files:
                delete_file(self.store.uri(name))
            raise

    def _with_leaf_columns(
        self, rows: pa.Table, leaf: str, target: Leaf | None
    ) -> tuple[LanceDataset | None, pa.Table]:
        """The version of the leaf that the rows are made for, None for a new one; and the rows with its columns."""
        if target is None or not target.version:
            return None, self._with_namespace_columns(rows, leaf)
        dataset, overwritten = dataset_to_extend(self.store, target)
        notes = current_column_notes(self.definition, target, dataset)
        columns = leaf_columns(self.definition, leaf, dataset, notes, overwritten)
        return dataset, self._with_own_columns(rows, dataset.schema, columns, leaf)

    def _fragments(self, rows: pa.Table, location: str, dataset: LanceDataset | None) -> list[FragmentMetadata]:
        """Write the rows to files for a version of a leaf; without one, for a leaf that is new or gets all new rows."""
        from lance.fragment import write_fragments

        def write(target: LanceDataset | str, mode: str, session: Session | None) -> list[FragmentMetadata]:
            return write_fragments(
                rows,
                target,
                schema=rows.schema,
                mode=mode,
                max_rows_per_file=self.rows_per_file,
                storage_options=dict(self.store.options) or None,
                session=session,
            )

        if dataset is not None:
            return write(dataset, "append", None)  # it has its own
        uri, rows = self.store.uri(location), with_quick_texts(rows)
        try:
            return write(uri, "create", self._session)
        except OSError as error:  # its rows are all replaced, or another task or writer has made it
            if "already exists" not in str(error):
                raise
        return write(uri, "overwrite", self._session)

    def _with_namespace_columns(self, rows: pa.Table, leaf: str) -> pa.Table:
        """The rows for a leaf that has the namespace's columns, in its types."""
        schema = new_leaf_schema(self.definition)
        arrays = [_leaf_array(column, item, item.name, leaf) for column, item in zip(rows.columns, schema, strict=True)]
        return pa.Table.from_arrays(arrays, schema=schema)

    def _with_own_columns(self, rows: pa.Table, schema: pa.Schema, columns: Mapping[int, str], leaf: str) -> pa.Table:
        """The rows for a leaf with columns of its own, in its order and types."""
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
            _leaf_array(
                rows.column(places[item.name]), item, self.definition.schema.field(places[item.name]).name, leaf
            )
            if item.name in places
            else null_array(rows.num_rows, item, leaf)
            for item in schema
        ]
        return pa.Table.from_arrays(arrays, schema=schema)


def run_write_job(
    frame: DataFrame, job: FragmentWriteJob, distribution: Distribution, columns: Sequence[Column]
) -> list[WrittenFragments]:
    """Let Spark's tasks write the rows. When the job fails, the files of all its tasks are removed."""
    by_name = {column.name: F.col(frame.columns[place]) for place, column in enumerate(columns)}
    keys = [
        grouping(item.transform, _source_column(by_name, job.definition.source(number).path))
        for item in job.definition.fields
        for number in item.sources
    ]
    spread = distributed(frame, keys, _FRAGMENT_BYTES, distribution)

    def attempt(rows: DataFrame, write: Job) -> list[WrittenFragments]:
        with (
            write_journal(job.store, job.writer_id) as written,
            file_writing_job(rows.sparkSession, None, job.writer_id),
        ):
            written += [pickle.loads(row.written) for row in map_in_workers(rows, write, _RESULT).collect()]
        return written

    return run_on_rows(spread, job, attempt)


def _source_column(columns: Mapping[str, SparkColumn], path: Sequence[str]) -> SparkColumn:
    """Spark's column of a partition source, which may be a field of a struct."""
    found = columns[path[0]]
    for name in path[1:]:
        found = found.getField(name)
    return found


def _leaf_array(array: pa.ChunkedArray, item: pa.Field, column: str, leaf: str) -> Any:
    if array.null_count and not item.nullable:
        raise InvalidError(f"column {column} of leaf {leaf} takes no NULL, and {array.null_count} rows have one")
    return convert_array(array, item.type, column, leaf)


def _with_aligned_decimals(table: pa.Table) -> pa.Table:
    """A copy where there are decimals: Spark's are at addresses that Lance cannot read them from."""
    if not any("decimal" in str(item.type) for item in table.schema):
        return table
    return table.take(pa.array(np.arange(table.num_rows)))
