"""Fixtures of every test: servers that start when first used, lakes on four catalogs, one Spark session."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from servers import MariaDBServer, PostgresServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from interop.catalogs import Catalog

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

    # Thousands of tiny queries: the JVM's optimising compiler costs more than it saves, and one partition is enough.
    settings = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1", "spark.sql.shuffle.partitions": "1"}
    session = penstock.session(request.config.getoption("--master"), **settings)
    yield session
    session.stop()


@pytest.fixture(params=["duckdb", "sqlite", "postgres", "mysql"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Catalog:
    """An empty place for a lake, on each of the four catalog databases."""
    return make_catalog(request.param, request, tmp_path)


@pytest.fixture
def file_catalog(tmp_path: Path) -> Catalog:
    """A DuckDB file: for what does not depend on the catalog database."""
    from interop.catalogs import DuckDBCatalog

    return DuckDBCatalog(tmp_path)


def make_catalog(kind: str, request: pytest.FixtureRequest, directory: Path) -> Catalog:
    from interop import catalogs

    match kind:
        case "duckdb":
            return catalogs.DuckDBCatalog(directory)
        case "sqlite":
            return catalogs.SQLiteCatalog(directory)
        case "postgres":
            return catalogs.PostgresCatalog(directory, request.getfixturevalue("postgres_server"))
        case "mysql":
            return catalogs.MySQLCatalog(directory, request.getfixturevalue("mysql_server"))
    raise ValueError(kind)
