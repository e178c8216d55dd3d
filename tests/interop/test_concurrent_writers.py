"""Many writers at once, Penstock's and DuckDB's: every commit is there in the end, once."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

import penstock
from penstock.ducklake.catalog import opening
from penstock.ducklake.catalog.commits.commit import RetryPolicy
from penstock.ducklake.catalog.databases.base import Database
from support.catalogs import Catalog
from support.effort import tries
from support.proxies import BreakingProxy
from support.reference import ALIAS, METADATA, Reference
from support.writers import Writer
from support.writing import files_of

_TOO_LONG = 3_600_000  # milliseconds to wait for another try


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
    ("kind", "writers", "commits"),
    [("postgres", 16, tries(10, 50)), ("sqlite", 4, 10), ("mysql", 4, 10), ("duckdb", 4, 10)],
)
def test_no_commit_is_lost_and_none_is_given_up(
    kind: str, writers: int, commits: int, request: pytest.FixtureRequest
) -> None:
    catalog: Catalog = request.getfixturevalue(f"{kind}_catalog")
    with writer(catalog) as first:
        first.create_table("t")
        with ThreadPoolExecutor(writers + 2) as pool, ExitStack() as stack:
            jobs = [pool.submit(write_many, catalog, number, commits) for number in range(writers)]
            # Not on SQLite: two copies of its library in one process break each other's locks.
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


def test_a_first_file_that_comes_during_an_attach(file_catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of the data is made while another attaches, which asks where it is."""
    with writer(file_catalog) as first:
        first.create_table("t")
        locate = opening._located

        def locate_late(database: Database, options: opening.AttachOptions) -> opening.Catalog:
            first.append_file("t", 1)
            return locate(database, options)

        monkeypatch.setattr(opening, "_located", locate_late)
        with writer(file_catalog) as second:
            assert second.catalog.database.value("SELECT count(*) FROM ducklake_data_file") == 1


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


@contextmanager
def waiting_for_a_stranger(catalog: Catalog, retries: RetryPolicy) -> Iterator[tuple[Stranger, list[BaseException]]]:
    """An append that waits because a stranger is about to commit the same snapshot; and, in the end, its failures."""
    failures: list[BaseException] = []

    def append(own: Writer) -> None:
        try:
            own.append_file("t", *range(20))
        except BaseException as error:
            failures.append(error)

    with (
        writer(catalog, retries) as own,
        psycopg.connect(catalog.target) as stranger,
        psycopg.connect(catalog.target, autocommit=True) as observer,
    ):
        own.create_table("t")
        stranger.execute("INSERT INTO ducklake_snapshot VALUES (2, now(), 1, 2, 9)")
        stranger.execute("INSERT INTO ducklake_snapshot_changes VALUES (2, NULL, 'stranger', NULL, NULL)")
        thread = threading.Thread(target=append, args=(own,))
        thread.start()
        while not observer.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchall():
            pass
        yield Stranger(stranger, observer), failures
        thread.join()


@dataclass(frozen=True)
class Stranger:
    writing: psycopg.Connection[Any]
    observing: psycopg.Connection[Any]


@pytest.mark.parametrize("retries", [0, 1])
def test_a_commit_that_others_outrun_is_tried_again_as_often_as_asked_for(
    retries: int, postgres_catalog: Catalog
) -> None:
    with waiting_for_a_stranger(postgres_catalog, RetryPolicy(retries, 1, 1)) as (stranger, failures):
        written = files_of(postgres_catalog)
        stranger.writing.commit()
    with postgres_catalog.reference() as reference:
        snapshots = f"SELECT snapshot_id, next_file_id FROM {METADATA}.ducklake_snapshot ORDER BY 1"
        if retries:
            assert failures == []
            assert reference.rows(snapshots) == [(0, 0), (1, 0), (2, 9), (3, 10)]
            assert reference.rows(f"SELECT data_file_id, 'main/t/' || path FROM {METADATA}.ducklake_data_file") == [
                (9, *written)
            ]
        else:
            [error] = failures
            assert isinstance(error, penstock.ConflictError)
            assert "max_retry_count" in str(error)
            assert len(reference.rows(snapshots)) == 3
            assert files_of(postgres_catalog) == set()


