"""What the process of a query can do: read the lake, in time and in memory, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from explorer.conftest import visitor
from penstock.errors import AttachError, InvalidError, UnsupportedError
from penstock.explorer.lake_source import LakeSource
from penstock.explorer.queries import DuckdbQueries, Limits, Rows
from penstock.explorer.query_worker import _ready
from penstock.explorer.rendering import table_of
from penstock.storage import options
from support.catalogs import Catalog, DuckDBCatalog
from support.explorer_lakes import make_shop
from support.reference import quote


def selected(source: LakeSource, sql: str, **limits: Any) -> Rows:
    with source.opened() as view:
        return DuckdbQueries(source, Limits(**limits)).select(view, sql)


def test_keys_of_other_lakes_go_to_no_query(shop: LakeSource, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process may know containers on Azure, and have no extension of DuckDB's for them."""
    others = {"az://other/lake": {"account_name": "me", "account_key": "a2V5"}, "s3://other/lake": {"region": "eu-1"}}
    monkeypatch.setattr(options, "_options", {})
    for path, given in others.items():
        options.use_options(path, options.StorageOptions.of(given))
    with shop.opened() as view:
        task = DuckdbQueries(shop)._task(view, "SELECT 1", 10, None)
    assert (task.stores, {"azure", "httpfs"} & set(task.extensions)) == (None, set())
    assert selected(shop, "SELECT min(id) FROM orders").rows == (("0",),)


