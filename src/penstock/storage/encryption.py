"""Encrypted Parquet, which DuckDB writes in a way of its own (no AAD), so that DuckDB must read it."""

from __future__ import annotations

import duckdb

from penstock.errors import UnsupportedError


def connect() -> duckdb.DuckDBPyConnection:
    """An in-memory DuckDB that can decrypt; the `httpfs` extension carries the cryptography."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    try:
        connection.execute("LOAD httpfs")
    except duckdb.Error:
        _install_httpfs()
        connection.execute("LOAD httpfs")
    return connection


def _install_httpfs() -> None:
    try:
        from duckdb_extensions import import_extension
    except ImportError:
        raise UnsupportedError(
            "encrypted files need DuckDB's httpfs extension on every machine; pip install 'penstock[encryption]'"
        ) from None
    import_extension("httpfs")


def read_encrypted(path: str, key: str) -> str:
    """SQL for the rows of an encrypted file, with `file_row_number`."""
    quoted_path, quoted_key = path.replace("'", "''"), key.replace("'", "''")
    config = f"{{footer_key_value: from_base64('{quoted_key}')}}"
    return f"read_parquet('{quoted_path}', encryption_config = {config}, file_row_number = true)"
