"""DuckDB with one of its extensions: a judge that is not ours."""

from __future__ import annotations

from functools import cache

import duckdb
from duckdb_extensions import import_extension


@cache
def duckdb_with(extension: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    import_extension(extension)
    connection.load_extension(extension)
    connection.execute("SET TimeZone = 'UTC'")
    return connection
