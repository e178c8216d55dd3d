"""Readers of a namespace that are not Penstock's: pylance, the namespace client, DuckDB's extension."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any
from urllib.parse import unquote

import duckdb
import lance
import pyarrow as pa
from duckdb_extensions import import_extension
from lance_namespace import (
    DescribeNamespaceRequest,
    DescribeTableRequest,
    ListNamespacesRequest,
    ListTablesRequest,
    connect,
)


def client(root: object) -> Any:
    return connect("dir", {"root": str(root), "manifest_enabled": "true", "dir_listing_enabled": "false"})


def listed_leaves(root: object, name: str) -> dict[str, str]:
    """The tables of a namespace as the client lists and describes them: their paths by object id."""
    found: dict[str, str] = {}
    spaces = [[name]]
    namespaces = client(root)
    while spaces:
        at = spaces.pop()
        for table in namespaces.list_tables(ListTablesRequest(id=at)).tables:
            described = namespaces.describe_table(DescribeTableRequest(id=[*at, table]))
            found["$".join([*at, table])] = unquote(described.location.removeprefix("file://"))
        spaces += [[*at, child] for child in namespaces.list_namespaces(ListNamespacesRequest(id=at)).namespaces]
    return found


def properties(root: object, name: str) -> dict[str, str]:
    described = client(root).describe_namespace(DescribeNamespaceRequest(id=[name]))
    return dict(described.properties)


def by_pylance(root: object, name: str) -> dict[str, pa.Table]:
    """The rows of every leaf."""
    return {object_id: lance.dataset(location).to_table() for object_id, location in listed_leaves(root, name).items()}


def by_duckdb(root: object, name: str, columns: str = "*") -> list[tuple[Any, ...]]:
    """The rows of all leaves."""
    rows: list[tuple[Any, ...]] = []
    for location in listed_leaves(root, name).values():
        path = location.replace("'", "''")
        rows += _duckdb().execute(f"SELECT {columns} FROM __lance_scan('{path}')").fetchall()
    return rows


def in_order(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in rows), key=repr)


@cache
def _duckdb() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    import_extension("lance")
    connection.load_extension("lance")
    connection.execute("SET TimeZone = 'UTC'")
    return connection
