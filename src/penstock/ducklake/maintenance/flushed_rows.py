"""Writes inlined rows to data files: they come from the catalog a few at a time, and DuckDB orders them on its disk."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa

from penstock.ducklake.catalog.commits.staged_compactions import FlushedFile
from penstock.ducklake.files.delete_files import DatedPositions, write_dated_delete_file
from penstock.partitioning import directory as hive_directory
from penstock.schema.columns import Column
from penstock.schema.embedded_columns import (
    EMBEDDED_ROW_ID,
    EMBEDDED_ROW_ID_FIELD,
    EMBEDDED_SNAPSHOT_ID,
    EMBEDDED_SNAPSHOT_ID_FIELD,
)
from penstock.schema.statistics import WrittenFile
from penstock.spark.write_job import PartitionKey
from penstock.storage.duckdb_files import connect_duckdb
from penstock.storage.duckdb_sql import duckdb_quoted, stored_list, text_literal
from penstock.storage.filesystems import delete_file
from penstock.storage.parquet import FileOptions
from penstock.storage.parquet.duckdb_copy import copy_options, copy_rows, new_key
from penstock.storage.parquet.duckdb_statistics import DuckDBStatistics
from penstock.storage.parquet.names import new_file_name
from penstock.storage.parquet.observations import Observations, nan_observations

_MEMORY = "600MB"


@dataclass(frozen=True)
class FlushPlan:
    """How the inlined rows of one shape of a table become files: `sort` are expressions, each with its order."""

    columns: tuple[Column, ...]
    directory: str
    options: FileOptions
    write_id: str
    encrypted: bool
    keys: tuple[PartitionKey, ...] = ()
    partition_names: tuple[str, ...] = ()
    sort: tuple[tuple[str, str], ...] = ()
    macros: tuple[str, ...] = ()

    @property
    def prefix(self) -> str:
        """What names of ours begin with, which are beside those of the table's columns, and none of these does."""
        found = "_penstock_"
        while any(column.name.lower().startswith(found) for column in self.columns):
            found += "_"
        return found


def write_flushed(plan: FlushPlan, batches: Iterator[pa.Table]) -> Iterator[FlushedFile]:
    """Write rows with columns `v0, v1, ...`, row_id, begin_snapshot and end_snapshot: a file for each partition."""
    with tempfile.TemporaryDirectory(prefix="penstock-") as directory, connect_duckdb() as connection:
        connection.execute(f"SET memory_limit = '{_MEMORY}'")
        connection.execute(f"SET temp_directory = {text_literal(directory)}")
        for statement in plan.macros:
            connection.execute(statement)
        observed = nan_observations(plan.columns)
        if _load(connection, plan, batches, observed):
            _place(connection, plan)
            for values in _partitions(connection, plan):
                yield _written(connection, plan, values, observed.with_nan)


def _load(
    connection: duckdb.DuckDBPyConnection, plan: FlushPlan, batches: Iterator[pa.Table], observed: Observations
) -> int:
    count = 0
    for batch in batches:
        observed.add(batch)
        names = [f"{plan.prefix}{name}" for name in batch.column_names]
        values = [key.transform.values(batch.column(key.position), key.type) for key in plan.keys]
        rows = pa.table([*batch.columns, *values], names=[*names, *(f"{plan.prefix}p{i}" for i in range(len(values)))])
        connection.register("batch", rows)
        connection.execute("INSERT INTO flushed FROM batch" if count else "CREATE TABLE flushed AS FROM batch")
        connection.unregister("batch")
        count += batch.num_rows
    return count


def _place(connection: duckdb.DuckDBPyConnection, plan: FlushPlan) -> None:
    """Number the rows of each partition in the order that they are written in."""
    keys = [f"{expression} {order}" for expression, order in plan.sort]
    keys += [f"{plan.prefix}row_id", f"{plan.prefix}begin_snapshot"]
    parts = ", ".join(f"{plan.prefix}p{i}" for i in range(len(plan.keys)))
    over = f"{f'PARTITION BY {parts}' if parts else ''} ORDER BY {', '.join(keys)}"
    named = f"SELECT *, {_stored(plan)} FROM flushed" if plan.sort else "FROM flushed"
    dropped = ", ".join(duckdb_quoted(column.name) for column in plan.columns)
    chosen = f"* EXCLUDE ({dropped})" if plan.sort else "*"
    connection.execute(
        f"CREATE TABLE placed AS SELECT {chosen}, row_number() OVER ({over}) - 1 AS {plan.prefix}pos FROM ({named})"
    )
    connection.execute("DROP TABLE flushed")


