"""Catalogs that were copied from one database to another: DuckDB reads every version of every table there as before."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock
from penstock.ducklake.catalog import catalog_copy
from penstock.ducklake.catalog.creation import has_lake
from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.catalog.inlined_rows import InlinedTable
from support import dumps
from support.catalogs import Catalog, DuckDBCatalog, MySQLCatalog, PostgresCatalog, SQLiteCatalog
from support.compare import History, TableName, assert_same_tables, record
from support.lake_samples import NESTED, PRIMITIVES, create_table, insert_rows
from support.reference import METADATA, Reference
from support.servers import MariaDBServer, PostgresServer
from support.writers import Writer

KINDS = ("duckdb", "sqlite", "postgres", "mysql")
HOSTILE = "it''s /=%$#? \"q\" é 🦆"
TABLES = ("inlined", "changed", "filed", TableName("part ed", "s 1"), "gone")
LAKE = (
    create_table("inlined", PRIMITIVES + NESTED),
    insert_rows("inlined", PRIMITIVES + NESTED),
    "CREATE TABLE changed (id INTEGER, name VARCHAR, \"Mixed Case\" DOUBLE)",
    f"INSERT INTO changed VALUES (1, '{HOSTILE}', 'nan'), (2, 'a' || chr(0) || 'b', '-0.0'), (3, NULL, '-inf')",
    "UPDATE changed SET name = 'new' WHERE id = 1",
    "DELETE FROM changed WHERE id = 2",
    "ALTER TABLE changed ADD COLUMN late DATE DEFAULT '1969-12-31'",
    "INSERT INTO changed VALUES (4, 'later', 1.5, NULL)",
    "ALTER TABLE changed RENAME name TO title",
    "CREATE TABLE filed AS SELECT i AS id, 'n' || chr(0) || i AS s, i / 7 AS f FROM range(200) r(i)",
    "DELETE FROM filed WHERE id IN (3, 4)",
    "DELETE FROM filed WHERE id BETWEEN 20 AND 150",
    'CREATE SCHEMA "s 1"',
    'CREATE TABLE "s 1"."part ed" (day DATE, v BIGINT)',
    'ALTER TABLE "s 1"."part ed" SET PARTITIONED BY (year(day))',
    """INSERT INTO "s 1"."part ed" SELECT DATE '2019-01-01' + (i * 40)::INT, i FROM range(100) r(i)""",
    "CREATE TABLE gone AS SELECT 1 AS a",
    "DROP TABLE gone",
    f"COMMENT ON TABLE filed IS '{HOSTILE}'",
    "CREATE VIEW seen AS SELECT count(*) AS n FROM filed",
    "CREATE MACRO plus(a, b := 2) AS a + b",
    "CALL lk.set_option('parquet_compression', 'zstd', table_name => 'filed')",
    "BEGIN", "INSERT INTO changed VALUES (5, 'told', 0, NULL)",
    f"CALL lk.set_commit_message('me', '{HOSTILE}')", "COMMIT",
)  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[DuckDBCatalog, Told]:
    """A lake with something in most of its catalog's tables, and what the extension shows of it."""
    catalog = DuckDBCatalog(tmp_path_factory.mktemp("made"))
    with catalog.build(data_inlining_row_limit=50) as reference:
        reference.execute(*LAKE)
    with (
        catalog.reference() as reference
    ):  # again: when its file is closed, DuckDB makes -0.0 of a 0.0 that follows one
        history = record(reference, *TABLES)
    assert sum(one is not None for one in history.values()) > 15
    return catalog, told(history)


class Places:
    """Empty places for catalogs of every kind."""

    def __init__(self, directory: Path, request: pytest.FixtureRequest) -> None:
        self._directory, self._request = directory, request
        self._servers: list[tuple[MariaDBServer, str]] = []

    def new(self, kind: str, data_path: str) -> Catalog:
        directory = self._directory / f"place {len(list(self._directory.iterdir()))}"
        directory.mkdir()
        made: Catalog
        match kind:
            case "postgres":
                made = PostgresCatalog(directory, self._request.getfixturevalue("postgres_server"))
            case "mysql":
                server: MariaDBServer = self._request.getfixturevalue("mysql_server")
                made = MySQLCatalog(directory, server)
                self._servers.append((server, made.database))
            case "sqlite":
                made = SQLiteCatalog(directory)
            case _:
                made = DuckDBCatalog(directory)
        made.data_path = data_path
        return made

    def forget(self) -> None:
        for server, database in self._servers:
            server.drop_database(database)


@pytest.fixture
def places(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Places]:
    found = Places(tmp_path, request)
    yield found
    found.forget()


