"""New lakes: what `attach` makes is what the extension makes, and what it can work with."""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from uuid import UUID

import duckdb
import pytest

from penstock.ducklake.catalog.opening import AttachOptions, open_catalog
from penstock.errors import AttachError
from penstock.version import __version__
from support.catalogs import Catalog, MySQLCatalog, PostgresCatalog
from support.dumps import opened, rows, shapes, twin
from support.reference import METADATA, Reference


def _create(catalog: Catalog, **options: object) -> None:
    open_catalog(catalog.uri, AttachOptions(**{"data_path": catalog.data_path, **options})).database.close()  # type: ignore[arg-type]


def test_tables_and_rows_are_the_extensions(catalog: Catalog, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    with twin(catalog, tmp_path / "twin", request) as theirs:
        theirs.data_path = catalog.data_path
        with theirs.reference():
            pass
        _create(catalog)
        assert shapes(catalog) == shapes(theirs)
        expected, made = rows(theirs), rows(catalog)
    assert ("created_by", f"Penstock {__version__}", None, None) in made["ducklake_metadata"]
    for kept in (expected, made):
        kept["ducklake_metadata"] = [row for row in kept["ducklake_metadata"] if row[0] != "created_by"]
        [(schema, uuid, *rest)] = kept["ducklake_schema"]
        kept["ducklake_schema"] = [(schema, type(uuid), UUID(str(uuid)).version, *rest)]
        [(snapshot, time, *rest)] = kept["ducklake_snapshot"]
        kept["ducklake_snapshot"] = [(snapshot, type(time), *rest)]
    assert made == expected
    assert not os.path.exists(catalog.data_path)


def test_the_extension_works_on_it(catalog: Catalog) -> None:
    _create(catalog)
    with catalog.reference() as reference:
        reference.execute(
            "CREATE SCHEMA s",
            "CREATE TABLE s.t (id INTEGER, name VARCHAR)",
            "INSERT INTO s.t VALUES (1, 'it''s'), (2, NULL)",
        )
        if catalog.kind != "mysql":  # where the extension can do no more
            reference.execute(
                "INSERT INTO s.t SELECT i, '😀' FROM range(3, 50) r(i)",
                "ALTER TABLE s.t ADD COLUMN note VARCHAR DEFAULT 'none'",
                "UPDATE s.t SET note = '' WHERE id = 2",
                "DELETE FROM s.t WHERE id > 3",
            )
            assert reference.rows("SELECT * FROM s.t ORDER BY id") == [
                (1, "it's", "none"), (2, None, ""), (3, "😀", "none"),
            ]  # fmt: skip
        if catalog.kind == "duckdb":  # inlined variants need a file of DuckDB's newest storage version
            reference.execute("CREATE TABLE v (v VARIANT)", "INSERT INTO v VALUES ([1, 2]::VARIANT)")
            assert reference.value(f"SELECT count(*) FROM {METADATA}.ducklake_inlined_data_tables") >= 2
    _create(catalog)


def test_created_at_once_by_many(catalog: Catalog) -> None:
    failures: list[BaseException] = []
    begin = threading.Barrier(5)

    def create() -> None:
        begin.wait()
        try:
            _create(catalog)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=create) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    made = rows(catalog)
    assert (len(made["ducklake_metadata"]), len(made["ducklake_schema"]), len(made["ducklake_snapshot"])) == (4, 1, 1)
    assert [path.name for path in catalog.directory.iterdir() if path.name.startswith(".")] == []


def test_opened_while_it_is_closed(duckdb_catalog: Catalog) -> None:
    """DuckDB keeps a file's name until it is closed to the end: another thread waits for that."""
    _create(duckdb_catalog)
    file = duckdb_catalog.uri.removeprefix("ducklake:")
    holder = duckdb.connect()
    holder.execute(f"ATTACH '{file}' AS held")
    closing_soon = threading.Timer(0.3, holder.close)
    closing_soon.start()
    _create(duckdb_catalog)
    closing_soon.join()


def test_held_by_another_duckdb_of_the_process(duckdb_catalog: Catalog) -> None:
    _create(duckdb_catalog)
    with closing(duckdb.connect()) as holder:
        holder.execute(f"ATTACH '{duckdb_catalog.uri}' AS held")
        with pytest.raises(AttachError, match=r"held by another DuckDB of this process.*DETACH it there"):
            _create(duckdb_catalog)


def test_where_the_files_go(duckdb_catalog: Catalog, sqlite_catalog: Catalog) -> None:
    file = duckdb_catalog.uri.removeprefix("ducklake:")
    for given, stored in (
        (None, f"{file}.files/"),
        ("", f"{file}.files/"),
        ("some/where", "some/where/"),
        ("x//", "x/"),
    ):
        catalog = open_catalog(duckdb_catalog.uri, AttachOptions(data_path=given, encrypted=True))
        with closing(catalog.database) as database:
            metadata = dict(database.query('SELECT "key", "value" FROM ducklake_metadata'))
        assert (metadata["data_path"], metadata["encrypted"]) == (stored, "true")
        os.unlink(file)
    with pytest.raises(AttachError, match="data_path"):
        open_catalog(sqlite_catalog.uri, AttachOptions())
    assert list(sqlite_catalog.directory.iterdir()) == []


