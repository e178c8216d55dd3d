"""Many writers at once, Penstock's and DuckDB's: every commit is there in the end, once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import psycopg
import pytest

import penstock
from interop.catalogs import Catalog
from interop.reference import ALIAS, METADATA, Reference
from interop.writers import Writer
from penstock.catalog.writing.commit import RetryPolicy


def writer(catalog: Catalog, retries: RetryPolicy | None = None) -> Writer:
    return Writer(catalog.uri, catalog.data_path, retries)


def write_many(catalog: Catalog, number: int, commits: int) -> list[int]:
    """Commits of one row each, every fifth of them in a file."""
    values = [number * 1000 + i for i in range(commits)]
    with writer(catalog) as own:
        for i, value in enumerate(values):
            (own.append_file if i % 5 == 4 else own.append)("t", value, author=str(number))
    return values


def write_many_by_duckdb(reference: Reference, number: int, commits: int) -> list[int]:
    values = [number * 1000 + i for i in range(commits)]
    with reference.connection.cursor() as connection:
        # The extension gives up after 10 tries: that is not what this is about.
        for setting, value in (("max_retry_count", 10000), ("retry_wait_ms", 20), ("retry_backoff", 1)):
            connection.execute(f"SET ducklake_{setting} = {value}")
        for value in values:
            connection.execute(f"INSERT INTO {ALIAS}.t VALUES ({value})")
    return values


@pytest.mark.parametrize(
    ("kind", "writers", "commits"), [("postgres", 16, 50), ("sqlite", 4, 10), ("mysql", 4, 10), ("duckdb", 4, 10)]
)
def test_no_commit_is_lost_and_none_is_given_up(
    kind: str, writers: int, commits: int, request: pytest.FixtureRequest
) -> None:
    catalog: Catalog = request.getfixturevalue(f"{kind}_catalog")
    with writer(catalog) as first:
        first.create_table("t")
        with ThreadPoolExecutor(writers + 2) as pool, ExitStack() as stack:
            jobs = [pool.submit(write_many, catalog, number, commits) for number in range(writers)]
            if kind == "postgres":
                reference = stack.enter_context(catalog.reference())
                jobs += [pool.submit(write_many_by_duckdb, reference, number, 5) for number in (100, 101)]
            values = sorted(value for job in jobs for value in job.result())
        latest = first.catalog.database.value("SELECT max(snapshot_id) FROM ducklake_snapshot")
    assert latest == 1 + len(values)
    with catalog.reference() as reference:
        assert reference.rows("SELECT id FROM t ORDER BY id") == [(value,) for value in values]
        assert reference.rows("SELECT rowid FROM t ORDER BY rowid") == [(i,) for i in range(len(values))]
        statistics = f"SELECT record_count, next_row_id FROM {METADATA}.ducklake_table_stats"
        assert reference.rows(statistics) == [(len(values), len(values))]
        sql = f"SELECT snapshot_id, schema_version, next_file_id FROM {METADATA}.ducklake_snapshot ORDER BY 1"
        assert reference.rows(sql) == [(0, 0, 0), *((i, 1, i - 1) for i in range(1, latest + 1))]
        for version in (latest // 3, latest // 2):
            assert reference.value(f"SELECT count(*) FROM t AT (VERSION => {version})") == version - 1


def test_tables_made_at_the_same_time(catalog: Catalog) -> None:
    """Where CREATE TABLE is not part of a transaction, no writer may take the table of another's commit away."""

    def make(number: int) -> None:
        with writer(catalog) as own:
            for i in range(3):
                own.create_table(f"t{number}_{i}")
                own.append(f"t{number}_{i}", number, i)

    with writer(catalog), ThreadPoolExecutor(4) as pool:
        list(pool.map(make, range(4)))
    with catalog.reference() as reference:
        for number in range(4):
            for i in range(3):
                assert reference.rows(f"FROM t{number}_{i} ORDER BY rowid") == [(number,), (i,)]


@pytest.mark.parametrize("retries", [0, 1])
def test_a_commit_that_others_outrun_is_tried_again_as_often_as_asked_for(
    retries: int, postgres_catalog: Catalog
) -> None:
    """A stranger writes the next snapshot, and is done while we wait to write the same one."""
    with (
        writer(postgres_catalog, RetryPolicy(retries, 1, 1)) as own,
        psycopg.connect(postgres_catalog.target) as stranger,
        psycopg.connect(postgres_catalog.target, autocommit=True) as observer,
    ):
        own.create_table("t")
        stranger.execute(
            "INSERT INTO ducklake_snapshot SELECT 2, now(), 1, next_catalog_id, 9 FROM ducklake_snapshot "
            "WHERE snapshot_id = 1"
        )
        stranger.execute("INSERT INTO ducklake_snapshot_changes VALUES (2, NULL, 'stranger', NULL, NULL)")
        failures: list[BaseException] = []

        def append() -> None:
            try:
                own.append_file("t", *range(20))
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=append)
        thread.start()
        while not observer.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchall():
            pass
        stranger.commit()
        thread.join()
        snapshots = observer.execute("SELECT snapshot_id, next_file_id FROM ducklake_snapshot ORDER BY 1").fetchall()
        files = observer.execute("SELECT data_file_id FROM ducklake_data_file").fetchall()
    if retries:
        assert failures == []
        assert snapshots == [(0, 0), (1, 0), (2, 9), (3, 10)]
        assert files == [(9,)]
    else:
        [error] = failures
        assert isinstance(error, penstock.ConflictError)
        assert "max_retry_count" in str(error)
        assert len(snapshots) == 3


def test_retries_wait_longer_each_time() -> None:
    assert list(RetryPolicy(4, 100, 2).waits()) == [0.1, 0.2, 0.4, 0.8]
    assert len(list(RetryPolicy().waits())) == 10
    for bad in ({"max_retry_count": -1}, {"retry_wait_ms": -1}, {"retry_backoff": -0.5}):
        with pytest.raises(penstock.InvalidError, match=next(iter(bad))):
            RetryPolicy(**bad)
