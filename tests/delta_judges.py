"""Readers of Delta tables that are not Penstock's: deltalake and DuckDB's extension."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
from deltalake import DeltaTable, QueryBuilder
from duckdb_extensions import import_extension


def by_deltalake(path: object, columns: str = "*", version: int | None = None) -> list[tuple[Any, ...]]:
    table = DeltaTable(str(path), version=version)
    found = QueryBuilder().register("t", table).execute(f"SELECT {columns} FROM t").read_all()
    return [tuple(row.values()) for row in _arrow(found).to_pylist()]


def by_duckdb(path: object, columns: str = "*") -> list[tuple[Any, ...]]:
    quoted = str(path).replace("'", "''")
    return _duckdb().execute(f"SELECT {columns} FROM delta_scan('{quoted}')").fetchall()


def in_order(rows: Iterable[Any]) -> list[str]:
    """Rows as sorted texts: NaN equals itself there."""
    return sorted(repr(tuple(row)) for row in rows)


def data_files(path: Path) -> set[str]:
    return {str(file.relative_to(path)) for file in path.rglob("*.parquet") if "_delta_log" not in file.parts}


def _arrow(found: Any) -> Any:
    import pyarrow as pa

    return pa.table(found)


@cache
def _duckdb() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    import_extension("delta")
    connection.load_extension("delta")
    connection.execute("SET TimeZone = 'UTC'")
    return connection