Told = dict[str, Any]


def shown(catalog: Catalog, *tables: str | TableName) -> Told:
    with catalog.reference() as reference:
        return told(record(reference, *tables))


def told(history: History) -> Told:
    """As texts, since NaN is not equal to itself."""
    return {
        f"{name} at {version}": found and (found.columns, sorted(map(repr, found.rows.elements())))
        for (name, version), found in history.items()
    }


def pairs() -> Iterator[Any]:
    """Every pair of databases; each is the one and the other of a pair that is not slow."""
    for i, source in enumerate(KINDS):
        for target in KINDS:
            swift = target == KINDS[(i + 1) % len(KINDS)]
            yield pytest.param(source, target, marks=() if swift else pytest.mark.slow)


@pytest.mark.parametrize(("source", "target"), list(pairs()))
def test_every_version_reads_the_same(
    source: str, target: str, made: tuple[DuckDBCatalog, Told], places: Places
) -> None:
    first, history = made
    one, other, back = (places.new(kind, first.data_path) for kind in (source, target, source))
    penstock.copy_catalog(first.uri, one.uri)
    newest = penstock.copy_catalog(one.uri, other.uri)
    assert newest.commit_message == HOSTILE.replace("''", "'")
    found = shown(other, *TABLES)
    assert found.keys() == history.keys()
    assert [name for name in history if found[name] != history[name]] == []
    penstock.copy_catalog(other.uri, back.uri)
    assert _told(dumps.rows(back)) == _told(dumps.rows(one))
    with other.reference() as reference:
        assert reference.rows("FROM seen") == [(67,)]
        assert reference.rows("SELECT plus(1)") == [(3,)]


def _told(rows: Mapping[str, list[tuple[Any, ...]]]) -> dict[str, list[str]]:
    """The rows as texts, since NaN is not equal to itself; without bounds that PostgreSQL cannot hold."""
    found = dict(rows)
    statistics = "ducklake_file_column_stats"
    found[statistics] = [tuple(None if "\0" in str(value) else value for value in row) for row in rows[statistics]]
    return {table: sorted(map(repr, lines)) for table, lines in found.items()}


def test_duckdb_goes_on_writing(made: tuple[DuckDBCatalog, Told], places: Places) -> None:
    """The same statements in the lake and in copies of it: numbers of snapshots, tables, files and rows go on."""
    first, _ = made
    answers = []
    for kind in ("duckdb", "sqlite", "postgres"):
        copy = places.new(kind, first.data_path)
        penstock.copy_catalog(first.uri, copy.uri)
        with copy.reference(data_inlining_row_limit=5) as reference:
            reference.execute(
                "INSERT INTO changed VALUES (6, 'after', 2, NULL)",
                "UPDATE filed SET f = 0 WHERE id = 5",
                "DELETE FROM filed WHERE id = 6",
                "DELETE FROM changed WHERE id = 4",
                "CREATE TABLE more AS SELECT i FROM range(10) r(i)",
            )
            newest = reference.rows(
                f"SELECT snapshot_id, schema_version, next_catalog_id, next_file_id FROM {METADATA}.ducklake_snapshot"
                " ORDER BY 1 DESC LIMIT 1"
            )
            rows = reference.rows("SELECT *, rowid FROM changed ORDER BY rowid")
            answers.append((newest, repr(rows), reference.rows("SELECT count(*), sum(f) FROM filed")))
    assert answers[0] == answers[1] == answers[2]
    assert answers[0][0][0][0] == 27


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_penstock_goes_on_writing(
    kind: str, made: tuple[DuckDBCatalog, Told], places: Places, spark: SparkSession
) -> None:
    first, _ = made
    copy = places.new(kind, first.data_path)
    newest = penstock.copy_catalog(first.uri, copy.uri)
    with penstock.attach(copy.uri, spark=spark) as lake:
        assert lake.current_snapshot() == newest
        lake.table("changed").append(spark.sql("SELECT 7, 'seven', 7D, CAST(NULL AS DATE)"))
        lake.table("changed").delete("id = 3")
        lake.table("filed").delete("id = 7")
        lake.create_table("more", "id BIGINT").append(spark.range(3))
        assert lake.current_snapshot().id == newest.id + 5
    assert_same_tables(copy, spark, "changed", "filed", "more")