def test_encrypted(catalog: Catalog) -> None:
    _create(catalog, encrypted=True)
    with pytest.raises(AttachError, match="encrypted"):
        _create(catalog, encrypted=False)
    with catalog.reference() as reference:
        assert reference.value(f"SELECT value FROM {METADATA}.ducklake_metadata WHERE key = 'encrypted'") == "true"


def test_no_data_path_on_servers(postgres_catalog: PostgresCatalog, mysql_catalog: MySQLCatalog) -> None:
    for catalog in (postgres_catalog, mysql_catalog):
        for parameters in ({}, {"metadata_schema": "unmade"}):
            with pytest.raises(AttachError, match=r"data_path|unmade"):
                open_catalog(catalog.uri, AttachOptions(**parameters))
        assert rows(catalog) == {}
    with opened(postgres_catalog) as database:
        assert database.query("SELECT 1 FROM pg_namespace WHERE nspname = 'unmade'") == []


@pytest.mark.parametrize("kind", ["duckdb", "postgres", "mysql"])
def test_metadata_schema(kind: str, request: pytest.FixtureRequest) -> None:
    catalog: Catalog = request.getfixturevalue(f"{kind}_catalog")
    schema = f"My{catalog.database if isinstance(catalog, MySQLCatalog) else ''} schema"
    _create(catalog, metadata_schema=schema)
    _create(catalog, metadata_schema=schema)
    with Reference() as reference:
        reference.attach(catalog.uri, metadata_schema=schema, create_if_not_exists=False)
        reference.execute("CREATE TABLE t (id INTEGER)", "INSERT INTO t VALUES (1)")
        assert reference.rows("FROM t") == [(1,)]
    assert rows(catalog) == {}
    if kind == "mysql":
        request.getfixturevalue("mysql_server").drop_database(f"`{schema}`")


def test_no_schemas_in_sqlite(sqlite_catalog: Catalog) -> None:
    with pytest.raises(AttachError, match="metadata_schema"):
        _create(sqlite_catalog, metadata_schema="elsewhere")
    assert list(sqlite_catalog.directory.iterdir()) == []


def test_nothing_is_made_unless_allowed(catalog: Catalog) -> None:
    for options in ({"create_if_not_exists": False}, {"read_only": True}):
        with pytest.raises(AttachError, match="DuckLake"):
            _create(catalog, **options)
    assert list(catalog.directory.iterdir()) == []
    if catalog.kind in ("postgres", "mysql"):
        assert rows(catalog) == {}


def test_beside_other_tables(catalog: Catalog) -> None:
    _execute(catalog, "CREATE TABLE other (id INTEGER)", "INSERT INTO other VALUES (1)")
    _create(catalog)
    with catalog.reference(create_if_not_exists=False) as reference:
        reference.execute("CREATE TABLE t AS SELECT 1 AS id")
    with opened(catalog) as database:
        assert database.query("SELECT * FROM other") == [(1,)]


def test_not_over_half_a_catalog(catalog: Catalog) -> None:
    _execute(catalog, "CREATE TABLE ducklake_snapshot (id INTEGER)")
    with pytest.raises(AttachError, match="no lake can be created"):
        _create(catalog)
    if catalog.kind != "mysql":  # whose DDL is not transactional
        assert rows(catalog) == {"ducklake_snapshot": []}


@pytest.mark.parametrize("target", ["none/lake.ducklake", "file/lake.ducklake", "sqlite:none/lake.sqlite"])
def test_places_where_no_file_can_be(tmp_path: Path, target: str) -> None:
    (tmp_path / "file").touch()
    engine, _, path = target.rpartition(":")
    uri = f"ducklake:{engine}{':' if engine else ''}{tmp_path}/{path}"
    with pytest.raises(AttachError, match="directory"):
        open_catalog(uri, AttachOptions(data_path="data"))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_not_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for uri in ("ducklake::memory:", "ducklake:sqlite::memory:"):
        with pytest.raises(AttachError, match="file"):
            open_catalog(uri, AttachOptions(data_path="data"))
    assert list(tmp_path.iterdir()) == []


def _execute(catalog: Catalog, *statements: str) -> None:
    """Run statements in the database of a catalog, which may not exist yet."""
    if catalog.kind == "duckdb":
        with duckdb.connect(catalog.target) as connection:
            for statement in statements:
                connection.execute(statement)
    elif catalog.kind == "sqlite":
        with closing(sqlite3.connect(catalog.target, isolation_level=None)) as file:
            for statement in statements:
                file.execute(statement)
    else:
        with opened(catalog) as database:
            for statement in statements:
                database.execute(statement)
