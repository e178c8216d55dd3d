"""Encrypted files: read by DuckDB in Spark's workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812

from penstock.catalog.objects import columns_at
from penstock.model.files import DataFile, DeleteFile
from penstock.model.reshape import quoted, select_list
from penstock.spark.arrow import as_spark_expects, carried_schema
from penstock.spark.shape import Shape
from penstock.storage.encryption import connect, read_encrypted

_MOST_TASKS = 200
_JOB = T.StructType(
    [T.StructField(name, T.StringType()) for name in ("path", "key", "select")]
    + [T.StructField(name, T.LongType()) for name in ("file", "row_id_start")]
)
Job = tuple[str, str, str, int, int | None]


def encrypted_rows(spark: SparkSession, files: Sequence[DataFile], shape: Shape, others: Sequence[str]) -> DataFrame:
    """Columns `v0, v1, ...` and the others: file, row id start, position, embedded row id, embedded snapshot id."""
    jobs = [(file.path, file.encryption_key or "", _select(file, shape), file.id, file.row_id_start) for file in files]
    schema = carried_schema(shape.columns, shape.nanoseconds, others)
    return _jobs(spark, jobs).mapInArrow(_reader(schema, _row_sql), schema)


def encrypted_positions(spark: SparkSession, files: Sequence[DeleteFile], version: int, schema: T.StructType) -> DataFrame:
    """File and position of the rows that encrypted delete files delete up to a snapshot."""
    jobs = [(file.path, file.encryption_key or "", str(version), file.data_file_id, None) for file in files]
    return _jobs(spark, jobs).mapInArrow(_reader(schema, _position_sql), schema)


def _select(file: DataFile, shape: Shape) -> str:
    written = columns_at(shape.history, file.begin_snapshot)
    values = {column.id: quoted(column.name) for column in written}
    return select_list(shape.columns, written, values, nanoseconds=shape.nanoseconds)


def _jobs(spark: SparkSession, jobs: Sequence[Job]) -> DataFrame:
    """As an RDD, because the rows of a local relation, keys and all, would be printed with the plan."""
    return spark.createDataFrame(spark.sparkContext.parallelize(jobs, max(1, min(len(jobs), _MOST_TASKS))), _JOB)


def _row_sql(columns: set[str], select: str, source: str) -> str:
    embedded = [
        name if name in columns else "CAST(NULL AS BIGINT)"
        for name in ("_ducklake_internal_row_id", "_ducklake_internal_snapshot_id")
    ]
    return f"SELECT {select}, file_row_number, {embedded[0]}, {embedded[1]} FROM {source}"


def _position_sql(columns: set[str], version: str, source: str) -> str:
    snapshot = "_ducklake_internal_snapshot_id"
    where = f"{snapshot} IS NULL OR {snapshot} <= {version}" if snapshot in columns else "true"
    return f"SELECT pos FROM {source} WHERE {where}"


def _reader(
    schema: T.StructType, sql: Callable[[set[str], str, str], str]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        connection = connect()
        for batch in batches:
            for job in batch.to_pylist():
                source = read_encrypted(job["path"], job["key"])
                columns = {row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()}
                result = connection.execute(sql(columns, job["select"], source)).to_arrow_reader(65536)
                for rows in result:
                    yield from _finished(rows, job["file"], job["row_id_start"], schema)

    return read


def _finished(rows: pa.RecordBatch, file: int, row_id_start: int | None, schema: T.StructType) -> Iterator[pa.RecordBatch]:
    """The file's constants take their place between the columns that were read."""
    constants = {"_penstock_file": file, "_penstock_deleted_file": file, "_penstock_row_id_start": row_id_start}
    read = iter(rows.columns)
    columns = [
        pa.array([constants[name]] * rows.num_rows, pa.int64()) if name in constants else next(read) for name in schema.names
    ]
    yield from as_spark_expects(pa.table(columns, names=schema.names), schema).to_batches()
