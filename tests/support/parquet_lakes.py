"""Tables that DuckDB's extension made, their rows as Spark would hand them over, and files put into a lake by hand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from penstock.schema.columns import Column
from penstock.schema.statistics import ColumnStatistics, WrittenFile
from penstock.schema.types import parse_type
from penstock.storage.duckdb_sql import duckdb_quoted, select_list
from penstock.storage.parquet import FileOptions, WritePlan, write_files
from support.catalogs import Catalog
from support.reference import METADATA, Reference, quote


def columns_of(reference: Reference, table: str) -> tuple[Column, ...]:
    """The columns of a table of the lake, as its catalog has them now."""
    rows = reference.rows(
        f"SELECT column_id, column_name, column_type, nulls_allowed, parent_column FROM {METADATA}.ducklake_column c"
        f" JOIN {METADATA}.ducklake_table t USING (table_id) WHERE table_name = {quote(table)}"
        " AND c.end_snapshot IS NULL AND t.end_snapshot IS NULL ORDER BY column_order"
    )

    def below(parent: int | None) -> tuple[Column, ...]:
        return tuple(
            Column(id, name, parse_type(kind), 0, nulls_allowed=nulls, children=below(id))
            for id, name, kind, nulls, above in rows
            if above == parent
        )

    return below(None)


def shown_rows(reference: Reference, table: str, nanoseconds: bool = False) -> pa.Table:
    """The rows of a table in the types that Penstock shows."""
    columns = columns_of(reference, table)
    values = {column.id: duckdb_quoted(column.name) for column in columns}
    select = select_list(columns, columns, values, nanoseconds=nanoseconds)
    rows: pa.Table = reference.connection.execute(f"SELECT {select} FROM {table}").to_arrow_table()
    return rows


def write_all(plan: WritePlan, rows: pa.Table, **settings: Any) -> list[WrittenFile]:
    return list(write_files(plan, rows.to_batches(), **settings))


def plan_for(reference: Reference, table: str, directory: str, **settings: Any) -> WritePlan:
    return WritePlan(columns_of(reference, table), directory, settings.pop("options", FileOptions()), **settings)


def reference_statistics(reference: Reference, table: str) -> dict[int, tuple[Any, ...]]:
    """What the extension keeps of the newest file of a table, by column id, without sizes."""
    rows = reference.rows(
        "SELECT column_id, value_count, null_count, min_value, max_value, contains_nan, extra_stats"
        f" FROM {METADATA}.ducklake_file_column_stats WHERE data_file_id = (SELECT max(data_file_id)"
        f" FROM {METADATA}.ducklake_data_file JOIN {METADATA}.ducklake_table t USING (table_id)"
        f" WHERE table_name = {quote(table)})"
    )
    return {row[0]: row[1:] for row in rows}


def without_size(item: ColumnStatistics) -> tuple[Any, ...]:
    return (item.value_count, item.null_count, item.minimum, item.maximum, item.contains_nan, item.extra)


def adopt(catalog: Catalog, table: str, files: Iterable[WrittenFile]) -> None:
    """Make files the contents of a table that is empty, in one new snapshot of a DuckDB catalog."""
    statements = [
        "INSERT INTO ducklake_snapshot SELECT snapshot_id + 1, now(), schema_version, next_catalog_id,"
        " next_file_id + 1000 FROM ducklake_snapshot ORDER BY snapshot_id DESC LIMIT 1",
        f"INSERT INTO ducklake_snapshot_changes SELECT max(snapshot_id), 'inserted_into_table:' || (SELECT table_id"
        f" FROM ducklake_table WHERE table_name = {quote(table)}), NULL, NULL, NULL FROM ducklake_snapshot",
    ]
    start = 0
    for number, file in enumerate(files):
        key = "NULL" if file.encryption_key is None else quote(file.encryption_key)
        statements.append(
            "INSERT INTO ducklake_data_file (data_file_id, table_id, begin_snapshot, path, path_is_relative,"
            " file_format, record_count, file_size_bytes, footer_size, row_id_start, encryption_key)"
            f" SELECT next_file_id - 1000 + {number}, table_id, snapshot_id, {quote(file.path)}, true, 'parquet',"
            f" {file.record_count}, {file.size}, {file.footer_size}, {start}, {key}"
            f" FROM ducklake_snapshot, ducklake_table WHERE table_name = {quote(table)}"
            " ORDER BY snapshot_id DESC LIMIT 1"
        )
        start += file.record_count
    statements.append(
        f"INSERT INTO ducklake_table_stats SELECT table_id, {start}, {start}, 1 FROM ducklake_table"
        f" WHERE table_name = {quote(table)}"
    )
    catalog.tamper(*statements)
