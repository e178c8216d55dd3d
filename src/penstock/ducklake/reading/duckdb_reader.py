"""Reads the files that Spark's own reader cannot read, by DuckDB in Spark's workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import duckdb
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
from penstock.storage.file_columns import FileColumns, file_columns, select_of

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
_CHOSEN = "_penstock_chosen"
Job = dict[str, Any]  # a row of `DUCKDB_FILE`, and what comes with it
Reader = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def duckdb_file(file: DataFile, layout: ColumnLayout, seal: Seal) -> tuple[object, ...]:
    """A file's row of `DUCKDB_FILE`: how to read it, and the SQL that brings its rows into the table's shape."""
    written = columns_at(layout.history, At(file.begin_snapshot))
    values = {column.id: duckdb_quoted(column.name) for column in written}
    select = select_list(layout.columns, written, values, nanoseconds=layout.nanoseconds)
    return (file.id, file.row_id_start, file.changed_in, file.path, seal.close(file.encryption_key, file.path), select)


def read_rows(schema: T.StructType, seal: Seal) -> Reader:
    """A reader of rows: `v0, v1, ...`, file, row id start, changed in, position, embedded row id and snapshot id."""

    return _reader(schema, seal, lambda columns, job: _rows(columns, job, job["select"]))


def read_rows_of(
    schema: T.StructType, seal: Seal, layout: ColumnLayout, chosen: Callable[[Job], pa.Table], others: Sequence[str]
) -> Reader:
    """A reader of some rows, as `read_rows` has them, then other columns of theirs: the `chosen` ones of each file.

    The first column of these is a row's position, and `others` are the rest; no column of the table has such a name.
    Files have the names of the table's columns, and may lack those that were added in the snapshot of the file.
    """
    place, *rest = others
    shown, nanoseconds = layout.columns, layout.nanoseconds

    def rows(columns: FileColumns, job: Job) -> str:
        return ", ".join([_rows(columns, job, select_of(columns, shown, nanoseconds=nanoseconds)), *rest])

    def source(connection: duckdb.DuckDBPyConnection, job: Job, file: str) -> str:
        connection.register(_CHOSEN, chosen(job))
        return f"{file} JOIN {_CHOSEN} ON file_row_number = {place}"

    return _reader(schema, seal, rows, source=source)


def read_positions(schema: T.StructType, seal: Seal) -> Reader:
    """A reader of delete files: file, position and snapshot of the rows that they delete up to a snapshot."""

    def positions(columns: FileColumns, job: Job) -> str:
        begin = _bigint(job["begin"])
        deleted_in = f"coalesce({EMBEDDED_SNAPSHOT_ID}, {begin})" if EMBEDDED_SNAPSHOT_ID in columns else begin
        return f"{_bigint(job['file'])}, pos, {deleted_in}"

    def where(columns: FileColumns, job: Job) -> str:
        return f"coalesce({EMBEDDED_SNAPSHOT_ID}, 0) <= {job['last']}" if EMBEDDED_SNAPSHOT_ID in columns else "true"

    return _reader(schema, seal, positions, where)


def _rows(columns: FileColumns, job: Job, select: str) -> str:
    embedded = [name if name in columns else "CAST(NULL AS BIGINT)" for name in (EMBEDDED_ROW_ID, EMBEDDED_SNAPSHOT_ID)]
    constants = ", ".join(_bigint(job[name]) for name in ("file", "row_id_start", "changed_in"))
    return f"{select}, {constants}, file_row_number, {', '.join(embedded)}"


def _bigint(value: int | None) -> str:
    return f"CAST({'NULL' if value is None else value} AS BIGINT)"


def _reader(
    schema: T.StructType,
    seal: Seal,
    select: Callable[[FileColumns, Job], str],
    where: Callable[[FileColumns, Job], str] = lambda columns, job: "true",
    source: Callable[[duckdb.DuckDBPyConnection, Job, str], str] = lambda connection, job, file: file,
) -> Reader:
    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        connection = connect_duckdb()
        for batch in batches:
            for job in batch.to_pylist():
                file = read_parquet(connection, job["location"], seal.open(job["key"], job["location"]))
                columns = file_columns(connection, file)
                rows_of = source(connection, job, file)
                sql = f"SELECT {select(columns, job)} FROM {rows_of} WHERE {where(columns, job)}"
                for rows in connection.execute(sql).to_arrow_reader(_BATCH_ROWS):
                    named = pa.table(rows.columns, names=schema.names)
                    yield from in_spark_arrow_types(named, schema).to_batches()

    return read