def test_a_catalog_in_schemas(
    made: tuple[DuckDBCatalog, Told], postgres_server: PostgresServer, mysql_server: MariaDBServer, tmp_path: Path
) -> None:
    """From schema to schema; a schema that is not there is made, and gone again if the copy fails."""
    first, _ = made
    database = postgres_server.create_database()
    postgres = f"ducklake:postgres:{postgres_server.connection_string(database)}"
    mysql = f"ducklake:mysql:{mysql_server.connection_string('mysql')}"
    penstock.copy_catalog(first.uri, postgres, target_metadata_schema="a b")
    penstock.copy_catalog(
        postgres, mysql, source_metadata_schema="a b", target_metadata_schema="copied",
        source_metadata_parameters={"application_name": "copying"}, target_metadata_parameters={"host": "localhost"},
    )  # fmt: skip
    last = f"ducklake:{tmp_path}/last.ducklake"
    penstock.copy_catalog(mysql, last, source_metadata_schema="copied", target_metadata_schema="inner")
    again = f"ducklake:{tmp_path}/again.ducklake"
    newest = penstock.copy_catalog(last, again, source_metadata_schema="inner")
    assert newest.id == 22
    for uri, schema in ((postgres, "a b"), (mysql, "copied"), (last, "inner")):
        with pytest.raises(penstock.AlreadyExistsError, match=r"there is a DuckLake at .* already"):
            penstock.copy_catalog(first.uri, uri, target_metadata_schema=schema)
    mysql_server.execute("DROP DATABASE copied")


def nothing_is_at(place: Catalog) -> bool:
    if isinstance(place, DuckDBCatalog | SQLiteCatalog):
        return list(place.directory.iterdir()) == []
    with dumps.opened(place) as database:
        return not database.tables("")


