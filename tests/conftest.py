"""Fixtures of every test: servers that start when first used, lakes on four catalogs, one Spark session."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support import catalogs
from support.catalogs import Catalog
from support.servers import MariaDBServer, PostgresServer
from support.small_sessions import SMALL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# PySpark hands timestamps to Python in the process's own zone: pin it before anything reads it.
os.environ["TZ"] = "UTC"
time.tzset()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--master", default="local[2]", help="the Spark master that the tests run on")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    server = PostgresServer()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def mysql_server() -> Iterator[MariaDBServer]:
    server = MariaDBServer()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    import penstock

    session = penstock.session(request.config.getoption("--master"), **SMALL)
    yield session
    session.stop()


@pytest.fixture(params=["duckdb", "sqlite", "postgres", "mysql"])
def catalog(request: pytest.FixtureRequest) -> Catalog:
    """An empty place for a lake, on each of the four catalog databases."""
    made: Catalog = request.getfixturevalue(f"{request.param}_catalog")
    return made


@pytest.fixture
def duckdb_catalog(tmp_path: Path) -> Catalog:
    return catalogs.DuckDBCatalog(tmp_path)


@pytest.fixture
def sqlite_catalog(tmp_path: Path) -> Catalog:
    return catalogs.SQLiteCatalog(tmp_path)


@pytest.fixture
def postgres_catalog(tmp_path: Path, postgres_server: PostgresServer) -> Catalog:
    return catalogs.PostgresCatalog(tmp_path, postgres_server)


@pytest.fixture
def mysql_catalog(tmp_path: Path, mysql_server: MariaDBServer) -> Iterator[Catalog]:
    made = catalogs.MySQLCatalog(tmp_path, mysql_server)
    yield made
    mysql_server.drop_database(made.database)


@pytest.fixture
def file_catalog(duckdb_catalog: Catalog) -> Catalog:
    """A DuckDB file: for what does not depend on the catalog database."""
    return duckdb_catalog
