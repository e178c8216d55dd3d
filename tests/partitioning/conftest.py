"""A real lake for the tests of partitioning, whose tables replace one another."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from duckdb_extensions import import_extension


@pytest.fixture(scope="package")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB attached to an empty lake `lk`, which it uses."""
    import_extension("ducklake")
    directory = tmp_path_factory.mktemp("lake")
    with duckdb.connect() as connection:
        connection.execute("LOAD ducklake")
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET threads = 1")  # for a few rows, more of them only cost time
        connection.execute(f"ATTACH 'ducklake:{directory}/lake.ducklake' AS lk (DATA_INLINING_ROW_LIMIT 0)")
        connection.execute("USE lk")
        yield connection