@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupt_leaves_nothing(
    kind: str, made: tuple[DuckDBCatalog, Told], places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = made
    place = places.new(kind, first.data_path)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(catalog_copy, "copy_inlined", interrupt)
        with pytest.raises(KeyboardInterrupt):
            penstock.copy_catalog(first.uri, place.uri)
    assert nothing_is_at(place)
    assert penstock.copy_catalog(first.uri, place.uri).id == 22


REFUSED = {
    "a text that is too long": (
        "mysql", "CREATE VIEW v AS SELECT 1 AS " + "x" * 70_000, penstock.CatalogError, "too long",
    ),
    "NUL in a text": (
        "postgres", "UPDATE __ducklake_metadata_lk.ducklake_snapshot_changes SET author = 'a' || chr(0)",
        penstock.CatalogError, "NUL",
    ),
    "a variant": (
        "sqlite", "CREATE TABLE t AS SELECT 1::VARIANT AS v", penstock.UnsupportedError, r"flush_inlined_data\(\)",
    ),
    "a time whose text DuckDB cannot read": (
        "sqlite", "CREATE TABLE t AS SELECT '294247-01-10 04:00:54.775806+00'::TIMESTAMPTZ AS z",
        penstock.UnsupportedError, r"values of 'z' that do not survive as text",
    ),
    "values without a text": (
        "postgres", "CREATE TABLE t AS SELECT ['a' || chr(0)] AS l", penstock.UnsupportedError,
        r"values of 'l' that do not survive as text.*flush_inlined_data\(\)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_a_database_cannot_hold(what: str, file_catalog: Catalog, places: Places) -> None:
    """Neither tables nor a schema are left."""
    kind, statement, error, message = REFUSED[what]
    with file_catalog.build(data_inlining_row_limit=5) as reference:
        reference.execute(statement)
    place = places.new(kind, file_catalog.data_path)
    schema = None if kind == "sqlite" else "made for it"
    with pytest.raises(error, match=message):
        penstock.copy_catalog(file_catalog.uri, place.uri, target_metadata_schema=schema)
    assert nothing_is_at(place)
    if schema:
        with dumps.opened(place) as database:
            assert not database.query("SELECT 1 FROM information_schema.schemata WHERE schema_name = ?", [schema])
    other = places.new("duckdb", file_catalog.data_path)
    penstock.copy_catalog(file_catalog.uri, other.uri)
    if what == "a variant":
        with other.reference() as reference:
            assert reference.rows("SELECT v::VARCHAR, variant_typeof(v) FROM t") == [("1", "INT32")]


FULL_DISK = """
import resource, sys, penstock
resource.setrlimit(resource.RLIMIT_FSIZE, (1_600_000, resource.RLIM_INFINITY))
try:
    penstock.copy_catalog(*sys.argv[1:])
except penstock.CatalogError as error:
    print(error)
"""


def test_no_room_for_the_file(duckdb_catalog: Catalog, places: Places) -> None:
    """DuckDB commits to a log, for which there is room, and brings it to the file when that is closed."""
    with duckdb_catalog.build(data_inlining_row_limit=100_000) as reference:
        reference.execute("CREATE TABLE t AS SELECT i, md5(i::VARCHAR) AS s FROM range(20_000) r(i)")
    place = places.new("duckdb", duckdb_catalog.data_path)
    made = subprocess.run(
        [sys.executable, "-c", FULL_DISK, duckdb_catalog.uri, place.uri], capture_output=True, text=True, check=True
    )
    assert "Failed to create checkpoint" in made.stdout
    assert nothing_is_at(place)


def test_a_lake_that_another_made_meanwhile(
    made: tuple[DuckDBCatalog, Told], mysql_catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MySQL's tables outlive transactions: a copy that fails drops its own, unless they are a lake by now."""
    first, _ = made

    def fail(*_: object) -> None:
        with dumps.opened(mysql_catalog) as database:
            database.insert("ducklake_metadata", ["key", "value"], [("version", "1.0")])
        raise KeyboardInterrupt

    monkeypatch.setattr(catalog_copy, "copy_inlined", fail)
    with pytest.raises(KeyboardInterrupt):
        penstock.copy_catalog(first.uri, mysql_catalog.uri)
    with dumps.opened(mysql_catalog) as database:
        assert database.query('SELECT "key", "value" FROM ducklake_metadata') == [("version", "1.0")]
        assert len(database.tables("ducklake_")) > 28


def test_tables_of_a_killed_copy(made: tuple[DuckDBCatalog, Told], mysql_catalog: Catalog) -> None:
    first, _ = made
    with dumps.opened(mysql_catalog) as database:
        database.execute("CREATE TABLE ducklake_tag (a INT)")
    with pytest.raises(penstock.AlreadyExistsError, match=r"tables of one, .* ducklake_tag; drop them"):
        penstock.copy_catalog(first.uri, mysql_catalog.uri)
    with dumps.opened(mysql_catalog) as database:
        assert database.tables("") == {"ducklake_tag"}


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_a_file_that_has_other_tables(kind: str, made: tuple[DuckDBCatalog, Told], places: Places) -> None:
    first, _ = made
    place = places.new(kind, first.data_path)
    place.tamper("CREATE TABLE mine AS SELECT 1 AS a")
    penstock.copy_catalog(first.uri, place.uri)
    with pytest.raises(penstock.AlreadyExistsError, match=r"lake\.\w+ already"):
        penstock.copy_catalog(first.uri, place.uri)
    with dumps.opened(place) as database:
        assert database.query("SELECT * FROM mine") == [(1,)]
        assert database.value("SELECT count(*) FROM ducklake_snapshot") == 23


def test_many_batches(made: tuple[DuckDBCatalog, Told], places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    first, _ = made
    monkeypatch.setattr(catalog_copy, "_ROWS_A_BATCH", 3)
    monkeypatch.setattr("penstock.ducklake.catalog.inlined_rows._ROWS_A_BATCH", 2)
    chain = [first, *(places.new(kind, first.data_path) for kind in ("postgres", "mysql", "sqlite", "duckdb"))]
    for one, other in pairwise(chain):
        penstock.copy_catalog(one.uri, other.uri)
    assert _told(dumps.rows(chain[-1])) == _told(dumps.rows(first))


def test_the_source_is_read_in_one_state(
    postgres_catalog: Catalog, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody commits while the copy is made: of that, the copy has nothing."""
    with Writer(postgres_catalog.uri, postgres_catalog.data_path) as writer:
        writer.create_table("t")
        writer.append("t", 1)

        def meanwhile(target: Database) -> bool:
            writer.append("t", 2)
            writer.create_table("u")
            return has_lake(target)

        place = places.new("sqlite", postgres_catalog.data_path)
        with monkeypatch.context() as patch:
            patch.setattr(catalog_copy, "has_lake", meanwhile)
            assert penstock.copy_catalog(postgres_catalog.uri, place.uri).id == 2
    with place.reference() as reference:
        assert reference.rows("FROM t") == [(1,)]
        assert reference.rows("SHOW TABLES") == [("t",)]


@pytest.mark.parametrize("kind", ["postgres", "mysql"])
def test_flushes_meanwhile(kind: str, places: Places, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """They drop tables of inlined rows that an older state of the catalog still names."""
    source = places.new(kind, "")
    place = places.new("duckdb", f"{source.directory}/data/")
    with penstock.attach(source.uri, data_path=place.data_path, data_inlining_row_limit=5, spark=spark) as lake:
        table = lake.create_table("t", "id INT")
        table.append(spark.sql("SELECT 1"))
        table.add_column("x INT")
        table.append(spark.sql("SELECT 2, 2"))
        list_tables, flushed = catalog_copy.all_tables_of_inlined_rows, []

        def meanwhile(database: Database) -> list[InlinedTable]:
            while len(flushed) < 2:
                flushed.append(lake.flush_inlined_data())
                table.append(spark.sql("SELECT 3, 3"))
            return list_tables(database)

        monkeypatch.setattr(catalog_copy, "all_tables_of_inlined_rows", meanwhile)
        penstock.copy_catalog(source.uri, place.uri)
    with place.reference() as reference:
        assert reference.rows("FROM t ORDER BY id") == [(1, None), (2, 2), (3, 3), (3, 3)]


def test_a_lake_that_this_process_has_attached(duckdb_catalog: Catalog, places: Places) -> None:
    with Writer(duckdb_catalog.uri, duckdb_catalog.data_path) as writer:
        writer.create_table("t")
        writer.append("t", 1)
        place = places.new("sqlite", duckdb_catalog.data_path)
        assert penstock.copy_catalog(duckdb_catalog.uri, place.uri).id == 2
        writer.append("t", 2)


def test_relative_data_paths_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, places: Places) -> None:
    """DuckDB, too, looks for them from the folder that it was started in."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.chdir(home)
    with DuckDBCatalog(home).build(data_path="data", data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t AS SELECT 5 AS a")
    monkeypatch.chdir(tmp_path)
    place = places.new("sqlite", f"{home}/data/")
    with pytest.raises(penstock.InvalidError, match=r"under data/, which is relative .* there is no .*/data/; copy it"):
        penstock.copy_catalog("ducklake:home/lake.ducklake", place.uri)
    assert nothing_is_at(place)
    monkeypatch.chdir(home)
    penstock.copy_catalog("ducklake:lake.ducklake", place.uri)
    monkeypatch.chdir(tmp_path)
    with place.reference() as reference:
        assert reference.rows("FROM t") == [(5,)]


def test_data_that_moved(tmp_path: Path, file_catalog: Catalog, places: Places) -> None:
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t AS SELECT 5 AS a")
    moved = tmp_path / "moved"
    Path(file_catalog.data_path).rename(moved)
    place = places.new("sqlite", f"{moved}/")
    penstock.copy_catalog(file_catalog.uri, place.uri, data_path=str(moved))
    with place.reference() as reference:
        assert reference.rows("FROM t") == [(5,)]


def test_places_of_all_sorts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = DuckDBCatalog(tmp_path)
    with first.build(data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t AS SELECT 5 AS a")
    Path("link").symlink_to("lake.ducklake")
    for itself in (first.uri, "ducklake:lake.ducklake", "ducklake:./link"):
        for schema in (None, "other"):
            with pytest.raises(penstock.AlreadyExistsError, match="is the file that shall be copied; name another"):
                penstock.copy_catalog(first.uri, itself, target_metadata_schema=schema)
    for elsewhere in ("ducklake:https://example.org/x.ducklake", "ducklake:sqlite:s3://bucket/x.sqlite"):
        with pytest.raises(penstock.AttachError, match="what is elsewhere is only read; name a file here"):
            penstock.copy_catalog(first.uri, elsewhere)
    Path("early").symlink_to("late.ducklake")  # which is not there yet
    penstock.copy_catalog("ducklake:link", "ducklake:early", data_path="")
    with Reference() as reference:
        assert reference.attach("ducklake:late.ducklake").rows("FROM t") == [(5,)]


def test_no_lake_to_copy(tmp_path: Path) -> None:
    for uri in (f"ducklake:{tmp_path}/none.ducklake", f"ducklake:sqlite:{tmp_path}/none.sqlite"):
        with pytest.raises(penstock.AttachError, match="no DuckLake at"):
            penstock.copy_catalog(uri, f"ducklake:{tmp_path}/copy.ducklake")
    with pytest.raises(penstock.AttachError, match="is not a DuckLake location"):
        penstock.copy_catalog(uri, "postgres:dbname=x")
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_lake(file_catalog: Catalog, tmp_path: Path) -> None:
    with file_catalog.build() as reference:
        reference.execute("CREATE TABLE t AS SELECT 5 AS a")
    file_catalog.tamper("DELETE FROM ducklake_schema_versions")
    with pytest.raises(penstock.AttachError, match=r"damaged: .* the shape of ducklake_inlined_data_1_1"):
        penstock.copy_catalog(file_catalog.uri, f"ducklake:{tmp_path}/copy.ducklake")
    assert not (tmp_path / "copy.ducklake").exists()
