"""Reads the positions of deleted rows, from delete files of every format and from the catalog, as one DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from penstock.ducklake.files.sealed_keys import Seal
from penstock.ducklake.model.files import DeleteFile, DeleteKind
from penstock.ducklake.reading.duckdb_reader import read_positions
from penstock.ducklake.reading.file_planner import FilePlanner
from penstock.errors import UnsupportedError
from penstock.schema.embedded_columns import EMBEDDED_SNAPSHOT_ID
from penstock.spark.file_records import file_records
from penstock.spark.jvm import file_index
from penstock.spark.relation import file_rows, parquet_rows
from penstock.spark.workers import map_in_workers

DELETED_FILE, DELETED_POSITION, DELETED_IN = (
    "_penstock_deleted_file",
    "_penstock_deleted_position",
    "_penstock_deleted_in",
)
_POSITIONS = T.StructType([T.StructField(name, T.LongType()) for name in (DELETED_FILE, DELETED_POSITION, DELETED_IN)])
_BEGIN, _LAST = "_penstock_begin", "_penstock_last"
_BYTES_PER_POSITION = 16


def deleted_positions(
    spark: SparkSession,
    planner: FilePlanner,
    leader: Any,
    kinds: Sequence[DeleteKind],
    inlined: Sequence[tuple[int, int, int]],
) -> DataFrame:
    """(data file, position, snapshot) of every row that was deleted, for the files that `planner` chooses.

    `leader` is the index of the data files: the filters over their rows choose the delete files too.
    """
    parts = [_DeleteFileReader(spark, planner, leader, kinds, kind).positions() for kind in kinds]
    if inlined:
        columns = [pa.array(values, pa.int64()) for values in zip(*inlined, strict=True)]
        rows = pa.table(columns, names=_POSITIONS.names)
        parts.append(spark.createDataFrame(rows, _POSITIONS))
    return reduce(DataFrame.union, parts)


@dataclass(frozen=True)
class _DeleteFileReader:
    """Reads the delete files of one kind, of those that there were when the scan was made."""

    spark: SparkSession
    planner: FilePlanner
    leader: Any
    kinds: Sequence[DeleteKind]
    kind: DeleteKind

    def positions(self) -> DataFrame:
        seal = Seal()
        match self.kind.format, self.kind.encrypted:
            case "parquet", False:
                return self._from_parquet()
            case "parquet", True:
                return self._read_in_python(seal, read_positions(_POSITIONS, seal))
            case "puffin", _:  # DuckDB gives these a key in an encrypted lake, and does not use it
                return self._read_in_python(seal, _decode_vectors)
        raise UnsupportedError(f"delete files of format {self.kind.format!r} are not known to this version of Penstock")

    def _from_parquet(self) -> DataFrame:
        """Read by name, so that a third column of another writer is ignored and a missing snapshot id is NULL."""
        constants = T.StructType([T.StructField(name, T.LongType()) for name in (DELETED_FILE, _BEGIN, _LAST)])
        index = self._index(constants, lambda file: (file.data_file_id, file.begin_snapshot, file.last_snapshot))
        schema = T.StructType([T.StructField("pos", T.LongType()), T.StructField(EMBEDDED_SNAPSHOT_ID, T.LongType())])
        frame = parquet_rows(self.spark, index, schema, complete=True)
        shown = frame.where(F.col(EMBEDDED_SNAPSHOT_ID).isNull() | (F.col(EMBEDDED_SNAPSHOT_ID) <= F.col(_LAST)))
        deleted_in = F.coalesce(F.col(EMBEDDED_SNAPSHOT_ID), F.col(_BEGIN)).alias(DELETED_IN)
        return shown.select(DELETED_FILE, F.col("pos").alias(DELETED_POSITION), deleted_in)

    def _read_in_python(
        self, seal: Seal, read: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
    ) -> DataFrame:
        constants = T.StructType().add("file", T.LongType()).add("begin", T.LongType())
        constants = constants.add("last", T.LongType()).add("location", T.StringType()).add("key", T.StringType())

        def constants_of(file: DeleteFile) -> tuple[object, ...]:
            key = seal.close(file.encryption_key, file.path)
            return file.data_file_id, file.begin_snapshot, file.last_snapshot, file.path, key

        index = self._index(constants, constants_of)
        return map_in_workers(file_rows(self.spark, index), read, _POSITIONS)

    def _index(self, constants: T.StructType, constants_of: Callable[[DeleteFile], tuple[object, ...]]) -> Any:
        def plan(filters: str) -> str:
            files = self.planner.scope.delete_files(self.planner.group, self.kinds, self.planner.keep(filters))
            return file_records((file.path, file.size, constants_of(file)) for file in files if self.kind.is_of(file))

        size = self.kind.delete_count * _BYTES_PER_POSITION
        return file_index(self.spark, plan, constants, {}, size, "ducklake delete files").follow(self.leader)


def _decode_vectors(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from penstock.storage.deletion_vectors import read_deletion_vector

    for batch in batches:
        for file in batch.select(["file", "begin", "location"]).to_pylist():
            positions = pa.array(read_deletion_vector(file["location"]), pa.int64())
            constants = [pa.repeat(pa.scalar(file[name], pa.int64()), len(positions)) for name in ("file", "begin")]
            yield pa.RecordBatch.from_arrays([constants[0], positions, constants[1]], names=_POSITIONS.names)
