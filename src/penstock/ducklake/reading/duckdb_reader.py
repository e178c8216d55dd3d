"""Reads the files that Spark's own reader cannot read, by DuckDB in Spark's workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812

from penstock.ducklake.catalog.objects import columns_at
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.files.sealed_keys import Seal
from penstock.ducklake.model.files import DataFile
from penstock.ducklake.reading.column_layout import ColumnLayout
from penstock.ducklake.reading.duckdb_rows import in_spark_arrow_types
from penstock.schema.embedded_columns import EMBEDDED_ROW_ID, EMBEDDED_SNAPSHOT_ID
from penstock.storage.duckdb_files import connect_duckdb, read_parquet
from penstock.storage.duckdb_sql import duckdb_quoted, select_list

DUCKDB_FILE = (
    T.StructType()
    .add("file", T.LongType())
    .add("row_id_start", T.LongType())
    .add("changed_in", T.LongType())
    .add("location", T.StringType())
    .add("key", T.StringType())
    .add("select", T.StringType())
)
_BATCH_ROWS = 65536
Reader = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def duckdb_file(file: DataFile, layout: ColumnLayout, seal: Seal) -> tuple[object, ...]:
    """A file's row of `DUCKDB_FILE`: how to read it, and the SQL that brings its rows into the table's shape."""
    written = columns_at(layout.history, At(file.begin_snapshot))
    values = {column.id: duckdb_quoted(column.name) for column in written}
    select = select_list(layout.columns, written, values, nanoseconds=layout.nanoseconds)
    return (file.id, file.row_id_start, file.changed_in, file.path, seal.close(file.encryption_key, file.path), select)


def read_rows(schema: T.StructType, seal: Seal) -> Reader:
    """A reader of rows: `v0, v1, ...`, file, row id start, changed in, position, embedded row id and snapshot id."""

    def rows(columns: set[str], job: dict[str, Any]) -> str:
        embedded = [
            name if name in columns else "CAST(NULL AS BIGINT)" for name in (EMBEDDED_ROW_ID, EMBEDDED_SNAPSHOT_ID)
        ]
        constants = ", ".join(_bigint(job[name]) for name in ("file", "row_id_start", "changed_in"))
        return f"{job['select']}, {constants}, file_row_number, {', '.join(embedded)}"

    return _reader(schema, seal, rows)


def read_positions(schema: T.StructType, seal: Seal) -> Reader:
    """A reader of delete files: file, position and snapshot of the rows that they delete up to a snapshot."""

    def positions(columns: set[str], job: dict[str, Any]) -> str:
        begin = _bigint(job["begin"])
        deleted_in = f"coalesce({EMBEDDED_SNAPSHOT_ID}, {begin})" if EMBEDDED_SNAPSHOT_ID in columns else begin
        return f"{_bigint(job['file'])}, pos, {deleted_in}"

    def where(columns: set[str], job: dict[str, Any]) -> str:
        return f"coalesce({EMBEDDED_SNAPSHOT_ID}, 0) <= {job['last']}" if EMBEDDED_SNAPSHOT_ID in columns else "true"

    return _reader(schema, seal, positions, where)


def _bigint(value: int | None) -> str:
    return f"CAST({'NULL' if value is None else value} AS BIGINT)"


def _reader(
    schema: T.StructType,
    seal: Seal,
    select: Callable[[set[str], dict[str, Any]], str],
    where: Callable[[set[str], dict[str, Any]], str] = lambda columns, job: "true",
) -> Reader:
    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        connection = connect_duckdb()
        for batch in batches:
            for job in batch.to_pylist():
                source = read_parquet(connection, job["location"], seal.open(job["key"], job["location"]))
                columns = {row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()}
                sql = f"SELECT {select(columns, job)} FROM {source} WHERE {where(columns, job)}"
                for rows in connection.execute(sql).to_arrow_reader(_BATCH_ROWS):
                    named = pa.table(rows.columns, names=schema.names)
                    yield from in_spark_arrow_types(named, schema).to_batches()

    return read
