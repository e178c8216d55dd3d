"""Lakes to measure: TPC-H by DuckDB's extensions, and catalogs with very many files."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
from duckdb_extensions import import_extension

EXTENSIONS = ("ducklake", "sqlite_scanner", "postgres_scanner", "tpch")
LINEITEM_FILES = 8
TPCH = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")


def duck() -> duckdb.DuckDBPyConnection:
    """DuckDB with the extensions that the benchmarks use."""
    connection = duckdb.connect()
    for name in EXTENSIONS:
        import_extension(name)
        connection.execute(f"LOAD {name}")
    connection.execute("SET preserve_insertion_order = false")
    return connection


def lineitem_parquet(directory: Path, scale: float) -> Path:
    """TPC-H lineitem as one Parquet file, made once."""
    path = directory / f"lineitem-{scale}.parquet"
    if not path.exists():
        with duck() as connection:
            connection.execute(f"CALL dbgen(sf = {scale})")
            connection.execute(f"COPY lineitem TO '{path}'")
    return path


def lineitem_lake(directory: Path, scale: float) -> str:
    """Three tables: `plain` in 8 files, `deleted` with 1% of the rows of each file gone, `daily` by day of 1995."""
    source, uri = lineitem_parquet(directory, scale), f"ducklake:sqlite:{directory}/lineitem-{scale}.sqlite"
    if os.path.exists(f"{directory}/lineitem-{scale}.sqlite"):
        return uri
    with duck() as connection:
        connection.execute(
            f"ATTACH '{uri}' AS lake (DATA_PATH '{directory}/lineitem-{scale}/', DATA_INLINING_ROW_LIMIT 0)"
        )
        for name in ("plain", "deleted"):
            connection.execute(f"CREATE TABLE lake.{name} AS FROM '{source}' LIMIT 0")
            for part in range(LINEITEM_FILES):
                rows = f"FROM '{source}' WHERE l_orderkey % {LINEITEM_FILES} = {part}"
                connection.execute(f"INSERT INTO lake.{name} SELECT * {rows}")
        connection.execute("DELETE FROM lake.deleted WHERE hash(l_orderkey * 8 + l_linenumber) % 100 = 0")
        connection.execute(f"CREATE TABLE lake.daily AS FROM '{source}' LIMIT 0")
        connection.execute(
            "ALTER TABLE lake.daily SET PARTITIONED BY (year(l_shipdate), month(l_shipdate), day(l_shipdate))"
        )
        connection.execute(f"INSERT INTO lake.daily FROM '{source}' WHERE year(l_shipdate) = 1995")
    return uri


def tpch_lake(directory: Path, scale: float) -> str:
    """The eight tables of TPC-H, made once."""
    path = directory / f"tpch-tables-{scale}.sqlite"
    if not path.exists():
        with duck() as connection:
            connection.execute(f"CALL dbgen(sf = {scale})")
            connection.execute(
                f"ATTACH 'ducklake:sqlite:{path}' AS lake (DATA_PATH '{directory}/tpch-tables-{scale}/',"
                " DATA_INLINING_ROW_LIMIT 0)"
            )
            for table in TPCH:
                connection.execute(f"CREATE TABLE lake.{table} AS FROM memory.{table}")
    return f"ducklake:sqlite:{path}"


def many_files_lake(uri: str, directory: Path, files: int) -> None:
    """A table by day with made-up files: 10 a day, each with statistics of 8 columns. Only the catalog is real."""
    columns = ", ".join(f"c{i} BIGINT" for i in range(7))
    with duck() as connection:
        connection.execute(f"ATTACH '{uri}' AS lake (DATA_PATH '{directory}/none/')")
        connection.execute(f"CREATE TABLE lake.events (ts TIMESTAMP, {columns})")
        connection.execute("ALTER TABLE lake.events SET PARTITIONED BY (year(ts), month(ts), day(ts))")
        catalog = "__ducklake_metadata_lake"
        (table_id,) = connection.execute(f"SELECT table_id FROM {catalog}.ducklake_table").fetchone() or (0,)
        (partition_id,) = connection.execute(
            f"SELECT max(partition_id) FROM {catalog}.ducklake_partition_info"
        ).fetchone() or (0,)
        (snapshot,) = connection.execute(f"SELECT max(snapshot_id) FROM {catalog}.ducklake_snapshot").fetchone() or (0,)
        day = "TIMESTAMP '2000-01-01' + to_days(CAST(i // 10 AS INTEGER))"
        path = "'ducklake-00000000-0000-7000-8000-' || lpad(CAST(i AS VARCHAR), 12, '0') || '.parquet'"
        connection.execute(
            f"""INSERT INTO {catalog}.ducklake_data_file
                SELECT i, {table_id}, {snapshot}, NULL, NULL, {path}, true, 'parquet', 1000, 100000,
                       500, i * 1000, {partition_id}, NULL, NULL, NULL FROM range({files}) r(i)"""
        )
        for index, part in enumerate(("year", "month", "day")):
            connection.execute(
                f"""INSERT INTO {catalog}.ducklake_file_partition_value
                    SELECT i, {table_id}, {index}, CAST({part}({day}) AS VARCHAR) FROM range({files}) r(i)"""
            )
        connection.execute(
            f"""INSERT INTO {catalog}.ducklake_file_column_stats
                SELECT i, {table_id}, column_id, 100, 1000, 0,
                       CASE column_id WHEN 1 THEN CAST({day} AS VARCHAR) ELSE CAST(i * 1000 + column_id AS VARCHAR) END,
                       CASE column_id WHEN 1 THEN CAST({day} + INTERVAL 86399 SECOND AS VARCHAR)
                                      ELSE CAST(i * 1000 + 999 AS VARCHAR) END, NULL, NULL
                FROM range({files}) r(i), range(1, 9) s(column_id)"""
        )
        connection.execute(
            f"UPDATE {catalog}.ducklake_snapshot SET next_file_id = {files} WHERE snapshot_id = {snapshot}"
        )
