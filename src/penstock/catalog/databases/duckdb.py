"""A DuckDB file as the metadata database."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa

from penstock.catalog.databases.base import ConnectOptions, Database, InlinedColumn, Row
from penstock.catalog.dialects import DUCKDB
from penstock.catalog.location import Location
from penstock.errors import AttachError


class DuckdbDatabase(Database):
    engine = "duckdb"
    dialect = DUCKDB

    def __init__(self, location: Location, options: ConnectOptions) -> None:
        super().__init__(location)
        if not os.path.exists(location.target):
            raise AttachError(
                f"no DuckLake at {location}: the file does not exist; check the path, "
                f"or create the lake with DuckDB: ATTACH '{location}'"
            )
        try:
            self._connection = duckdb.connect(
                location.target, read_only=options.read_only, config=dict(options.parameters)
            )
        except duckdb.IOException as error:
            raise AttachError(_cannot_open(location, str(error))) from None
        except duckdb.Error as error:
            raise AttachError(f"{location} cannot be opened by DuckDB: {error}") from None
        self._connection.execute("SET TimeZone = 'UTC'")
        if options.schema:
            self._use(options.schema)

    def _use(self, schema: str) -> None:
        try:
            self._connection.execute(f"USE {self.identifier(schema)}")
        except duckdb.Error:
            self._connection.close()
            raise AttachError(
                f"{self.location} has no schema {schema!r}; give metadata_schema as it was created"
            ) from None

    def _query(self, sql: str, parameters: Sequence[Any]) -> list[Row]:
        return self._connection.execute(sql, list(parameters)).fetchall()

    def _run(self, sql: str) -> None:
        self._connection.execute(sql)

    def _close(self) -> None:
        self._connection.close()

    def tables(self, prefix: str) -> set[str]:
        sql = """SELECT table_name FROM duckdb_tables()
                 WHERE database_name = current_database() AND schema_name = current_schema()
                 AND starts_with(table_name, ?)"""
        return {row[0] for row in self.query(sql, [prefix])}

    def inlined(
        self, table: str, columns: Sequence[InlinedColumn], where: str, parameters: Sequence[Any], select: str
    ) -> pa.Table:
        named = "".join(f", {self.identifier(column.name)} AS c{i}" for i, column in enumerate(columns))
        rows = f"SELECT row_id{named} FROM {self.identifier(table)} WHERE {where}"
        with self._lock:
            return self._connection.execute(f"SELECT {select} FROM ({rows})", list(parameters)).to_arrow_table()

    def inlined_text(
        self, table: str, columns: Sequence[InlinedColumn], where: str, parameters: Sequence[Any]
    ) -> list[Row]:
        raise NotImplementedError("a DuckDB catalog holds inlined values in their own types")


def _cannot_open(location: Location, reason: str) -> str:
    if "lock" in reason.lower():
        return (
            f"{location} is held by another process (a DuckDB file has one writer, or only readers, at a time); "
            "close it there, or attach with read_only=True on both sides, or use a SQLite or PostgreSQL catalog"
        )
    return f"{location} is not a DuckLake: DuckDB cannot open the file ({reason.splitlines()[0]})"
