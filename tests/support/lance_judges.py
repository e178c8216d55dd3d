"""Readers of a namespace that are not Penstock's: pylance, the namespace client, DuckDB's extension."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

import lance
import pyarrow as pa
from lance_namespace import (
    CreateNamespaceRequest,
    DeclareTableRequest,
    DescribeNamespaceRequest,
    DescribeTableRequest,
    ListNamespacesRequest,
    ListTablesRequest,
    connect,
)

from support.duckdb_connection import duckdb_with


def client(root: object) -> Any:
    return connect("dir", {"root": str(root), "manifest_enabled": "true", "dir_listing_enabled": "false"})


def listed_leaves(root: object, name: str) -> dict[str, str]:
    """The tables of a namespace as the client lists and describes them: their paths by object id."""
    found: dict[str, str] = {}
    spaces = [name.split("$")]
    namespaces = client(root)
    while spaces:
        at = spaces.pop()
        for table in namespaces.list_tables(ListTablesRequest(id=at)).tables:
            described = namespaces.describe_table(DescribeTableRequest(id=[*at, table]))
            found["$".join([*at, table])] = unquote(described.location.removeprefix("file://"))
        spaces += [[*at, child] for child in namespaces.list_namespaces(ListNamespacesRequest(id=at)).namespaces]
    return found


def properties(root: object, name: str) -> dict[str, str]:
    described = client(root).describe_namespace(DescribeNamespaceRequest(id=name.split("$")))
    return dict(described.properties)


def check_manifest(root: object) -> None:
    """The manifest has one row for each object, and Lance's client makes a namespace and a table in the same root."""
    ids = lance.dataset(f"{root}/__manifest").to_table(columns=["object_id"])["object_id"].to_pylist()
    assert sorted(set(ids)) == sorted(ids)
    name = f"other_{uuid4().hex}"
    namespaces = client(root)
    namespaces.create_namespace(CreateNamespaceRequest(id=[name]))
    namespaces.declare_table(DeclareTableRequest(id=[name, "plain"]))
    assert namespaces.list_tables(ListTablesRequest(id=[name])).tables == ["plain"]


def by_pylance(root: object, name: str) -> dict[str, pa.Table]:
    """The rows of every leaf."""
    return {object_id: lance.dataset(location).to_table() for object_id, location in listed_leaves(root, name).items()}


def by_duckdb(root: object, name: str, columns: str = "*") -> list[tuple[Any, ...]]:
    """The rows of all leaves."""
    rows: list[tuple[Any, ...]] = []
    for location in listed_leaves(root, name).values():
        path = location.replace("'", "''")
        rows += duckdb_with("lance").execute(f"SELECT {columns} FROM __lance_scan('{path}')").fetchall()
    return rows


def in_order(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in rows), key=repr)
