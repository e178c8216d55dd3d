"""Public lakes: a catalog and data behind a web server, or a catalog on S3, read as DuckDB reads them."""

from __future__ import annotations

import re
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock
from support import effort
from support.compare import assert_contents, assert_history, assert_same_tables, query, record
from support.published import PublishedCatalog
from support.reference import Reference
from support.s3_server import S3Server, add_secret
from support.web_server import WebServer

# Two paths with codes, which DuckDB's own http does not find: it takes a `%` in a name for one before a code.
HOSTILE = "(1, 'a b', 1.5), (2, '50%', 'nan'), (3, '#?x&+', NULL), (4, 'é🦆', -0.0), (5, NULL, 2), (6, 'plain', 3)"


@pytest.fixture(params=["duckdb", "sqlite"])
def published(request: pytest.FixtureRequest, web: WebServer) -> PublishedCatalog:
    return PublishedCatalog(web, request.param)


@pytest.fixture
def published_file(web: WebServer) -> PublishedCatalog:
    """A DuckDB file: for what does not depend on the database."""
    return PublishedCatalog(web)


def make_small(published: PublishedCatalog, rows: int = 3) -> None:
    with published.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE TABLE t (id BIGINT, name VARCHAR)", f"INSERT INTO t SELECT i, 'n' || i FROM range({rows}) r(i)"
        )


@pytest.mark.parametrize(
    ("kind", "encrypted"),
    [("duckdb", False), ("sqlite", True), *([("duckdb", True), ("sqlite", False)] if effort.is_full() else [])],
)
def test_every_kind_of_file(web: WebServer, spark: SparkSession, kind: str, encrypted: bool) -> None:
    """At the newest snapshot, and with `--full` at all."""
    published = PublishedCatalog(web, kind)
    with published.build(data_inlining_row_limit=2, encrypted=encrypted) as reference:
        reference.execute(
            "CREATE TABLE t (id BIGINT, p VARCHAR, d DOUBLE)",
            "ALTER TABLE t SET PARTITIONED BY (p)",
            f"INSERT INTO t VALUES {HOSTILE}",
            "INSERT INTO t SELECT i, 'many', i FROM range(10, 100) r(i)",
            "DELETE FROM t WHERE id IN (3, 20, 30)",
            "DELETE FROM t WHERE id BETWEEN 40 AND 50",
            "INSERT INTO t VALUES (7, 'inlined', 7)",
            "ALTER TABLE t RENAME d TO e",
            "ALTER TABLE t ADD COLUMN note VARCHAR DEFAULT 'none'",
            "INSERT INTO t SELECT i, 'more', i, 'new' FROM range(200, 210) r(i)",
            "CREATE TABLE empty (id BIGINT)",
            "CREATE TABLE intervals (i INTERVAL)",
            "INSERT INTO intervals SELECT to_months(i::INT) FROM range(5) r(i)",
        )
        if not encrypted:
            reference.set_option("write_deletion_vectors", True)
            reference.execute("DELETE FROM t WHERE id BETWEEN 60 AND 65", "DELETE FROM intervals WHERE month(i) = 3")
        history = record(reference, "t", "empty", "intervals")
    newest = max(version for _, version in history)
    judged = {key: contents for key, contents in history.items() if effort.is_full() or key[1] == newest}
    assert_history(published, spark, judged)


@pytest.mark.parametrize("kind", ["duckdb", *(["sqlite"] if effort.is_full() else [])])
def test_as_duckdb_reads_it_there(web: WebServer, spark: SparkSession, kind: str) -> None:
    published = PublishedCatalog(web, kind)
    with published.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE SCHEMA s",
            "CREATE TABLE s.t (id BIGINT, p VARCHAR)",
            "ALTER TABLE s.t SET PARTITIONED BY (p)",
            "INSERT INTO s.t VALUES (1, 'a'), (2, 'b'), (3, NULL)",
            "DELETE FROM s.t WHERE id = 2",
            "UPDATE s.t SET p = 'c' WHERE id = 3",
            "CREATE VIEW s.v AS SELECT id * 2 AS twice FROM s.t",
        )
        newest = reference.value("SELECT max(snapshot_id) FROM lk.snapshots()")
    with published.reference() as reference, penstock.attach(published.uri, name="web", spark=spark) as lake:
        assert_contents(lake.table("s.t").read(), query(reference, "FROM s.t"))
        assert_contents(lake.table("s.t").read(version=3), query(reference, "FROM s.t AT (VERSION => 3)"))
        assert_contents(lake.sql("FROM s.v", dialect="duckdb"), query(reference, "FROM s.v"))
        columns = "snapshot_id, rowid, change_type, id, p"
        changes = query(reference, f"SELECT {columns} FROM ducklake_table_changes('lk', 's', 't', 0, {newest})")
        assert len(list(changes.rows.elements())) == lake.table("s.t").changes(0, newest).count() > 4
        assert spark.sql("SELECT count(*) FROM web.s.t WHERE p = 'a'").first() == (1,)
        assert lake.sql("SELECT count(*) AS n FROM s.t", dialect="duckdb").first() == (2,)
        assert "1 of 2 files" in str(lake.table("s.t").explain("p = 'a'"))
        assert all(file.data_file.startswith(published.data_path) for file in lake.table("s.t").files().collect())