def _stored(plan: FlushPlan) -> str:
    values: Mapping[int, str] = {column.id: f"{plan.prefix}v{place}" for place, column in enumerate(plan.columns)}
    return stored_list(plan.columns, values, nanoseconds=True)


def _partitions(connection: duckdb.DuckDBPyConnection, plan: FlushPlan) -> list[tuple[str | None, ...]]:
    if not plan.keys:
        return [()]
    listed = ", ".join(f"{plan.prefix}p{i}" for i in range(len(plan.keys)))
    return connection.execute(f"SELECT DISTINCT {listed} FROM placed ORDER BY ALL").fetchall()


def _written(
    connection: duckdb.DuckDBPyConnection, plan: FlushPlan, values: tuple[str | None, ...], with_nan: Collection[int]
) -> FlushedFile:
    conditions = [
        f"{plan.prefix}p{i} IS NOT DISTINCT FROM {'NULL' if value is None else text_literal(value)}"
        for i, value in enumerate(values)
    ]
    chosen = f"FROM placed WHERE {' AND '.join(conditions) or 'true'}"
    folder = hive_directory(plan.partition_names, values) if plan.keys and plan.options.hive_file_pattern else ""
    file = _copied(connection, plan, chosen, folder, values, with_nan)
    sql = f"SELECT min({plan.prefix}begin_snapshot), max({plan.prefix}begin_snapshot) {chosen}"
    [(first, last)] = connection.execute(sql).fetchall()
    numbers = f"{plan.prefix}pos AS p, {plan.prefix}end_snapshot AS s"
    sql = f"SELECT {numbers} {chosen} AND {plan.prefix}end_snapshot IS NOT NULL ORDER BY 1"
    ended = connection.execute(sql).fetchnumpy()
    if not len(ended["p"]):
        return FlushedFile(file, first, last)
    deleted = DatedPositions(np.asarray(ended["p"], np.int64), np.asarray(ended["s"], np.int64))
    path = plan.directory + file.path
    try:
        delete = write_dated_delete_file(plan.directory, plan.write_id, path, deleted, encrypted=plan.encrypted)
    except BaseException:
        delete_file(path)
        raise
    return FlushedFile(file, first, last, delete, int(deleted.snapshots.min()))


def _copied(
    connection: duckdb.DuckDBPyConnection,
    plan: FlushPlan,
    chosen: str,
    folder: str,
    values: tuple[str | None, ...],
    with_nan: Collection[int],
) -> WrittenFile:
    path, key = folder + new_file_name(plan.write_id), new_key() if plan.encrypted else None
    embedded = [(EMBEDDED_ROW_ID, EMBEDDED_ROW_ID_FIELD), (EMBEDDED_SNAPSHOT_ID, EMBEDDED_SNAPSHOT_ID_FIELD)]
    group = plan.options.row_group_size
    options = copy_options(plan.columns, plan.options, group, embedded=embedded, encrypted=key is not None)
    numbers = f"{plan.prefix}row_id AS {EMBEDDED_ROW_ID}, {plan.prefix}begin_snapshot AS {EMBEDDED_SNAPSHOT_ID}"
    select = f"SELECT {_stored(plan)}, {numbers} {chosen} ORDER BY {plan.prefix}pos"
    copied = copy_rows(connection, select, plan.directory + path, options, key)
    found = DuckDBStatistics(plan.columns, copied.statistics, with_nan=with_nan)
    return WrittenFile(
        path=path,
        record_count=copied.rows,
        size=copied.size,
        footer_size=copied.footer_size,
        partition_values=values,
        encryption_key=key,
        columns=found.columns(),
        variants=found.variants(),
    )