def test_what_no_other_writer_is_to_blame_for_is_not_tried_again(file_catalog: Catalog) -> None:
    with writer(file_catalog, RetryPolicy(1, _TOO_LONG, 1)) as own:
        own.create_table("t")
        own.catalog.database.execute("UPDATE ducklake_snapshot_changes SET author = 'somebody'")
        own.catalog.database.execute("ALTER TABLE ducklake_snapshot_changes ALTER COLUMN author SET NOT NULL")
        with pytest.raises(penstock.CatalogError, match=r"NOT NULL constraint failed.*author"):
            own.append_file("t", 1)
        own.append_file("t", 2, author="me")
        assert own.catalog.database.value("SELECT max(snapshot_id) FROM ducklake_snapshot") == 2
    assert len(files_of(file_catalog)) == 1


def test_a_connection_that_breaks_before_the_commit(postgres_catalog: Catalog) -> None:
    with waiting_for_a_stranger(postgres_catalog, RetryPolicy()) as (stranger, failures):
        stranger.observing.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE NOT granted")
    [error] = failures
    assert isinstance(error, penstock.CatalogError)
    assert "nothing was committed" in str(error)
    assert files_of(postgres_catalog) == set()


@contextmanager
def behind_a_proxy(kind: str, request: pytest.FixtureRequest) -> Iterator[tuple[Catalog, Writer, BreakingProxy]]:
    """A writer of a lake with one table, whose connection can be made to break."""
    catalog: Catalog = request.getfixturevalue(f"{kind}_catalog")
    server = request.getfixturevalue(f"{kind}_server")
    proxy = BreakingProxy(str(server.socket))
    location = re.sub(r"(host|socket)=\S+", f"host=127.0.0.1 port={proxy.port}", catalog.uri)
    encryption = " sslmode=disable gssencmode=disable" if kind == "postgres" else ""
    with closing(proxy), Writer(location + encryption, catalog.data_path) as own:
        own.create_table("t")
        yield catalog, own, proxy


@pytest.mark.parametrize("kind", ["postgres", "mysql"])
def test_a_connection_that_breaks_during_the_commit(kind: str, request: pytest.FixtureRequest) -> None:
    """Whether it happened is asked on another connection; where it did, it is no error."""
    with behind_a_proxy(kind, request) as (catalog, own, proxy):
        proxy.breaks("before")
        with pytest.raises(penstock.CatalogError, match="nothing was, so do it again"):
            own.append_file("t", 1)
        assert files_of(catalog) == set()
        own.append_file("t", 1)
        proxy.breaks("after")
        own.append_file("t", 2)
        assert len(files_of(catalog)) == 2
        proxy.breaks("before")
        with pytest.raises(penstock.CatalogError, match="nothing was, so do it again"):
            own.append("t", 3)
        proxy.breaks("after")
        if kind == "mysql":  # whose times of snapshots are too coarse to know one's own by
            with pytest.raises(penstock.CatalogError, match="not known"):
                own.append("t", 3)
        else:
            own.append("t", 3)
        own.append_file("t", 4)
    with catalog.reference() as reference:
        assert reference.rows("SELECT id FROM t ORDER BY id") == [(1,), (2,), (3,), (4,)]


def test_a_commit_that_nobody_knows_of_leaves_its_files(request: pytest.FixtureRequest) -> None:
    """A snapshot without its files would be worse than files without a snapshot."""
    with behind_a_proxy("postgres", request) as (catalog, own, proxy):
        proxy.breaks("for good")
        with pytest.raises(penstock.CatalogError, match="whether it was is not known"):
            own.append_file("t", 1)
    with catalog.reference() as reference:
        assert reference.rows("FROM t") == [(1,)]


def test_retries_wait_longer_each_time() -> None:
    assert list(RetryPolicy(4, 100, 2).waits()) == [0.1, 0.2, 0.4, 0.8]
    assert len(list(RetryPolicy().waits())) == 10
    for bad in ({"max_retry_count": -1}, {"retry_wait_ms": -1}, {"retry_backoff": -0.5}):
        with pytest.raises(penstock.InvalidError, match=next(iter(bad))):
            RetryPolicy(**bad)
