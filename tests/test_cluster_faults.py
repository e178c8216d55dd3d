"""Executors and Python workers that are killed in the middle of a statement: rows are right, and no file is left."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import lance
import pytest
from deltalake import DeltaTable

from penstock.storage.options import StorageOptions
from penstock.storage.s3 import S3Access, s3_client
from support import cluster_statements as statements
from support import s3_server
from support.catalogs import DuckDBCatalog
from support.cluster_driver import ClusterDriver, Outcome
from support.cluster_statements import ADDED, BEFORE, Place
from support.reference import METADATA, Reference
from support.s3_server import S3Server
from support.standalone import StandaloneCluster

pytestmark = [pytest.mark.spark, pytest.mark.slow]
Statement = Callable[..., None]
# Rows, the sum of their ids, and how many of them are new, after each statement.
ALL = BEFORE + ADDED
HALF = BEFORE + ADDED // 2
FOUND: dict[Statement, tuple[int, int, int]] = {
    statements.append: (ALL, sum(range(ALL)), 0),
    statements.merge: (HALF, sum(range(HALF)), ADDED // 2),
    statements.update: (BEFORE, sum(range(BEFORE)), BEFORE // 2),
    statements.delete: (BEFORE // 2 + 1, sum(id for id in range(BEFORE) if id % 8 >= 4), 0),
    statements.compact: (BEFORE, sum(range(BEFORE)), 0),
    statements.flush: (
        BEFORE - BEFORE // 250 + 100,
        sum(id for id in range(BEFORE + 100) if id % 1000 >= 4 or id >= BEFORE),
        0,
    ),
}
_MOST_SECONDS = 300
FILES = ("ducklake_data_file", "ducklake_delete_file", "ducklake_files_scheduled_for_deletion")


@dataclass(frozen=True)
class Faults:
    """A cluster whose processes are killed while its driver runs a statement."""

    cluster: StandaloneCluster
    driver: ClusterDriver

    def kill_executors(self) -> None:
        """Kill them all: one of them may have nothing to do."""
        _kill(self.cluster.executors())

    def kill_python_workers(self) -> None:
        """Kill them all, and those that take their places: a task may just have ended when the first are killed."""
        for _ in range(3):
            _kill(self.cluster.python_workers())
            time.sleep(0.1)

    def outcome(self, statement: Statement, place: object, seen: Callable[[], bool], strike: str) -> Outcome:
        """What comes of a statement that is struck when something is seen of it."""
        self.driver.begin(statement, place)
        wait_until(lambda: seen() or self.driver.is_done)
        getattr(self, f"kill_{strike}")()
        return self.driver.outcome()


def wait_until(happened: Callable[[], bool]) -> None:
    """Wait for something; a test that waits in vain fails, and holds up no other."""
    end = time.monotonic() + _MOST_SECONDS
    while not happened():
        assert time.monotonic() < end, "what the test waits for has not happened"
        time.sleep(0.002)


def _kill(processes: list[int]) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    with StandaloneCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def faults(cluster: StandaloneCluster) -> Iterator[Faults]:
    driver = ClusterDriver(cluster.master, cluster.python)
    yield Faults(cluster, driver)
    driver.stop()


@pytest.fixture
def checkpoints(faults: Faults, tmp_path: Path) -> Iterator[None]:
    """A checkpoint directory, so that no statement depends on what executors keep."""
    faults.driver.run(statements.keep_rows_in, str(tmp_path / "checkpoints"))
    yield
    faults.driver.run(statements.keep_rows_in, None)


@pytest.fixture
def catalog(tmp_path: Path) -> DuckDBCatalog:
    return DuckDBCatalog(tmp_path)


def files(directory: str | Path) -> set[str]:
    return {str(path) for path in Path(directory).rglob("*") if path.is_file()}


def rows(reference: Reference) -> tuple[int, ...]:
    """How many rows DuckDB reads, with how many ids, and so on as above."""
    [found] = reference.rows("SELECT count(*), count(DISTINCT id), sum(id), count(*) FILTER (s = 'new') FROM t")
    return found


def names(paths: set[str]) -> set[str]:
    return {path.rpartition("/")[2] for path in paths}


def named_files(reference: Reference) -> set[str]:
    """The names of all files that the catalog knows."""
    listed = " UNION ALL ".join(f"SELECT path FROM {METADATA}.{table}" for table in FILES)
    return names({path for (path,) in reference.rows(listed)})


def check(catalog: DuckDBCatalog, expected: tuple[int, int, int]) -> None:
    """DuckDB reads the rows, and the catalog knows every file."""
    with catalog.reference() as reference:
        assert rows(reference) == (expected[0], *expected)
        assert named_files(reference) == names(files(catalog.data_path))


@pytest.mark.usefixtures("checkpoints")
@pytest.mark.parametrize("strike", ["executors", "python_workers"])
@pytest.mark.parametrize("statement", FOUND, ids=lambda one: one.__name__)
def test_killed_meanwhile(faults: Faults, catalog: DuckDBCatalog, statement: Statement, strike: str) -> None:
    place = Place(catalog.uri, catalog.data_path)
    faults.driver.run(statements.prepare, place)
    if statement is statements.flush:
        faults.driver.run(statements.inline, place)
    before = files(catalog.data_path)
    outcome = faults.outcome(statement, place, lambda: files(catalog.data_path) != before, strike)
    assert outcome.error is None, outcome.error
    assert outcome.failed_tasks
    check(catalog, FOUND[statement])


def test_executors_that_keep_rows_are_lost(faults: Faults, catalog: DuckDBCatalog, tmp_path: Path) -> None:
    """Without a checkpoint directory, they are gone: the statement fails, nothing has changed, and it can run again."""
    place, waits = Place(catalog.uri, catalog.data_path), tmp_path / "between the passes"
    faults.driver.run(statements.prepare, place)
    faults.driver.begin(statements.delete_in_two_steps, place, str(waits))
    wait_until(lambda: waits.exists() or faults.driver.is_done)
    lost = faults.cluster.executors()
    _kill(lost)
    wait_until(lambda: not set(lost) & set(faults.cluster.executors()))
    waits.unlink()
    outcome = faults.driver.outcome()
    assert outcome.error is not None
    assert "an executor was lost" in outcome.error
    assert "setCheckpointDir" in outcome.error
    check(catalog, (BEFORE, sum(range(BEFORE)), 0))
    faults.driver.run(statements.delete, place)
    check(catalog, FOUND[statements.delete])


def test_a_straggler_is_outrun(tmp_path: Path, catalog: DuckDBCatalog) -> None:
    """Another attempt of its task writes the same rows; what it had written goes."""
    place = Place(catalog.uri, catalog.data_path)
    with StandaloneCluster(tmp_path / "cluster") as cluster:
        driver = ClusterDriver(cluster.master, cluster.python, **{"spark.speculation": "true"})
        driver.run(statements.prepare, place)
        begun = time.monotonic()
        driver.begin(statements.append_with_a_straggler, place)
        outcome = driver.outcome()
        driver.stop()
    assert outcome.error is None, outcome.error
    # Not that it failed: Spark ends it when the job is done, and counts it when it has ended.
    assert outcome.speculative_tasks
    assert time.monotonic() - begun < statements.STRAGGLING  # nobody waited for it
    check(catalog, FOUND[statements.append])


@pytest.mark.parametrize("strike", ["executors", "python_workers"])
def test_killed_while_it_sends_to_s3(faults: Faults, tmp_path: Path, s3: S3Server, strike: str) -> None:
    """Nothing is left: neither files nor uploads that were begun."""
    bucket = s3.bucket()
    catalog = DuckDBCatalog(tmp_path)
    catalog.data_path = f"s3://{bucket}/lake/"
    place = Place(catalog.uri, catalog.data_path, s3.options())
    client = s3_client(S3Access.of(bucket, StorageOptions.of(s3.options())))

    def uploads() -> list[object]:
        return client.list_multipart_uploads(Bucket=bucket).get("Uploads", [])

    faults.driver.run(statements.create_wide, place)
    outcome = faults.outcome(statements.append_wide, place, lambda: bool(uploads()), strike)
    assert outcome.error is None, outcome.error
    assert outcome.failed_tasks
    with Reference() as reference:
        s3_server.add_secret(reference, s3, bucket)
        reference.attach(catalog.uri)
        assert rows(reference) == (ADDED, ADDED, sum(range(BEFORE, ALL)), 0)
        assert named_files(reference) == names(files(s3.objects / bucket / "lake"))
    assert not uploads()


def test_delta(faults: Faults, tmp_path: Path) -> None:
    place = str(tmp_path / "table")
    faults.driver.run(statements.prepare_delta, place)
    before = files(place)
    outcome = faults.outcome(statements.append_delta, place, lambda: files(place) != before, "python_workers")
    assert outcome.error is None, outcome.error
    assert outcome.failed_tasks
    table = DeltaTable(place)
    found = table.to_pyarrow_table()["id"].to_pylist()
    assert sorted(found) == list(range(ALL))
    assert names({one for one in files(place) if one.endswith(".parquet")}) == names(set(table.file_uris()))


def test_lance(faults: Faults, tmp_path: Path) -> None:
    """A file that a worker had only begun stays, without a name in any version: Lance removes it after a week."""
    place = str(tmp_path / "namespace")
    faults.driver.run(statements.prepare_lance, place)
    before = files(place)
    outcome = faults.outcome(
        statements.append_lance, place, lambda: any(one.endswith(".lance") for one in files(place) - before),
        "python_workers",
    )  # fmt: skip
    assert outcome.error is None, outcome.error
    assert outcome.failed_tasks
    leaves = [path for path in Path(place).iterdir() if not path.name.startswith("__")]
    datasets = [lance.dataset(str(leaf)) for leaf in leaves]
    found = [id for one in datasets for id in one.to_table(["id"])["id"].to_pylist()]
    assert sorted(found) == list(range(ALL))
    shown = {file.path for one in datasets for part in one.get_fragments() for file in part.data_files()}
    stray = {path.name for leaf in leaves for path in leaf.glob("data/*")} - shown
    assert len(stray) <= 2  # one a worker
    assert not list(Path(place).glob("__penstock_*"))
