"""The catalog's tables that pruning reads, made by hand in each kind of database."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import duckdb
import pytest

from penstock.ducklake.catalog.dialects import DUCKDB, MYSQL, POSTGRES, SQLITE, Dialect
from penstock.ducklake.catalog.file_pruning import Condition

FILE = "data_file_id BIGINT, table_id BIGINT"
STATISTICS = "value_count BIGINT, null_count BIGINT, min_value {text}, max_value {text}, contains_nan {boolean}"
TABLES = {
    "ducklake_data_file": f"{FILE}, partition_id BIGINT",
    "ducklake_file_column_stats": f"{FILE}, column_id BIGINT, {STATISTICS}",
    "ducklake_file_partition_value": FILE + ", partition_key_index BIGINT, partition_value {text}",
    "ducklake_column_mapping": "mapping_id BIGINT, table_id BIGINT",
    "ducklake_column": "table_id BIGINT, column_id BIGINT, column_type {text}",
}


class Engine:
    """An open database with those tables, and nothing else."""

    dialect: Dialect
    text = "VARCHAR"
    boolean = "BOOLEAN"
    keeps_nul = True

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        for name, columns in TABLES.items():
            self.execute(f"CREATE TABLE {name} ({columns.format(text=self.text, boolean=self.boolean)})")

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        return self.connection.execute(sql, parameters).fetchall()

    def fill(self, rows: dict[str, list[tuple[Any, ...]]]) -> None:
        """Replace the contents of every table."""
        for name in TABLES:
            self.execute(f"DELETE FROM {name}")
            for start in range(0, len(rows.get(name, ())), 500):
                chunk = rows[name][start : start + 500]
                places = ", ".join("(" + ", ".join("?" * len(row)) + ")" for row in chunk)
                self.execute(f"INSERT INTO {name} VALUES {places}", [value for row in chunk for value in row])

    def files(self, condition: Condition) -> set[int]:
        sql = f"SELECT d.data_file_id FROM ducklake_data_file d WHERE d.table_id = 1 AND {condition.sql}"
        return {row[0] for row in self.execute(sql, condition.parameters)}


class DuckDBEngine(Engine):
    dialect = DUCKDB


class SQLiteEngine(Engine):
    dialect = SQLITE
    boolean = "BIGINT"


class PostgresEngine(Engine):
    dialect = POSTGRES
    keeps_nul = False

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        cursor = self.connection.execute(sql.replace("?", "%s"), parameters)
        return cursor.fetchall() if cursor.description else []


class MySQLEngine(Engine):
    dialect = MYSQL
    text = "TEXT"

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql.replace("?", "%s"), tuple(parameters))
            return list(cursor.fetchall())


def open_engine(kind: str, request: pytest.FixtureRequest) -> Engine:
    match kind:
        case "duckdb":
            return DuckDBEngine(duckdb.connect())
        case "sqlite":
            return SQLiteEngine(sqlite3.connect(":memory:"))
        case "postgres":
            import psycopg

            server = request.getfixturevalue("postgres_server")
            return PostgresEngine(psycopg.connect(server.connection_string(server.create_database()), autocommit=True))
    import pymysql

    server = request.getfixturevalue("mysql_server")
    connection = pymysql.connect(
        unix_socket=str(server.socket),
        user="root",
        database=server.create_database(),
        charset="utf8mb4",
        autocommit=True,
    )
    engine = MySQLEngine(connection)
    engine.execute("SET SESSION sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT'")
    return engine
