"""Readers of Delta tables that are not Penstock's: deltalake and DuckDB's extension."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from deltalake import DeltaTable, QueryBuilder

from support.duckdb_connection import duckdb_with


def by_deltalake(
    path: object, columns: str = "*", version: int | None = None, where: str = "true"
) -> list[tuple[Any, ...]]:
    table = DeltaTable(str(path), version=version)
    found = QueryBuilder().register("t", table).execute(f"SELECT {columns} FROM t WHERE {where}").read_all()
    return [tuple(row.values()) for row in _arrow(found).to_pylist()]


def by_duckdb(path: object, columns: str = "*", where: str = "true") -> list[tuple[Any, ...]]:
    quoted = str(path).replace("'", "''")
    return duckdb_with("delta").execute(f"SELECT {columns} FROM delta_scan('{quoted}') WHERE {where}").fetchall()


def in_order(rows: Iterable[Any]) -> list[str]:
    """Rows as sorted texts: NaN equals itself there."""
    return sorted(repr(tuple(row)) for row in rows)


def data_files(path: Path) -> set[str]:
    return {str(file.relative_to(path)) for file in path.rglob("*.parquet") if "_delta_log" not in file.parts}


def _arrow(found: Any) -> Any:
    import pyarrow as pa

    return pa.table(found)
