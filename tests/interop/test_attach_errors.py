"""Lakes that cannot be attached: each error names the lake, says why, and never shows a password."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

import penstock
from support.catalogs import Catalog, MySQLCatalog
from support.servers import MariaDBServer, PostgresServer

SECRET = "s3cret-Passw0rd"


@pytest.fixture
def small(catalog: Catalog) -> Catalog:
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t AS SELECT 1 AS id")
    return catalog


@pytest.mark.parametrize("uri", ["ducklake:{}/none.ducklake", "ducklake:sqlite:{}/none.sqlite"])
def test_no_such_lake(tmp_path: Path, spark: SparkSession, uri: str) -> None:
    place = uri.format(tmp_path)
    with pytest.raises(penstock.AttachError, match="none"):
        penstock.attach(place, read_only=True, create_if_not_exists=False, spark=spark)
    assert list(tmp_path.iterdir()) == []


def test_no_such_database(postgres_server: PostgresServer, mysql_server: MariaDBServer, spark: SparkSession) -> None:
    for kind, server in (("postgres", postgres_server), ("mysql", mysql_server)):
        with pytest.raises(penstock.AttachError, match="no_such_database"):
            penstock.attach(
                f"ducklake:{kind}:{server.connection_string('no_such_database')}", read_only=True, spark=spark
            )


def test_empty_database(catalog: Catalog, spark: SparkSession) -> None:
    if catalog.kind in ("duckdb", "sqlite"):
        Path(catalog.uri.rpartition(":")[2]).touch()
    with pytest.raises(penstock.AttachError, match="DuckLake"):
        penstock.attach(catalog.uri, read_only=True, data_path=catalog.data_path, spark=spark)


def test_not_a_lake(tmp_path: Path, spark: SparkSession) -> None:
    with duckdb.connect(str(tmp_path / "plain.duckdb")) as connection:
        connection.execute("CREATE TABLE t (id INTEGER)")
    (tmp_path / "text.ducklake").write_text("this is not a database " * 1000)
    (tmp_path / "text.sqlite").write_text("this is not a database " * 1000)
    for place in ("plain.duckdb", "text.ducklake", "sqlite:text.sqlite"):
        engine, _, file = place.rpartition(":")
        with pytest.raises(penstock.AttachError, match="DuckLake"):
            penstock.attach(f"ducklake:{engine}{':' if engine else ''}{tmp_path / file}", read_only=True, spark=spark)


@pytest.mark.parametrize("uri", ["lake.ducklake", "ducklake:", "ducklake:sqlite:", "duckdb:lake"])
def test_not_a_location(spark: SparkSession, uri: str) -> None:
    with pytest.raises(penstock.AttachError):
        penstock.attach(uri, read_only=True, spark=spark)


def test_other_format_versions(small: Catalog, spark: SparkSession) -> None:
    current = "1.0"
    for version, word in (("0.3", "older"), ("2.0", "newer"), ("1.1", "newer")):
        small.tamper(f"UPDATE ducklake_metadata SET value = '{version}' WHERE value = '{current}'")
        with pytest.raises(penstock.AttachError, match=f"{version}.*{word}"):
            penstock.attach(small.uri, read_only=True, spark=spark)
        current = version


def test_file_held_by_another_process(file_catalog: Catalog, spark: SparkSession) -> None:
    with file_catalog.build() as reference:
        reference.execute("CREATE TABLE t (id INTEGER)")
    file = file_catalog.uri.removeprefix("ducklake:")
    with _holding(file), pytest.raises(penstock.AttachError, match="another process"):
        penstock.attach(file_catalog.uri, read_only=True, spark=spark)


def test_data_path_gone(file_catalog: Catalog, spark: SparkSession) -> None:
    """Only what needs a file fails: a lake may be looked at, and written to, without its folder."""
    with file_catalog.build() as reference:
        reference.execute(
            "CREATE TABLE t AS FROM range(100) r(id)",
            "CREATE TABLE empty (id INTEGER)",
            "CREATE TABLE inlined AS SELECT 1 AS id",
        )
    shutil.rmtree(file_catalog.data_path)
    with penstock.attach(file_catalog.uri, spark=spark) as lake:
        assert lake.table("empty").read().count() == 0
        assert lake.table("inlined").read().count() == 1
        with pytest.raises(penstock.NotFoundError, match=r"main\.t are gone.*override_data_path"):
            lake.table("t").read()
        with pytest.raises(penstock.NotFoundError, match="gone"):
            lake.table("t").delete("id = 1")


def test_snapshots_that_are_not_there(small: Catalog, spark: SparkSession) -> None:
    for parameters in (
        {"snapshot_version": 0, "snapshot_time": "2030-01-01"},
        {"snapshot_version": 99},
        {"snapshot_version": -1},
        {"snapshot_time": "1999-01-01 00:00:00"},
        {"snapshot_time": "not a time"},
    ):
        with pytest.raises(penstock.AttachError, match=r"snapshot|time"):
            penstock.attach(small.uri, read_only=True, spark=spark, **parameters)


@pytest.mark.parametrize(
    "location",
    [
        f"postgres:host=127.0.0.1 port=1 dbname=lake user=me password={SECRET}",
        f"postgres:host=127.0.0.1 port=1 dbname=lake user=me password='{SECRET}'",
        f"postgres:postgresql://me:{SECRET}@127.0.0.1:1/lake",
        f"mysql:host=127.0.0.1 port=1 db=lake user=me password={SECRET}",
        f"mysql:host=127.0.0.1 port=1 db=lake user=me passwd={SECRET}",
        f"mysql:host=127.0.0.1 port=1 db=lake user=me pw={SECRET}",
        f"mysql:host=127.0.0.1 port=1 nonsense={SECRET[:1]} password={SECRET}",
    ],
)
def test_refusing_servers(spark: SparkSession, location: str) -> None:
    with pytest.raises(penstock.AttachError) as caught:
        penstock.attach(f"ducklake:{location}", read_only=True, data_path="data/", spark=spark)
    assert SECRET not in _everything_said(caught.value)


def test_wrong_password(mysql_server: MariaDBServer, spark: SparkSession) -> None:
    mysql_server.execute("CREATE OR REPLACE USER me@localhost IDENTIFIED BY 'right'")
    for password, parameters in ((f" password={SECRET}", {}), ("", {"password": SECRET})):
        location = f"ducklake:mysql:db=mysql socket={mysql_server.socket} user=me{password}"
        with pytest.raises(penstock.AttachError) as caught:
            penstock.attach(location, read_only=True, metadata_parameters=parameters, spark=spark)
        assert SECRET not in _everything_said(caught.value)


def test_password_in_no_repr(mysql_server: MariaDBServer, mysql_catalog: MySQLCatalog, spark: SparkSession) -> None:
    with mysql_catalog.build() as reference:
        reference.execute("CREATE TABLE t (id INTEGER)")
    mysql_server.execute(
        f"CREATE OR REPLACE USER reader@localhost IDENTIFIED BY '{SECRET}'",
        f"GRANT SELECT ON {mysql_catalog.database}.* TO reader@localhost",
    )
    uri = f"ducklake:mysql:db={mysql_catalog.database} socket={mysql_server.socket} user=reader password={SECRET}"
    with penstock.attach(uri, read_only=True, spark=spark) as lake:
        shown = [
            repr(lake),
            str(lake),
            repr(lake.table("t")),
            repr(lake._attachment.catalog),
            repr(lake.settings().collect()),
        ]
        with pytest.raises(penstock.NotFoundError) as caught:
            lake.table("none")
    assert SECRET not in "".join(shown) + _everything_said(caught.value)


def _everything_said(error: BaseException) -> str:
    """The error's text and that of every error behind it, as a traceback would print them."""
    texts = []
    current: BaseException | None = error
    while current is not None:
        texts += [str(current), repr(current)]
        current = (
            None if current.__suppress_context__ and not current.__cause__ else current.__cause__ or current.__context__
        )
    return "\n".join(texts)


@contextmanager
def _holding(file: str) -> Iterator[None]:
    """Another process that has the file open for writing."""
    program = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    process = subprocess.Popen([sys.executable, "-c", program, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == b"open\n"
    try:
        yield
    finally:
        process.stdin.close()
        process.wait(timeout=60)
        process.stdout.close()
