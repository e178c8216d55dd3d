"""Reads deletion vectors in Spark's tasks, as rows that tell which row of which file is deleted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from penstock.delta.format.actions import AddFile
from penstock.delta.format.deletion_vectors import deleted_positions
from penstock.spark.workers import map_in_workers

FILE_NUMBER, POSITION = "_penstock_file", "_penstock_position"
_VECTOR = "file bigint, storage string, path string, offset bigint, size bigint, cardinality bigint"
_POSITIONS = f"{FILE_NUMBER} bigint, {POSITION} bigint"
_POSITIONS_ARROW = pa.schema([(FILE_NUMBER, pa.int64()), (POSITION, pa.int64())])


@dataclass(frozen=True)
class _VectorReader:
    """Reads deletion vectors in a task: rows of their descriptors in, the deleted positions out."""

    root: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for one in batch.to_pylist():
                descriptor = one["storage"], one["path"], one["offset"], one["size"], one["cardinality"]
                found = pa.array(deleted_positions(*descriptor, self.root), pa.int64())
                file = pa.repeat(pa.scalar(one["file"], pa.int64()), len(found))
                yield pa.RecordBatch.from_arrays([file, found], schema=_POSITIONS_ARROW)


def deleted_rows(spark: SparkSession, root: str, files: Mapping[int, AddFile]) -> DataFrame:
    """Returns the numbers of files with deletion vectors, and the positions of their deleted rows."""
    vectors = [(number, *_vector(file)) for number, file in files.items()]
    tasks = min(len(vectors), spark.sparkContext.defaultParallelism)
    given = spark.createDataFrame(vectors, _VECTOR).repartition(tasks)
    return map_in_workers(given, _VectorReader(root), _POSITIONS)


def _vector(file: AddFile) -> tuple[object, ...]:
    vector = file.deletion_vector
    assert vector is not None  # or the file would be read as it is
    return (
        vector.storage_type,
        vector.path_or_inline_dv,
        vector.offset,
        vector.size_in_bytes,
        vector.cardinality,
    )
