"""Reads the fragments of leaves with Lance in Spark's workers, as rows with the namespace's columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812

from penstock.lance.format.array_conversion import convert_array
from penstock.lance.format.dataset_store import DatasetStore, new_session
from penstock.spark.packed_arrays import packed

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.fragment import LanceFragment
    from lance.lance import _Session as Session

FRAGMENT_SCHEMA = (
    T.StructType()
    .add("leaf", T.StringType())
    .add("location", T.StringType())
    .add("version", T.LongType())
    .add("fragments", T.StringType())  # JSON: their numbers
    .add("filter", T.StringType())
    .add("columns", T.StringType())  # JSON: the leaf's column for each of the namespace's that is read, by its place
)


def leaf_fragment(dataset: LanceDataset, number: int) -> LanceFragment:
    """A fragment that the driver has seen in this version of a leaf."""
    found = dataset.get_fragment(number)
    assert found is not None  # the driver saw it in this version
    return found


@dataclass(frozen=True)
class LeafReader:
    """Takes rows of `FRAGMENT_SCHEMA`, returns rows of the namespace: columns that are not read are NULL.

    With `addresses`, each row ends in its leaf's id and its address there.
    """

    store: DatasetStore
    types: Sequence[pa.DataType]  # the namespace's own
    spark_schema: pa.Schema  # the same columns as Spark takes them
    addresses: bool = False
    packed: frozenset[int] = frozenset()  # the places of columns that go to Spark as bytes
    _open: dict[tuple[str, int], LanceDataset] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def _session(self) -> Session:
        """What the datasets of one task share; it goes when the task does."""
        return new_session()

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            jobs = batch.to_pylist()
            for job, dataset in zip(jobs, self.store.each(self._dataset, jobs), strict=True):
                yield from self._rows(job, dataset)

    def _rows(self, job: dict[str, Any], dataset: LanceDataset) -> Iterator[pa.RecordBatch]:
        columns = {int(place): name for place, name in json.loads(job["columns"]).items()}
        scanner = dataset.scanner(
            columns=list(columns.values()),
            filter=job["filter"],
            fragments=[leaf_fragment(dataset, number) for number in json.loads(job["fragments"])],
            with_row_address=self.addresses or not columns,
        )
        for rows in scanner.to_batches():
            yield self._with_namespace_columns(rows, columns, job["leaf"])

    def _dataset(self, job: dict[str, Any]) -> LanceDataset:
        key = job["location"], job["version"]
        found = self._open.get(key) or self.store.kept(*key, self._session)
        self._open[key] = found
        return found

    def _with_namespace_columns(self, rows: pa.RecordBatch, columns: dict[int, str], leaf: str) -> pa.RecordBatch:
        arrays = []
        for place, (kind, item) in enumerate(zip(self.types, self.spark_schema, strict=False)):
            if place not in columns:
                arrays.append(pa.nulls(rows.num_rows, item.type))
                continue
            converted = partial(convert_array, column=item.name, leaf=leaf)
            own = converted(rows.column(columns[place]), kind)
            arrays.append(packed(own) if place in self.packed else converted(own, item.type))
        if self.addresses:
            arrays += [pa.repeat(leaf, rows.num_rows), rows.column("_rowaddr").cast(pa.int64())]
        return pa.RecordBatch.from_arrays(arrays, schema=self.spark_schema)
