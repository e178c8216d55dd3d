"""Lakes of older format versions: made by undoing what each version added, then migrated by the extension and by us."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from pyspark.sql import SparkSession

from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.catalog.migration import format_version, migrate
from penstock.ducklake.catalog.opening import AttachOptions, open_catalog
from penstock.errors import AttachError
from support.catalogs import Catalog, PostgresCatalog
from support.compare import TableName, assert_same_tables
from support.dumps import opened, rows, shapes, twin
from support.reference import Reference

TABLES = (TableName("parts"), TableName("renamed", "s"), TableName("nested", "s"))
OLDER = ("0.1", "0.2", "0.3-dev1", "0.3", "0.4-dev1", "0.4")

# What takes a catalog from the version after it to each version; 0.4 has the tables of 1.0.
UNDONE = {
    "0.4": (),
    "0.4-dev1": (
        "ALTER TABLE ducklake_data_file ADD COLUMN partial_file_info {text}",
        "UPDATE ducklake_data_file SET partial_file_info = 'partial_max:' || partial_max WHERE partial_max IS NOT NULL",
        "DROP TABLE ducklake_sort_expression",
        "UPDATE ducklake_column SET default_value_type = NULL WHERE column_id = 1",
        "INSERT INTO ducklake_schema_versions SELECT min(snapshot_id), schema_version, NULL FROM ducklake_snapshot"
        " GROUP BY schema_version",
        "DELETE FROM ducklake_schema_versions WHERE table_id IS NOT NULL",
    ),
    "0.3": (
        "DROP TABLE ducklake_macro",
        "DROP TABLE ducklake_macro_impl",
        "DROP TABLE ducklake_macro_parameters",
        "DROP TABLE ducklake_sort_info",
        "DROP TABLE ducklake_file_variant_stats",
        "ALTER TABLE ducklake_column DROP COLUMN default_value_type",
        "ALTER TABLE ducklake_column DROP COLUMN default_value_dialect",
        "ALTER TABLE ducklake_data_file DROP COLUMN partial_max",
        "ALTER TABLE ducklake_delete_file DROP COLUMN partial_max",
        "ALTER TABLE ducklake_schema_versions DROP COLUMN table_id",
    ),
    "0.3-dev1": (
        "DROP TABLE ducklake_schema_versions",
        "ALTER TABLE ducklake_file_column_stats RENAME TO ducklake_file_column_statistics",
        "ALTER TABLE ducklake_file_column_statistics DROP COLUMN extra_stats",
        "ALTER TABLE ducklake_table_column_stats DROP COLUMN extra_stats",
    ),
    "0.2": (
        "ALTER TABLE ducklake_name_mapping DROP COLUMN is_partition",
        "ALTER TABLE ducklake_snapshot_changes DROP COLUMN author",
        "ALTER TABLE ducklake_snapshot_changes DROP COLUMN commit_message",
        "ALTER TABLE ducklake_snapshot_changes DROP COLUMN commit_extra_info",
    ),
    "0.1": (
        *(
            f"""UPDATE {table} SET path = (SELECT max(s.path || t.path) FROM ducklake_table t, ducklake_schema s
                WHERE t.table_id = {table}.table_id AND s.schema_id = t.schema_id) || path"""
            for table in ("ducklake_data_file", "ducklake_delete_file")
        ),
        """UPDATE ducklake_partition_column SET column_id = (SELECT count(*) FROM ducklake_column c
           WHERE c.table_id = ducklake_partition_column.table_id AND c.column_id < ducklake_partition_column.column_id
           AND c.parent_column IS NULL AND c.end_snapshot IS NULL)""",
        *(
            f"ALTER TABLE {table} DROP COLUMN {column}"
            for table in ("ducklake_schema", "ducklake_table")
            for column in ("path", "path_is_relative")
        ),
        "ALTER TABLE ducklake_metadata DROP COLUMN scope",
        "ALTER TABLE ducklake_metadata DROP COLUMN scope_id",
        "ALTER TABLE ducklake_data_file DROP COLUMN mapping_id",
        "DROP TABLE ducklake_column_mapping",
        "DROP TABLE ducklake_name_mapping",
    ),
}  # fmt: skip


def _build_older(catalog: Catalog, version: str) -> dict[str, list[Any]]:
    """Make a lake of a version; returns what the extension showed in it."""
    with catalog.build() as reference:
        reference.execute(
            "CREATE SCHEMA s",
            "CREATE TABLE parts (s STRUCT(x INTEGER, y INTEGER), gone INTEGER, region VARCHAR, id BIGINT DEFAULT 7)",
            "ALTER TABLE parts DROP COLUMN gone",
            "ALTER TABLE parts SET PARTITIONED BY (region)",
            """INSERT INTO parts SELECT {'x': i, 'y': NULL}, CASE i % 3 WHEN 0 THEN 'a/b' WHEN 1 THEN '' END, i
               FROM range(40) r(i)""",
            "DELETE FROM parts WHERE id = 13",
            "CREATE TABLE s.first (id INTEGER)",
            "INSERT INTO s.first VALUES (1), (NULL)",
            "INSERT INTO s.first VALUES (2)",
            "CALL ducklake_flush_inlined_data('lk')",
            "INSERT INTO s.first VALUES (3)",
            "ALTER TABLE s.first RENAME TO renamed",
            "CREATE TABLE s.nested (l INTEGER[], m MAP(VARCHAR, INTEGER))",
            "INSERT INTO s.nested SELECT [i, NULL], MAP {'k': i} FROM range(30) r(i)",
            "CREATE TABLE dropped (id INTEGER)",
            "INSERT INTO dropped VALUES (1)",
            "DROP TABLE dropped",
            "CREATE VIEW v AS SELECT id FROM parts",
        )  # fmt: skip
        shown = _shown(reference)
    with opened(catalog) as database:
        for step in reversed(OLDER[OLDER.index(version) :]):
            for statement in UNDONE[step]:
                database.execute(statement.format(text="TEXT" if catalog.kind == "mysql" else "VARCHAR"))
        database.execute('UPDATE ducklake_metadata SET "value" = ? WHERE "key" = \'version\'', [version])
    return shown


def _shown(reference: Reference) -> dict[str, list[Any]]:
    return {str(table): sorted(reference.rows(f"FROM {table}"), key=repr) for table in (*TABLES, "v")}


@contextmanager
def _copied(catalog: Catalog, directory: Path, request: pytest.FixtureRequest) -> Iterator[Catalog]:
    with twin(catalog, directory, request) as copy:
        copy.data_path = catalog.data_path
        if isinstance(catalog, PostgresCatalog) and isinstance(copy, PostgresCatalog):
            server = request.getfixturevalue("postgres_server").connection_string("postgres")
            with psycopg.connect(server, autocommit=True) as connection:
                connection.execute(f"DROP DATABASE {copy.database}".encode())
                connection.execute(f"CREATE DATABASE {copy.database} TEMPLATE {catalog.database}".encode())
        else:
            shutil.copy(catalog.target, copy.target)
        yield copy


@pytest.mark.parametrize(
    ("kind", "version"),
    [
        ("duckdb", "0.3"),
        ("sqlite", "0.3"),
        ("postgres", "0.3"),
        pytest.param("postgres", "0.4", marks=pytest.mark.slow),
        *(pytest.param("duckdb", version, marks=pytest.mark.slow) for version in OLDER[:-1] if version != "0.3"),
    ],
)
def test_as_the_extension_does_it(kind: str, version: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    catalog: Catalog = request.getfixturevalue(f"{kind}_catalog")
    shown = _build_older(catalog, version)
    with _copied(catalog, tmp_path / "copy", request) as theirs:
        with theirs.reference(automatic_migration=True):
            pass
        _migrate(catalog)
        assert shapes(catalog) == shapes(theirs)
        assert rows(catalog) == rows(theirs)
    with catalog.reference() as reference:
        assert _shown(reference) == shown


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "mysql"])
def test_where_the_extension_cannot(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Its connectors to these databases lack some of the statements that it needs; what we made it reads."""
    catalog: Catalog = request.getfixturevalue(f"{kind}_catalog")
    shown = _build_older(catalog, "0.1")
    with Reference() as reference, pytest.raises(duckdb.Error, match="Failed to migrate"):
        reference.attach(catalog.uri, automatic_migration=True)
    _migrate(catalog)
    with twin(catalog, tmp_path / "new", request) as new:
        open_catalog(new.uri, AttachOptions(data_path="data")).database.close()
        expected, made = shapes(new), shapes(catalog)
        assert {table: made.get(table) for table in expected} == expected
    with catalog.reference() as reference:
        assert _shown(reference) == shown