def test_what_a_server_is_asked(published_file: PublishedCatalog, spark: SparkSession, web: WebServer) -> None:
    """Of a small data file its bytes, once, and not its size; of the catalog nothing before it is attached."""
    make_small(published_file)
    with penstock.attach(published_file.uri, spark=spark) as lake:
        rows = lake.table("t").read()
        web.requests.clear()
        assert len(rows.collect()) == 3
    assert [asked.method for asked in web.asked(ending=".parquet")] == ["GET"]


@pytest.mark.parametrize("prefix", ["", "duckdb:", "sqlite:"])
def test_the_file_tells_what_it_is(published: PublishedCatalog, spark: SparkSession, prefix: str) -> None:
    make_small(published)
    uri = published.uri.replace("ducklake:", f"ducklake:{prefix}")
    with penstock.attach(uri, spark=spark) as lake:
        assert lake.current_snapshot().id == 2
        assert [row.table_name for row in lake.tables().collect()] == ["t"]


def test_a_copy_of_sqlite_goes_with_the_lake(
    web: WebServer, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    published = PublishedCatalog(web, "sqlite")
    make_small(published)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    with penstock.attach(published.uri, spark=spark) as lake:
        assert len(list((tmp_path / "temporary").rglob("catalog"))) == 1
        assert len(lake.table("t").read().collect()) == 3
    assert not list((tmp_path / "temporary").iterdir())


def test_nothing_can_be_changed(published: PublishedCatalog, spark: SparkSession, web: WebServer) -> None:
    make_small(published)
    before = files_below(web.folder)
    with penstock.attach(published.uri, spark=spark) as lake:
        table = lake.table("t")
        for change in (
            lambda: table.append(spark.range(1).selectExpr("id", "'x' AS name")),
            lambda: table.delete("id = 1"),
            lambda: lake.create_table("u", "id BIGINT"),
            lambda: lake.set_option("parquet_compression", "zstd"),
            lambda: lake.expire_snapshots(versions=[1]),
            lambda: lake.merge_adjacent_files(),
            lambda: lake.transaction().__enter__(),
        ):
            with pytest.raises(penstock.InvalidError, match="can only be read; change the lake that it is a copy of"):
                change()
    assert files_below(web.folder) == before


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@contextmanager
def attach_fails(match: str, folder: Path) -> Iterator[None]:
    """An error within seconds, by which nothing was made."""
    before, start = set(folder.rglob("*")), time.monotonic()
    with pytest.raises(penstock.AttachError, match=match) as error:
        yield
    assert time.monotonic() - start < 10
    assert "hunter2" not in str(error.value)
    assert set(folder.rglob("*")) == before


def test_no_lake_there(web: WebServer, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (web.folder / "page.html").write_text("  <!DOCTYPE html><html>welcome</html>")
    (web.folder / "empty").touch()
    (web.folder / "zeros").write_bytes(bytes(100))
    with Reference() as reference:
        reference.execute(f"ATTACH '{web.folder}/other.db' AS other", "CREATE TABLE other.t (i INT)")
    host = web.url.removeprefix("http://")
    for place, match in (
        (f"{web.url}/none.ducklake", "no DuckLake at .*none.ducklake: there is no such file.*cannot be created there"),
        (f"{web.url}/none.ducklake?key=hunter2", "no DuckLake at .*none.ducklake: there is no such file"),
        (f"{web.url}/page.html", "is not a DuckLake: it is a web page"),
        (f"{web.url}/empty", "is not a DuckLake: it is something else"),
        (f"{web.url}/zeros", "is not a DuckLake: it is something else"),
        (f"{web.url}/other.db", "is not a DuckLake: it has no table ducklake_metadata; check the location"),
        (f"http://me:hunter2@{host}/x.ducklake", f"the address of {host} holds a name or a password"),
        (f"https://hunter2@{host}/x.ducklake", f"the address of {host} holds a name or a password"),
        ("http://127.0.0.1:9/x.ducklake", "127.0.0.1:9/x.ducklake cannot be read: .*refused"),
        ("https://nowhere.invalid/x.ducklake", "https://nowhere.invalid/x.ducklake cannot be read"),
        ("gs://bucket/x.ducklake", "catalogs over gs are not supported"),
    ):
        with attach_fails(match, tmp_path):
            penstock.attach(f"ducklake:{place}", create_if_not_exists=True, spark=spark)
    web.failures = [403] * 4
    with attach_fails("the server answers 403", tmp_path):
        penstock.attach(f"ducklake:{web.url}/zeros", spark=spark)


def test_where_the_data_is(
    published_file: PublishedCatalog,
    spark: SparkSession,
    web: WebServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A relative path is one on this machine, as to DuckDB; the data path that is given counts instead."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    with Reference() as reference:
        reference.attach(published_file.inside.uri, data_path="data/", data_inlining_row_limit=0)
        reference.execute("CREATE TABLE t (id BIGINT)", "INSERT INTO t VALUES (1), (2)")
    (tmp_path / "work" / "data").rename(web.folder / "a b é%41")
    with published_file.reference() as reference, pytest.raises(Exception, match="data/main/t"):
        reference.rows("FROM t")
    gone = pytest.raises(penstock.NotFoundError, match=r"no folder .*data/main/t/.*override_data_path=True")
    with penstock.attach(published_file.uri, spark=spark) as lake, gone:
        lake.table("t").read()
    for spelled in ("a%20b%20%C3%A9%2541", "a b é%2541"):
        there = {"data_path": f"{web.url}/{spelled}", "override_data_path": True}
        with penstock.attach(published_file.uri, spark=spark, **there) as lake:
            assert len(lake.table("t").read().collect()) == 2
    for secret, match in (
        (f"{web.url.replace('://', '://me:hunter2@')}/data/", "holds a name or a password"),
        (f"{web.url}/data/?token=hunter2", "/data/ goes on with a [?]"),
    ):
        with attach_fails(match, tmp_path):
            penstock.attach(published_file.uri, spark=spark, data_path=secret, override_data_path=True)
        with attach_fails(match, tmp_path):  # and no lake is made with it
            penstock.attach(f"ducklake:{tmp_path}/new.ducklake", spark=spark, data_path=secret)


def test_no_error_shows_a_token(published_file: PublishedCatalog, spark: SparkSession, web: WebServer) -> None:
    """One that stood in the address, whoever is refused with it: also long after it was attached."""
    make_small(published_file)
    uri = f"{published_file.uri}?signature=hunter2"
    for answers in (1, 2, 5, 9):
        web.requests.clear()
        web.refuses_after = answers
        with pytest.raises(penstock.PenstockError, match=r"403|does not exist") as error:
            penstock.attach(uri, spark=spark).table("t").read().collect()
        assert "hunter2" not in "".join(traceback.format_exception(error.value))


def test_laid_out_for_duckdb(published_file: PublishedCatalog, spark: SparkSession, web: WebServer) -> None:
    """DuckDB finds files with codes in their paths where the server has them without; so do all of our readers."""
    with published_file.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE TABLE t (p VARCHAR, i INTERVAL)",
            "ALTER TABLE t SET PARTITIONED BY (p)",
            "INSERT INTO t VALUES ('a b', INTERVAL 1 MONTH), ('a b', INTERVAL 2 DAY), ('c', NULL)",
            "DELETE FROM t WHERE i = INTERVAL 2 DAY",
            "CREATE TABLE u (p VARCHAR, i INT)",
            "ALTER TABLE u SET PARTITIONED BY (p)",
            "INSERT INTO u VALUES ('a b', 1), ('a b', 2), ('c', NULL)",
            "DELETE FROM u WHERE i = 2",
        )
    for folder in list(web.folder.rglob("p=a%20b")):
        folder.rename(folder.parent / "p=a b")
    assert_same_tables(published_file, spark, "t", "u")


def test_a_data_file_that_is_gone(published_file: PublishedCatalog, spark: SparkSession, web: WebServer) -> None:
    make_small(published_file)
    [file] = web.folder.rglob("*.parquet")
    file.unlink()
    with penstock.attach(published_file.uri, spark=spark) as lake:
        start = time.monotonic()
        with pytest.raises(Exception, match=re.escape(f"{published_file.data_path}main/t/{file.name}")):
            lake.table("t").read().collect()
        assert time.monotonic() - start < 10


def test_a_server_that_tells_no_sizes(published: PublishedCatalog, spark: SparkSession, web: WebServer) -> None:
    """It sends files in chunks, and knows no ranges; DuckDB reads the catalog of such a lake, and no data."""
    with published.build(data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t (id BIGINT)", "INSERT INTO t FROM range(3)", "DELETE FROM t WHERE id = 1")
        expected = query(reference, "FROM t")
    web.tells_sizes = False
    with penstock.attach(published.uri, spark=spark) as lake:
        assert_contents(lake.table("t").read(), expected)


@pytest.mark.parametrize("trouble", ["no ranges", "no HEAD", "5xx", "cut short", "redirects"])
def test_servers_with_habits(
    published_file: PublishedCatalog, spark: SparkSession, web: WebServer, trouble: str
) -> None:
    make_small(published_file, 200_000)  # more than is read ahead
    [file] = web.folder.rglob("*.parquet")
    assert file.stat().st_size > 200_000
    with penstock.attach(published_file.uri, spark=spark) as lake:
        rows = lake.table("t").read()
        match trouble:
            case "no ranges":
                web.knows_ranges = False
            case "no HEAD":
                web.knows_head = False
            case "5xx":
                web.failures = [503, 500]
            case "cut short":
                web.cut_short = 2
            case _:
                moved = file.rename(web.folder / "moved.parquet")
                web.redirects[f"/data/main/t/{file.name}"] = f"/{moved.name}"
        assert rows.selectExpr("count(*)", "sum(id)", "max(name)").first() == (200_000, 19_999_900_000, "n99999")


def test_a_server_that_always_fails(spark: SparkSession, web: WebServer) -> None:
    published = PublishedCatalog(web, "sqlite")
    make_small(published)
    with penstock.attach(published.uri, spark=spark) as lake:
        rows = lake.table("t").read()
        web.failures = [503] * 100
        with pytest.raises(Exception, match=r"the server answers 503 for http://.*\.parquet"):
            rows.collect()
        assert len(web.failures) > 85


@pytest.mark.cluster
def test_executors_of_their_own(published_file: PublishedCatalog, spark: SparkSession) -> None:
    make_small(published_file, 1000)
    with penstock.attach(published_file.uri, spark=spark) as lake:
        assert lake.table("t").read().selectExpr("sum(id)").first() == (499_500,)


@pytest.mark.s3
@pytest.mark.parametrize("kind", ["duckdb", *(["sqlite"] if effort.is_full() else [])])
def test_a_catalog_on_s3(spark: SparkSession, s3: S3Server, web: WebServer, kind: str, tmp_path: Path) -> None:
    """Nobody has to be told what is in the bucket's files, and nobody writes there."""
    name = s3.bucket()
    published = PublishedCatalog(web, kind)
    published.data_path = f"s3://{name}/data/"
    with Reference() as reference:
        add_secret(reference, s3, name)
    with published.inside.build(data_path=published.data_path, data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t (id BIGINT, name VARCHAR)", "INSERT INTO t VALUES (1, 'é'), (2, NULL)")
        expected = query(reference, "FROM t")
    published.file.rename(s3.objects / name / "lake of all.ducklake")
    place = f"s3://{name}/lake of all.ducklake"
    with penstock.attach(f"ducklake:{place}", spark=spark, storage_options=s3.options()) as lake:
        assert_contents(lake.table("t").read(), expected)
        with pytest.raises(penstock.InvalidError, match="can only be read"):
            lake.table("t").delete("id = 1")
    with attach_fails("no DuckLake at .*: there is no such file", tmp_path):
        penstock.attach(f"ducklake:s3://{name}/none", spark=spark, storage_options=s3.options())
    wrong = s3.options(aws_secret_access_key="hunter2")
    with pytest.raises(penstock.InvalidError, match="aws_secret_access_key is wrong"):
        penstock.attach(f"ducklake:{place}", spark=spark, storage_options=wrong)
    assert {path.name for path in (s3.objects / name).glob("[a-z]*")} == {"lake of all.ducklake", "data"}