def test_a_file_on_azure_refuses_no_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those who look at other tables need no extension for it."""
    catalog = DuckDBCatalog(tmp_path)
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t AS SELECT 1 AS a", "CREATE TABLE u AS SELECT 2 AS a")
    with duckdb.connect(catalog.target) as connection:
        connection.execute("""UPDATE ducklake_data_file SET path = 'az://box/u.parquet', path_is_relative = false
                              WHERE table_id = (SELECT table_id FROM ducklake_table WHERE table_name = 'u')""")
    monkeypatch.setattr(options, "_options", {})
    options.use_options("az://box/x", options.StorageOptions.of({"account_name": "me", "account_key": "a2V5"}))
    source = LakeSource(catalog.uri)
    with source.opened() as view:
        task = DuckdbQueries(source)._task(view, "SELECT 1", 10, None)
    assert (task.stores, "azure" in task.extensions) == (None, False)
    assert selected(source, "SELECT a FROM t").rows == (("1",),)


@pytest.fixture(scope="module")
def locked(shop: LakeSource) -> Iterator[duckdb.DuckDBPyConnection]:
    """The DuckDB that a query gets, without the rules for queries before it."""
    with shop.opened() as view:
        task = DuckdbQueries(shop)._task(view, "SELECT 1", 10, None)
    with _ready(task) as connection:
        yield connection


@pytest.mark.parametrize(
    "sql",
    [
        "FROM read_text('/etc/passwd')",
        "FROM read_csv('/etc/passwd')",
        "FROM read_blob('/etc/hostname')",
        "FROM glob('/etc/*')",
        "FROM '/etc/passwd'",
        "FROM sniff_csv('/etc/passwd')",
        "SELECT getenv('HOME')",
        "FROM read_parquet('https://example.com/x.parquet')",
        "FROM read_text('s3://bucket/x')",
        "ATTACH '/tmp/other.db'",
        "COPY (SELECT 1) TO '/tmp/penstock-explorer-test.csv'",
        "EXPORT DATABASE '/tmp/penstock-explorer-test'",
        "INSTALL spatial",
        "LOAD spatial",
        "LOAD httpfs",
        "SET threads = 1",
        "SET enable_external_access = true",
        "SET allowed_directories = ['/']",
        "RESET lock_configuration",
        "CREATE TABLE lake.main.x (i INTEGER)",
        "INSERT INTO lake.main.orders (id) VALUES (1)",
        "DELETE FROM lake.main.orders",
        "DROP TABLE lake.main.orders",
        "CREATE PERSISTENT SECRET s (TYPE http)",
        "FROM sqlite_scan('/tmp/x.db', 't')",
        "FROM main_module_variable",
        "PRAGMA enable_logging; SET logging_storage = 'file'",
    ],
)
def test_duckdb_itself_is_locked_whatever_the_rules_let_through(locked: duckdb.DuckDBPyConnection, sql: str) -> None:
    main_module_variable = [1]  # DuckDB takes variables of Python's for tables elsewhere
    assert main_module_variable
    with pytest.raises(duckdb.Error):
        locked.execute(sql).fetchall()
    assert not os.path.exists("/tmp/penstock-explorer-test.csv")
    assert not os.path.exists("/tmp/penstock-explorer-test")


def test_what_a_locked_duckdb_reads_is_the_lakes(locked: duckdb.DuckDBPyConnection, shop: LakeSource) -> None:
    [(count,)] = locked.execute("SELECT count(*) FROM orders").fetchall()
    assert count == 5400
    with shop.opened() as view, pytest.raises(duckdb.Error):
        locked.execute(f"FROM read_text({quote(view.catalog.data_path + '../lake.ducklake')})")


def test_values_that_hurt_are_shown_as_duckdb_prints_them(shop: LakeSource) -> None:
    sql = """SELECT NULL, '', 'a"<&>''', '😀', 'NaN'::DOUBLE, -0.0::DOUBLE, DATE '0044-03-15 (BC)', DATE '9999-12-31',
             TIMESTAMP 'infinity', TIMESTAMPTZ '1969-12-31 23:59:59.5+00', '\\xAA\\x00'::BLOB, [1, NULL], {'a': 'b'},
             MAP {'k': 1}, 170141183460469231731687303715884105727, INTERVAL 3 MONTHS,
             12345678901234567890123456789012345678::DECIMAL(38, 0)"""
    found = selected(shop, sql)
    assert found.rows[0] == (
        None,
        "",
        "a\"<&>'",
        "😀",
        "nan",
        "-0.0",
        "0044-03-15 (BC)",
        "9999-12-31",
        "infinity",
        "1969-12-31 23:59:59.5+00",
        "\\xAA\\x00",
        "[1, NULL]",
        "{'a': b}",
        "{k=1}",
        "170141183460469231731687303715884105727",
        "3 months",
        "12345678901234567890123456789012345678",
    )
    assert len(found.types) == len(found.names) == 17


def test_columns_may_have_the_same_name_or_hostile_ones(shop: LakeSource) -> None:
    found = selected(shop, 'SELECT 1 AS a, 2 AS a, 3 AS "<b>""\'", 4 AS c0')
    assert found.names == ("a", "a", "<b>\"'", "c0")
    assert found.rows == (("1", "2", "3", "4"),)


def test_an_order_is_kept(shop: LakeSource) -> None:
    found = selected(shop, "SELECT id FROM orders ORDER BY id DESC", rows=3)
    assert found.rows == (("5999",), ("5998",), ("5997",))
    assert found.more


def test_rows_and_letters_are_limited(shop: LakeSource) -> None:
    found = selected(shop, "SELECT repeat('x', 10000000) FROM range(1000000)", rows=5, letters=50)
    assert found.rows == (("x" * 50 + "…",),) * 5
    assert found.more
    assert not selected(shop, "FROM range(5)", rows=5).more
    many = ", ".join(f"repeat('y', 100000) AS c{i}" for i in range(500))
    wide = selected(shop, f"SELECT {many}", letters=100000)
    assert sum(len(value or "") for value in wide.rows[0]) < 200_000


def test_a_query_is_stopped_when_its_time_is_over(shop: LakeSource) -> None:
    began = time.monotonic()
    with pytest.raises(InvalidError, match="stopped after 3 seconds"):
        selected(shop, "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b", seconds=3)
    assert time.monotonic() - began < 20


def test_a_query_does_not_take_more_memory_than_it_may(shop: LakeSource) -> None:
    sql = "SELECT list(r) FROM (SELECT range AS r FROM range(200000000))"
    with pytest.raises(InvalidError, match=r"(?i)memory"):
        selected(shop, sql, megabytes=100)


def test_one_very_long_text_is_too_much_too(shop: LakeSource) -> None:
    with pytest.raises(InvalidError):
        selected(shop, "SELECT length(repeat('x', 4000000000)) + length(repeat('y', 4000000000))", seconds=20)


def test_more_queries_than_there_are_turns_wait_and_then_are_told(
    shop: LakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.explorer.queries._PATIENCE", 0.1)
    queries = DuckdbQueries(shop)
    for _ in range(2):
        queries._turns.acquire()
    with shop.opened() as view, pytest.raises(InvalidError, match="2 queries are running"):
        queries.select(view, "SELECT 1")
    queries._turns.release()
    with shop.opened() as view:
        assert queries.select(view, "SELECT 1").rows == (("1",),)


def test_mistakes_are_said_as_duckdb_says_them(shop: LakeSource) -> None:
    with pytest.raises(InvalidError, match="nonexistent"):
        selected(shop, "SELECT nonexistent FROM orders")
    with pytest.raises(InvalidError, match="Could not convert"):
        selected(shop, "SELECT CAST(note AS INTEGER) FROM orders")


def test_a_sample_and_the_changes_are_those_of_the_snapshots(shop: LakeSource) -> None:
    queries = DuckdbQueries(shop)
    with shop.opened(5) as view:
        orders = table_of(view, 1)
        then = queries.sample(view, orders, 0, 10)
        assert "channel" not in then.names
        assert len(then.rows) == 10
        assert then.more
        rest = queries.sample(view, orders, 995, 10)
        assert (len(rest.rows), rest.more) == (5, False)
    with shop.opened() as view:
        orders = table_of(view, 1)
        assert "channel" in queries.sample(view, orders, 0, 1).names
        found = queries.changes(view, orders, 12, 12, 0, 100)
        kinds = [row[found.names.index("change_type")] for row in found.rows]
        assert sorted(set(kinds)) == ["update_postimage", "update_preimage"]
        assert kinds.count("update_preimage") == 19  # of 100 to 120, but for two that were deleted


def test_views_and_macros_of_the_lake_can_be_used(shop: LakeSource) -> None:
    assert selected(shop, "SELECT count(*) > 0, doubled(21) FROM big_orders").rows == (("true", "42"),)
    assert selected(shop, "SELECT count(*) FROM orders_of('Asia') WHERE region <> 'Asia'").rows == (("0",),)
    with shop.opened(5) as view:
        found = DuckdbQueries(shop).select(view, "SELECT count(*) FROM orders")
        assert found.rows == (("1000",),)


def test_rows_are_read_from_every_catalog(catalog: Catalog) -> None:
    with catalog.build() as reference:
        reference.execute("CREATE TABLE t (i INTEGER, s VARCHAR)", "INSERT INTO t VALUES (1, 'é'), (NULL, '')")
    source = LakeSource(catalog.uri)
    with source.opened() as view:
        queries = DuckdbQueries(source)
        table = table_of(view, 1)
        assert sorted(queries.sample(view, table, 0, 9).rows, key=str) == [("1", "é"), (None, "")]
        assert queries.select(view, "SELECT sum(i) FROM t").rows == (("1",),)
        assert len(queries.changes(view, table, 0, view.snapshot.id, 0, 9).rows) == 2


def test_files_that_were_added_from_elsewhere_can_be_read_and_their_neighbours_not(tmp_path: Path) -> None:
    lake, elsewhere = tmp_path / "lake", tmp_path / "elsewhere"
    lake.mkdir()
    elsewhere.mkdir()
    catalog = DuckDBCatalog(lake)
    with catalog.build() as reference:
        reference.execute(f"COPY (SELECT 7 AS i) TO '{elsewhere}/added.parquet'", "CREATE TABLE t (i INTEGER)")
        reference.execute(f"CALL ducklake_add_data_files('lk', 't', '{elsewhere}/added.parquet')")
        reference.execute(f"COPY (SELECT 8 AS i) TO '{elsewhere}/other.parquet'")
    source = LakeSource(catalog.uri)
    assert selected(source, "FROM t").rows == (("7",),)
    with source.opened() as view:
        task = DuckdbQueries(source)._task(view, "SELECT 1", 10, None)
    with _ready(task) as connection, pytest.raises(duckdb.Error, match="disabled"):
        connection.execute(f"FROM read_parquet('{elsewhere}/other.parquet')")


def test_of_very_many_added_files_those_that_are_asked_for_are_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, elsewhere = tmp_path / "lake", tmp_path / "elsewhere"
    lake.mkdir()
    elsewhere.mkdir()
    catalog = DuckDBCatalog(lake)
    with catalog.build() as reference:
        reference.execute("CREATE TABLE first (i INTEGER)", "CREATE TABLE second (i INTEGER)")
        for number in range(6):
            path = elsewhere / f"{number}.parquet"
            table = "first" if number < 4 else "second"
            reference.execute(f"COPY (SELECT {number} AS i) TO '{path}'")
            reference.execute(f"CALL ducklake_add_data_files('lk', '{table}', '{path}')")
    source = LakeSource(catalog.uri)
    monkeypatch.setattr("penstock.explorer.queries._MOST_OTHER_FILES", 2)
    queries = DuckdbQueries(source)
    with source.opened() as view:
        assert sorted(queries.sample(view, table_of(view, 2), 0, 9).rows) == [("4",), ("5",)]
        with pytest.raises(UnsupportedError, match=r"more than 2 of the files .* start the explorer with --spark"):
            queries.sample(view, table_of(view, 1), 0, 9)


def test_the_process_of_a_query_runs_no_code_of_the_folder_it_is_started_in(
    shop: LakeSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("resource", "json", "pickle", "duckdb"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\nraise SystemExit(1)\n")
    monkeypatch.chdir(tmp_path)
    assert selected(shop, "SELECT 1").rows == (("1",),)
    assert not (tmp_path / "ran").exists()


def test_an_encrypted_lake_is_read_and_its_keys_are_not_shown(file_catalog: Catalog) -> None:
    with file_catalog.build(encrypted=True) as reference:
        reference.execute("CREATE TABLE t AS SELECT i FROM range(100) r(i)")
    source = LakeSource(file_catalog.uri)
    assert selected(source, "SELECT sum(i) FROM t").rows == (("4950",),)
    with source.opened() as view:
        keys = view.catalog.database.query("SELECT encryption_key FROM ducklake_data_file")
    client = visitor(source)
    for path in ["/", "/tables/1", "/tables/1/files", "/tables/1/sample", "/sql?q=FROM+information_schema.tables"]:
        page = client.get(path)
        assert page.status_code == 200
        assert not any(key in page.text for (key,) in keys)


@contextmanager
def held(path: str) -> Iterator[None]:
    """Another process that writes to a DuckDB file."""
    code = f"import duckdb; c = duckdb.connect({path!r}); print('held', flush=True); input()"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield
    finally:
        process.communicate(b"\n")


def test_a_catalog_that_another_process_holds_is_said_so_and_found_again_later(file_catalog: Catalog) -> None:
    with file_catalog.build() as reference:
        make_shop(reference)
    source = LakeSource(file_catalog.uri)
    client = visitor(source)
    with held(file_catalog.target):
        for path in ["/", "/tables/1/files", "/sql?q=SELECT+1"]:
            answer = client.get(path)
            assert answer.status_code == 503
            assert "held by another process" in answer.text
    assert client.get("/").status_code == 200


def test_a_query_that_finds_the_catalog_held_says_so_too(file_catalog: Catalog) -> None:
    with file_catalog.build() as reference:
        reference.execute("CREATE TABLE t (i INTEGER)")
    source = LakeSource(file_catalog.uri)
    queries = DuckdbQueries(source)
    with source.opened() as view:
        task = queries._task(view, "SELECT 1", 1, None)
    with held(file_catalog.target), pytest.raises(AttachError, match="held by another process"):
        raise queries._failure(queries._answer(task)["error"])


def test_between_requests_the_file_is_free_for_writers(file_catalog: Catalog) -> None:
    with file_catalog.build() as reference:
        make_shop(reference)
    source = LakeSource(file_catalog.uri)
    client = visitor(source)
    for number in range(3):
        for path in ["/", "/tables/1/sample", "/sql?q=FROM+orders"]:
            assert client.get(path).status_code == 200
        with file_catalog.reference() as writer:
            writer.execute(f"INSERT INTO customers VALUES ({1000 + number}, 'new', 1)")
    assert "503" in client.get("/").text  # rows of customers by now


def test_many_requests_at_once_do_not_get_in_each_others_way(shop: LakeSource) -> None:
    client = visitor(shop)
    paths = ["/", "/tables/1", "/tables/1/files", "/tables/1/sample", "/snapshots", "/tables/1/filter?q=id%3E5"] * 3
    answers: list[int] = []
    threads = [
        threading.Thread(target=lambda path=path: answers.append(client.get(path).status_code)) for path in paths
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [200] * len(paths)


def test_what_goes_wrong_before_the_query_is_an_error_too(shop: LakeSource) -> None:
    queries = DuckdbQueries(shop)
    with shop.opened() as view:
        task = replace(queries._task(view, "SELECT 1", 1, None), threads="no")  # type: ignore[arg-type]
    answer = queries._answer(task)
    assert "error" in answer