def test_read_by_penstock(sqlite_catalog: Catalog, spark: SparkSession) -> None:
    _build_older(sqlite_catalog, "0.1")
    _migrate(sqlite_catalog)
    assert_same_tables(sqlite_catalog, spark, *TABLES)


def test_interrupted_where_ddl_commits(mysql_catalog: Catalog) -> None:
    """The migration dies after each of its statements in turn, and is then run to its end."""
    shown = _build_older(mysql_catalog, "0.1")
    with opened(mysql_catalog) as database:
        deaths = 0
        while format_version(database) != "1.0":
            with suppress(InterruptedError), _dying_after(database, deaths + 1):
                migrate(database)
            deaths += 1
    assert deaths > 10
    with mysql_catalog.reference() as reference:
        assert _shown(reference) == shown


def test_only_when_asked(duckdb_catalog: Catalog) -> None:
    _build_older(duckdb_catalog, "0.3")
    before = rows(duckdb_catalog)
    for options in (AttachOptions(), AttachOptions(automatic_migration=True, read_only=True)):
        with pytest.raises(AttachError, match=r"0\.3.*automatic_migration=True"):
            open_catalog(duckdb_catalog.uri, options)
    assert rows(duckdb_catalog) == before


def test_all_or_nothing(file_catalog: Catalog) -> None:
    _build_older(file_catalog, "0.2")
    before = rows(file_catalog)
    with opened(file_catalog) as database, _dying_after(database, 20), pytest.raises(InterruptedError):
        migrate(database)
    assert rows(file_catalog) == before


def test_merged_files_that_lose_their_history(file_catalog: Catalog) -> None:
    """What versions before 0.3 wrote for merged files has no place in 1.0: the extension drops it in silence."""
    _build_older(file_catalog, "0.3")
    with opened(file_catalog) as database:
        database.execute("UPDATE ducklake_data_file SET partial_file_info = '2:4|6:7' WHERE data_file_id = 0")
    with pytest.warns(UserWarning, match="1 merged file"):
        _migrate(file_catalog)


@contextmanager
def _dying_after(database: Database, statements: int) -> Iterator[None]:
    """The database's connection is lost after so many statements that change something."""
    execute, left = database.execute, statements

    def dying(sql: str, parameters: Sequence[Any] = ()) -> None:
        nonlocal left
        if left == 0:
            raise InterruptedError
        left -= 1
        execute(sql, parameters)

    database.execute = dying  # type: ignore[method-assign]
    try:
        yield
    finally:
        del database.execute


def _migrate(catalog: Catalog) -> None:
    open_catalog(catalog.uri, AttachOptions(automatic_migration=True)).database.close()
