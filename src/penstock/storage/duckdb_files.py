"""Reads Parquet files with DuckDB, also those that it encrypted in its own way (no AAD), which no other reader can."""

from __future__ import annotations

import os
from functools import cache

import duckdb

from penstock.errors import UnsupportedError
from penstock.storage.azure import add_azure_secret, azure_access, duckdb_path
from penstock.storage.duckdb_sql import text_literal
from penstock.storage.options import known_stores
from penstock.storage.paths import is_local
from penstock.storage.s3 import S3Access, add_secret
from penstock.storage.stores import store_kind
from penstock.storage.web_files import web_address

_KEY = "file_key"
_WITHOUT = {
    "httpfs": "catalogs that are DuckDB files elsewhere, encrypted files, and files elsewhere that only DuckDB can "
    "read, need DuckDB's httpfs extension on every machine; pip install 'penstock[http]'",
    "azure": "files on Azure that only DuckDB can read need its azure extension on every machine; "
    "pip install 'penstock[azure]'",
}


def connect_duckdb() -> duckdb.DuckDBPyConnection:
    """An in-memory DuckDB, which reaches the buckets that are known."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    stores = known_stores()
    if stores and _has("httpfs"):
        load_httpfs(connection)
        for store, options in stores.items():
            if store.kind == "s3":
                add_secret(connection, S3Access.of(store.name, options))
    containers = [f"az://{store.name}/" for store in stores if store.kind == "azure"]
    if containers and _has("azure"):
        _load(connection, "azure")
        for container in containers:
            add_azure_secret(connection, azure_access(container))
    return connection


@cache
def _has(extension: str) -> bool:
    """Whether this machine has what reads files that are elsewhere: a process may know of buckets and not need it."""
    try:
        with duckdb.connect() as connection:
            _load(connection, extension)
    except UnsupportedError:
        return False
    return True


def duckdb_cursor() -> duckdb.DuckDBPyConnection:
    """A connection to an in-memory DuckDB that the process keeps: to open one takes longer than most questions.

    For questions about values: what is created there, all would see.
    """
    connection = _kept_duckdb(os.getpid()).cursor()
    connection.execute("SET TimeZone = 'UTC'")
    return connection


@cache
def _kept_duckdb(process: int) -> duckdb.DuckDBPyConnection:
    """Each process has its own: in a fork of another, what that one's threads held would be held for ever."""
    return duckdb.connect(config={"threads": 1})


def load_httpfs(connection: duckdb.DuckDBPyConnection) -> None:
    """Load the `httpfs` extension, which reads what is not on this machine, and carries the cryptography."""
    _load(connection, "httpfs")


def _load(connection: duckdb.DuckDBPyConnection, extension: str) -> None:
    try:
        connection.execute(f"LOAD {extension}")
    except duckdb.Error:
        _install(extension)
        connection.execute(f"LOAD {extension}")


def _install(extension: str) -> None:
    try:
        from duckdb_extensions import import_extension

        import_extension(extension)
    except ImportError:
        raise UnsupportedError(_WITHOUT[extension]) from None


def path_literal(path: str) -> str:
    """A path as a literal of DuckDB's SQL that means this file alone: DuckDB takes some letters for patterns.

    Raises UnsupportedError for one that is not on this machine, where DuckDB cannot read such.
    """
    needed = "azure" if store_kind(path) == "azure" else "httpfs"
    if not is_local(path) and not _has(needed):
        raise UnsupportedError(_WITHOUT[needed])
    if store_kind(path) == "http":
        return text_literal(web_address(path))
    if store_kind(path) == "azure":
        path = duckdb_path(path)
    return text_literal("".join(f"[{letter}]" if letter in "[*?" else letter for letter in path))


def read_parquet(connection: duckdb.DuckDBPyConnection, path: str, key: str | None) -> str:
    """SQL for the rows of a file, with `file_row_number`; `key` is base64, as the catalog holds it.

    The key is left with the connection, until the next file's, because errors quote SQL.
    """
    config = ""
    if key:
        load_httpfs(connection)
        connection.execute(f"SET VARIABLE {_KEY} = from_base64(?)", [key])
        config = f", encryption_config = {{footer_key_value: getvariable({text_literal(_KEY)})}}"
    return f"read_parquet({path_literal(path)}{config}, file_row_number = true, hive_partitioning = false)"
