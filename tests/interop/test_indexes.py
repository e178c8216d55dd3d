"""The indexes that Penstock adds to a catalog: the extension works on as if they were not there."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import psycopg
import pymysql
import pytest
from pyspark.sql import SparkSession

import penstock
from penstock.ducklake.catalog.catalog_tables import INDEXES, TABLES
from penstock.ducklake.catalog.databases import mysql
from penstock.ducklake.catalog.indexes import optimize_catalog
from penstock.ducklake.catalog.opening import AttachOptions, open_catalog
from penstock.errors import CatalogError, InvalidError
from support.catalogs import Catalog, PostgresCatalog, SQLiteCatalog
from support.dumps import rows, twin
from support.reference import METADATA, Reference
from support.servers import MariaDBServer, PostgresServer

NAMES = {index.name for index in INDEXES}
EVERYTHING = (
    "CREATE SCHEMA s",
    "CREATE TABLE s.t (id INTEGER, name VARCHAR, day DATE)",
    "ALTER TABLE s.t SET PARTITIONED BY (day)",
    "INSERT INTO s.t SELECT i, 'name ' || i, DATE '2026-01-01' + CAST(i % 7 AS INTEGER) FROM range(2000) r(i)",
    "INSERT INTO s.t SELECT i, repeat('ä', 5000), DATE '2026-01-01' FROM range(2000, 4000) r(i)",
    "INSERT INTO s.t VALUES (4001, NULL, NULL), (4002, '', '1950-02-03')",
    "UPDATE s.t SET name = 'again' WHERE id % 100 = 0",
    "UPDATE s.t SET name = 'again' WHERE id = 4001",
    "DELETE FROM s.t WHERE id % 10 = 1",
    "ALTER TABLE s.t ADD COLUMN note VARCHAR DEFAULT 'none'",
    "ALTER TABLE s.t RENAME COLUMN name TO label",
    "ALTER TABLE s.t ALTER id TYPE BIGINT",
    "INSERT INTO s.t SELECT i, 'late', DATE '2026-01-01', NULL FROM range(5000, 7000) r(i)",
    "CREATE TABLE wide AS SELECT i, repeat('x', 9000) AS x FROM range(2000) r(i)",
    "DELETE FROM wide WHERE i < 1990",
    "CREATE VIEW v AS SELECT count(*) AS n FROM s.t",
    "CREATE TABLE gone AS SELECT 1 AS a",
    "DROP TABLE gone",
    "CALL ducklake_flush_inlined_data('lk')",
    "CALL ducklake_rewrite_data_files('lk')",
    "CALL ducklake_merge_adjacent_files('lk')",
    "CALL ducklake_expire_snapshots('lk', versions => [3, 4, 5])",
    "CALL ducklake_expire_snapshots('lk', older_than => now())",
    "CALL ducklake_cleanup_old_files('lk', cleanup_all => true)",
    "CHECKPOINT lk",
    "INSERT INTO s.t SELECT i, 'after', DATE '2026-02-01', '' FROM range(8000, 9000) r(i)",
    "MERGE INTO s.t USING (SELECT 8000 AS id) u ON t.id = u.id WHEN MATCHED THEN DELETE",
)
QUESTIONS = (
    "SELECT count(*), sum(id), count(label), min(day), max(day), count(note), sum(hash(COLUMNS(*))::HUGEINT) FROM s.t",
    "SELECT * FROM s.t WHERE id BETWEEN 3990 AND 5005 OR label = '' ORDER BY id",
    "FROM v", "SELECT i FROM wide ORDER BY i",
    "SELECT count(*) FROM ducklake_snapshots('lk')",
    "SELECT file_count, delete_file_count FROM ducklake_table_info('lk') ORDER BY table_name",
)  # fmt: skip


@pytest.fixture(params=["sqlite", "postgres"])
def written(request: pytest.FixtureRequest) -> Catalog:
    """A catalog that the extension can do everything on."""
    made: Catalog = request.getfixturevalue(f"{request.param}_catalog")
    return made


def indexes(catalog: Catalog) -> set[str]:
    with closing(open_catalog(catalog.uri, AttachOptions(catalog.data_path)).database) as database:
        return database.indexes() if database.uses_indexes else set()


def optimized(catalog: Catalog, **options: object) -> list[str]:
    given = AttachOptions(**{"data_path": catalog.data_path, **options})  # type: ignore[arg-type]
    with closing(open_catalog(catalog.uri, given).database) as database:
        return [index.name for index in optimize_catalog(database)]


def answers(reference: Reference) -> list[object]:
    return [reference.rows(question) for question in QUESTIONS]


def sizes(catalog: Catalog) -> dict[str, int]:
    return {name: len(found) for name, found in rows(catalog).items()}


def test_new_lakes_have_them(catalog: Catalog) -> None:
    found = indexes(catalog)
    assert found & NAMES == (set() if catalog.kind == "duckdb" else NAMES)
    assert optimized(catalog) == []


def test_they_are_on_columns_that_every_database_can_index() -> None:
    for index in INDEXES:
        types = {column.name: column.type for column in TABLES[index.table].columns}
        assert {types[name] for name in index.columns} == {"bigint"}


@pytest.mark.slow
def test_the_extension_does_all_it_can(written: Catalog, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    with twin(written, tmp_path / "twin", request) as theirs:
        with theirs.reference() as reference:
            reference.execute(*EVERYTHING)
            expected = answers(reference)
        assert indexes(theirs) & NAMES == set()
        assert indexes(written) >= NAMES
        with written.reference() as reference:
            reference.execute(*EVERYTHING)
            assert answers(reference) == expected
        assert indexes(written) >= NAMES
        assert sizes(written) == sizes(theirs)


def test_a_lake_of_the_extensions_gets_them(written: Catalog) -> None:
    with written.reference() as reference:
        reference.execute(*EVERYTHING[:14])
        before = reference.rows("SELECT id, label, day FROM s.t ORDER BY id")
        found: list[list[str]] = []
        begin = threading.Barrier(4)

        def optimize() -> None:
            begin.wait()
            found.append(optimized(written))

        threads = [threading.Thread(target=optimize) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # The extension is attached all the while, and goes on.
        assert reference.rows("SELECT id, label, day FROM s.t ORDER BY id") == before
        reference.execute(*EVERYTHING[14:])
        assert reference.value("SELECT count(*) FROM s.t WHERE label = 'after'") == 999
        assert reference.value(f"SELECT count(*) FROM {METADATA}.ducklake_data_file") > 0
    assert sorted(name for made in found for name in made) == sorted(NAMES)
    assert optimized(written) == []


def test_in_a_schema_of_its_own(postgres_catalog: Catalog) -> None:
    other = {"metadata_schema": "Odd one"}
    with postgres_catalog.reference(**other) as reference:
        reference.execute("CREATE TABLE t AS SELECT 1 AS i")
    assert sorted(optimized(postgres_catalog, **other)) == sorted(NAMES)
    assert optimized(postgres_catalog, **other) == []
    with postgres_catalog.reference(**other) as reference:
        reference.execute("INSERT INTO t VALUES (2)")
        assert reference.rows("FROM t ORDER BY 1") == [(1,), (2,)]
    # Another lake of the same database has its own.
    assert indexes(postgres_catalog) >= NAMES


def test_a_copy_has_them(sqlite_catalog: Catalog, postgres_catalog: Catalog, mysql_catalog: Catalog) -> None:
    with sqlite_catalog.reference() as reference:
        reference.execute("CREATE TABLE t AS SELECT i FROM range(2000) r(i)")
    for target in (postgres_catalog, mysql_catalog):
        penstock.copy_catalog(sqlite_catalog.uri, target.uri)
        target.data_path = sqlite_catalog.data_path
        assert indexes(target) >= NAMES
        with target.reference() as reference:
            assert reference.value("SELECT count(*) FROM t") == 2000


def test_only_owners_make_them(postgres_catalog: PostgresCatalog, postgres_server: PostgresServer) -> None:
    with postgres_catalog.reference() as reference:
        reference.execute("CREATE TABLE t AS SELECT 1 AS i")
    with psycopg.connect(postgres_catalog.target, autocommit=True) as connection:
        connection.execute("CREATE ROLE writer LOGIN")
        connection.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO writer")
        try:
            guest = AttachOptions(postgres_catalog.data_path)
            uri = postgres_catalog.uri.replace("user=postgres", "user=writer")
            with (
                closing(open_catalog(uri, guest).database) as database,
                pytest.raises(CatalogError, match=r"writer does not own ducklake_data_file.*do it as the owner"),
            ):
                optimize_catalog(database)
        finally:
            connection.execute("DROP OWNED BY writer")
            connection.execute("DROP ROLE writer")
    assert indexes(postgres_catalog) & NAMES == set()


def test_a_lake_is_made_without_the_right_to_make_indexes(mysql_catalog: Catalog, mysql_server: MariaDBServer) -> None:
    database = mysql_catalog.target.split()[0].removeprefix("db=")
    mysql_server.execute(
        "CREATE OR REPLACE USER maker@localhost",
        f"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON {database}.* TO maker@localhost",
    )
    uri = mysql_catalog.uri.replace("user=root", "user=maker")
    open_catalog(uri, AttachOptions(mysql_catalog.data_path)).database.close()
    assert indexes(mysql_catalog) >= NAMES
    mysql_server.execute(f"ALTER TABLE {database}.ducklake_data_file DROP INDEX penstock_files_by_end")
    with (
        closing(open_catalog(uri, AttachOptions(mysql_catalog.data_path)).database) as opened,
        pytest.raises(CatalogError, match=r"maker'@'localhost' may not make indexes; GRANT INDEX ON"),
    ):
        optimize_catalog(opened)
    assert optimized(mysql_catalog) == ["penstock_files_by_end"]


def test_nobody_waits_for_a_reader_who_stays(
    mysql_catalog: Catalog, mysql_server: MariaDBServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mysql, "_INDEX_SECONDS", 1)
    assert indexes(mysql_catalog) >= NAMES
    name = mysql_catalog.target.split()[0].removeprefix("db=")
    mysql_server.execute(f"ALTER TABLE {name}.ducklake_data_file DROP INDEX penstock_files_by_end")
    with pymysql.connect(unix_socket=str(mysql_server.socket), user="root", database=name) as reader:
        reader.begin()
        reader.cursor().execute("SELECT count(*) FROM ducklake_data_file")
        with pytest.raises(CatalogError, match="others hold its tables: call optimize_catalog again later"):
            optimized(mysql_catalog)
        # Whoever comes after it waits for nobody.
        assert sizes(mysql_catalog)["ducklake_data_file"] == 0
    with closing(open_catalog(mysql_catalog.uri, AttachOptions()).database) as database:
        assert [index.name for index in optimize_catalog(database)] == ["penstock_files_by_end"]
        assert database.value("SELECT @@lock_wait_timeout") == 120


def test_the_verb(sqlite_catalog: SQLiteCatalog, spark: SparkSession) -> None:
    with sqlite_catalog.reference() as reference:
        reference.execute("CREATE TABLE t AS SELECT 1 AS i")
    with (
        penstock.attach(sqlite_catalog.uri, read_only=True, spark=spark) as lake,
        pytest.raises(InvalidError, match="read_only"),
    ):
        lake.optimize_catalog()
    with penstock.attach(sqlite_catalog.uri, spark=spark) as lake:
        newest = lake.current_snapshot()
        with lake.transaction(), pytest.raises(InvalidError, match="cannot be part of a transaction"):
            lake.optimize_catalog()
        made = [tuple(row) for row in lake.optimize_catalog().collect()]
        assert made == [(index.table, index.name) for index in INDEXES]
        assert lake.optimize_catalog().collect() == []
        assert lake.current_snapshot() == newest
    with closing(sqlite3.connect(sqlite_catalog.target)) as connection:
        found = connection.execute("SELECT name, tbl_name FROM sqlite_master WHERE name LIKE 'penstock%'").fetchall()
    assert set(found) == {(index.name, index.table) for index in INDEXES}
