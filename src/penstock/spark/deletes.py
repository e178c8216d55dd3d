"""Positions of deleted rows, from delete files of every format and from the catalog, as one DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from penstock.catalog.files import FileScope
from penstock.errors import UnsupportedError
from penstock.model.files import DeleteFile, DeleteKind, FileGroup
from penstock.spark.relation import parquet_relation, records

FILE, POSITION, SNAPSHOT = "_penstock_deleted_file", "_penstock_deleted_position", "_ducklake_internal_snapshot_id"
_POSITIONS = T.StructType([T.StructField(FILE, T.LongType()), T.StructField(POSITION, T.LongType())])
_BYTES_PER_POSITION = 16


def deleted_positions(
    spark: SparkSession,
    scope: FileScope,
    group: FileGroup,
    kinds: Sequence[DeleteKind],
    inlined: Sequence[tuple[int, int]],
) -> DataFrame:
    """(data file, position) of every row of the group's files that the snapshot does not show."""
    parts = [_from_files(spark, scope, group, kind) for kind in kinds]
    if inlined:
        files, positions = zip(*inlined, strict=True)
        parts.append(spark.createDataFrame(pa.table({FILE: pa.array(files), POSITION: pa.array(positions)}), _POSITIONS))
    return reduce(DataFrame.union, parts)


def _from_files(spark: SparkSession, scope: FileScope, group: FileGroup, kind: DeleteKind) -> DataFrame:
    if kind.format == "parquet" and not kind.encrypted:
        return _from_parquet(spark, scope, group, kind)
    if kind.format == "parquet":
        from penstock.spark.encrypted import encrypted_positions

        return encrypted_positions(spark, scope.delete_files(group, kind), scope.version, _POSITIONS)
    if kind.format == "puffin" and not kind.encrypted:
        return _from_puffin(spark, scope.delete_files(group, kind))
    raise UnsupportedError(f"delete files of format {kind.format!r} are not known to this version of Penstock")


def _from_parquet(spark: SparkSession, scope: FileScope, group: FileGroup, kind: DeleteKind) -> DataFrame:
    """Read by name, so that a third column of another writer is ignored and a missing snapshot id is NULL."""

    def plan(_filters: str) -> str:
        files = scope.delete_files(group, kind)
        return records((file.path, file.size, (file.data_file_id,)) for file in files)

    schema = T.StructType([T.StructField("pos", T.LongType()), T.StructField(SNAPSHOT, T.LongType())])
    constants = T.StructType([T.StructField(FILE, T.LongType())])
    size = kind.delete_count * _BYTES_PER_POSITION
    frame = parquet_relation(spark, plan, schema, constants, size, "ducklake delete files")
    shown = frame.where(F.col(SNAPSHOT).isNull() | (F.col(SNAPSHOT) <= scope.version))
    return shown.select(FILE, F.col("pos").alias(POSITION))


def _from_puffin(spark: SparkSession, files: Sequence[DeleteFile]) -> DataFrame:
    paths = spark.createDataFrame([(file.data_file_id, file.path) for file in files], "file long, path string")
    return paths.repartition(min(len(files), 200)).mapInArrow(_decode_vectors, _POSITIONS)


def _decode_vectors(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from penstock.storage.deletion_vectors import read_deletion_vector

    for batch in batches:
        for file, path in zip(batch["file"].to_pylist(), batch["path"].to_pylist(), strict=True):
            positions = read_deletion_vector(path)
            yield pa.RecordBatch.from_arrays(
                [pa.array([file] * len(positions), pa.int64()), pa.array(positions, pa.int64())], names=_POSITIONS.names
            )
