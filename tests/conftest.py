"""Fixtures of every test: servers that start when first used, lakes on four catalogs, one Spark session."""

from __future__ import annotations

import gc
import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import pytest

from support import azure_server, catalogs, effort, s3_server
from support.azure_server import AzureServer
from support.catalogs import Catalog
from support.connect_server import connect_server, connect_session
from support.memory_disk import use_memory_disk
from support.processes import environment
from support.s3_server import S3Server
from support.servers import MariaDBServer, PostgresServer
from support.small_sessions import CLUSTERED, cluster, interpret, name_classes, shared_settings
from support.web_server import WebServer, web_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# PySpark hands timestamps to Python in the process's own zone: pin it before anything reads it.
os.environ["TZ"] = "UTC"
time.tzset()
# What whoever runs the tests has said of their own lakes is not for these.
os.environ["PENSTOCK_CONFIG"] = ""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--master", default="local[2]", help="the Spark master that the tests run on")
    parser.addoption("--cluster", action="store_true", help="only the tests on executors of their own")
    parser.addoption("--connect", action="store_true", help="on a session of Spark Connect, with a server of ours")
    parser.addoption("--full", action="store_true", help="every test on every catalog, in full, and the slow ones")


def pytest_configure(config: pytest.Config) -> None:
    # Looking for cycles every 700 objects takes a fifth of the time of tests that make many.
    gc.set_threshold(50_000, 20, 50)
    effort.try_everything(config.getoption("--full"))
    if not effort.is_full():
        use_memory_disk()


CONNECT_TESTS = Path(__file__).parent / "connect"
INTERPRETED_TESTS = [
    Path(__file__).parent / name for name in ("interop", "sql", "test_code_of_documents.py", "test_examples.py")
]
_SERVERS = {"postgres", "mysql"}
_SERVER_FIXTURES = {f"{kind}_{what}" for kind in _SERVERS for what in ("server", "catalog")}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave slow tests for `--full`, mark what needs Spark or a server, and put all in the order they are run in."""
    if not effort.is_full():
        _deselect(config, items, {item for item in items if item.get_closest_marker("slow")})
    clustered = config.getoption("--cluster")
    _deselect(config, items, {item for item in items if not _belongs(item, clustered)})
    if config.getoption("--connect"):
        _deselect(config, items, {item for item in items if item.get_closest_marker("classic")})
    else:
        _deselect(config, items, {item for item in items if CONNECT_TESTS in item.path.parents})
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        parameters = getattr(getattr(item, "callspec", None), "params", {}).values()
        if "spark" in fixtures:
            item.add_marker(pytest.mark.spark)
        if fixtures & _SERVER_FIXTURES or any(isinstance(value, str) and value in _SERVERS for value in parameters):
            item.add_marker(pytest.mark.servers)
    tests = list(_in_turn(items))
    if not effort.is_full():
        _deselect(config, items, {item for test in tests for item in test[_catalogs_of(test[0]) :]})
    chosen = set(items)
    items[:] = _longest_first([item for test in tests for item in test if item in chosen])


def _catalogs_of(item: pytest.Item) -> int:
    """On how many of its catalogs a test runs without `--full`: on two where Spark runs, which takes long.

    On one with another release of Spark than the newest: catalogs know nothing of Spark.
    """
    if "PENSTOCK_TESTS_SPARK" in os.environ:
        return 1
    if item.get_closest_marker("every_catalog") is not None:
        return 4
    if item.get_closest_marker("one_catalog") is not None:
        return 1
    return 2 if "spark" in getattr(item, "fixturenames", ()) else 4


def _belongs(item: pytest.Item, clustered: bool) -> bool:
    """Whether a test is for the kind of session that this run has."""
    marks = [item.get_closest_marker(name) is not None for name in ("cluster", "on_cluster_too")]
    return any(marks) if clustered else not marks[0]


def _deselect(config: pytest.Config, items: list[pytest.Item], unwanted: set[pytest.Item]) -> None:
    config.hook.pytest_deselected(items=list(unwanted))
    items[:] = [item for item in items if item not in unwanted]


def _in_turn(items: list[pytest.Item]) -> Iterator[list[pytest.Item]]:
    """Each test on its catalogs, beginning with another one for another test: the first, Spark reads."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        tests.setdefault(_without_catalog(item), []).append(item)
    for name, variations in tests.items():
        first = crc32(name.encode()) % len(variations)
        yield variations[first:] + variations[:first]


def _longest_first(items: list[pytest.Item]) -> list[pytest.Item]:
    """Files by what their tests cost, about, so that in a parallel run no long one is left at the end."""
    costs: Counter[Path] = Counter()
    for item in items:
        costs[item.path] += _cost(item)
    return sorted(items, key=lambda item: -costs[item.path])


def _cost(item: pytest.Item) -> int:
    """In hundredths of a second; a test that starts a Spark of its own has no fixture `spark`."""
    said = item.get_closest_marker("takes")
    if said is not None:
        return int(100 * said.args[0])
    if item.get_closest_marker("spark") is None:
        return 20
    return 200 if "spark" in getattr(item, "fixturenames", ()) else 2000


def _without_catalog(item: pytest.Item) -> str:
    """The test's name with all of its parameters but the catalog."""
    call = getattr(item, "callspec", None)
    if call is None or "catalog" not in call.params:
        return item.nodeid
    others = call.id.split("-")
    others.remove(call.params["catalog"])
    return f"{item.nodeid.partition('[')[0]}[{'-'.join(others)}]"


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
def s3() -> Iterator[S3Server]:
    if not s3_server.is_installed():
        pytest.skip("there is no S3 server: `make s3` needs Go to build one")
    server = S3Server()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def azure() -> Iterator[AzureServer]:
    if not azure_server.is_installed():
        pytest.skip("there is no server of Azure's blobs: `make azure` needs npm to fetch one")
    server = AzureServer()
    yield server
    server.stop()


@pytest.fixture
def web(tmp_path: Path) -> Iterator[WebServer]:
    """A web server for the files of a folder, which is empty."""
    (tmp_path / "www").mkdir()
    with web_server(tmp_path / "www") as server:
        yield server


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    import penstock

    os.environ["PYTHONPATH"] = environment()["PYTHONPATH"]
    if request.config.getoption("--connect"):
        with connect_server(tmp_path_factory.mktemp("connect"), shared_settings()) as address:
            os.environ["PENSTOCK_TESTS_CONNECT"] = address
            session = connect_session(address)
            yield session
            session.stop()  # or it would look for its server when the process ends
        return
    clustered = request.config.getoption("--cluster")
    master = cluster() if clustered else request.config.getoption("--master")
    session = penstock.session(master, **shared_settings(), **(CLUSTERED if clustered else {}))
    assert session.version == os.environ.get("PENSTOCK_TESTS_SPARK", session.version)
    name_classes(session)
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def _interpreted(request: pytest.FixtureRequest) -> None:
    """Tests of files and statements are not about speed: Spark compiles queries if they ask, and with `--full`."""
    if "spark" in request.fixturenames:
        asked = request.node.get_closest_marker("compiled") is not None
        within = any(place in (request.path, *request.path.parents) for place in INTERPRETED_TESTS)
        interpreted = within and not asked and not effort.is_full()
        interpret(request.getfixturevalue("spark"), interpreted)


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
