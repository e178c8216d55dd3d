"""Expired snapshots: what the catalog forgets, as the extension forgets it, and what kept snapshots still show."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock
from penstock.ducklake.catalog.catalog_tables import TABLES
from penstock.storage import file_deletion
from support import dumps
from support.catalogs import Catalog, DuckDBCatalog
from support.compare import TableName, assert_history, record
from support.reference import METADATA, Reference
from support.writing import attached, files_of, leaving_nothing

STATEMENTS = (
    "CREATE TABLE t (id INTEGER, name VARCHAR)",  # 1
    "INSERT INTO t SELECT i, 'a''b/=%$ 🦆' FROM range(50) r(i)",
    "INSERT INTO t SELECT i, NULL FROM range(50, 100) r(i)",
    "DELETE FROM t WHERE id % 10 = 3",
    "DELETE FROM t WHERE id % 10 = 4",  # 5
    "DELETE FROM t WHERE id < 50",
    "INSERT INTO t VALUES (200, 'inlined'), (201, 'too')",
    "DELETE FROM t WHERE id = 200",
    "UPDATE t SET name = 'new' WHERE id BETWEEN 60 AND 80",
    "ALTER TABLE t ADD COLUMN extra INTEGER DEFAULT 7",  # 10
    "CREATE TABLE u AS SELECT i AS id FROM range(40) r(i)",
    "INSERT INTO u VALUES (1000)",
    "DELETE FROM u WHERE id IN (1, 2)",
    "ALTER TABLE u RENAME TO w",
    "CREATE SCHEMA s",  # 15
    "CREATE TABLE s.v AS SELECT i AS id FROM range(30) r(i)",
    "CREATE VIEW x AS SELECT 1 AS a",
    "COMMENT ON TABLE t IS 'first'",
    "COMMENT ON TABLE t IS 'second'",
    "CREATE MACRO m(a, b) AS a + b",  # 20
    "DROP MACRO m",
    "DROP VIEW x",
    "DROP TABLE s.v",
    "DROP SCHEMA s",
    "DROP TABLE w",  # 25
    "CREATE TABLE w AS SELECT i AS other FROM range(20) r(i)",
    "INSERT INTO t SELECT i, 'last', i FROM range(300, 330) r(i)",
    "DELETE FROM t WHERE id IN (301, 302)",
)
LAST = 28
CHOICES: list[dict[str, Any]] = [
    {"versions": [*range(LAST)]},
    {"versions": [3, 4, 5, 6]},
    {"versions": [1, 2, 8, 12, 13, 16, 24, 25, 26]},
    {"versions": [LAST, 99, -1]},
    {"versions": [*range(0, LAST, 2)]},
]


def build(catalog: Catalog) -> None:
    with catalog.build(data_inlining_row_limit=5) as reference:
        reference.execute(*STATEMENTS)
        assert reference.value("SELECT max(snapshot_id) FROM lk.snapshots()") == LAST


def catalog_rows(catalog: Catalog) -> dict[str, list[str]]:
    """What both have to say alike: not when, and not what only we delete."""
    found = dumps.rows(catalog)
    schedule = "ducklake_files_scheduled_for_deletion"
    place = TABLES[schedule].column_names.index("schedule_start")
    found[schedule] = [(*row[:place], *row[place + 1 :]) for row in found[schedule]]
    return {table: sorted(map(repr, rows)) for table, rows in found.items() if "inlined_de" not in table}


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_the_catalog_is_the_extensions(file_catalog: Catalog, spark: SparkSession, choice: dict[str, Any]) -> None:
    build(file_catalog)
    (file_catalog.directory / "theirs").mkdir()
    theirs = DuckDBCatalog(file_catalog.directory / "theirs")
    shutil.copy(file_catalog.target, theirs.target)
    with Reference().attach(theirs.uri) as reference:
        expected = reference.rows(f"SELECT snapshot_id FROM ducklake_expire_snapshots('lk', {choice_sql(choice)})")
    with attached(file_catalog, spark) as lake:
        dry = lake.expire_snapshots(**choice, dry_run=True).collect()
        assert catalog_rows(file_catalog) != catalog_rows(theirs) or not expected
        done = lake.expire_snapshots(**choice)
        assert done.columns == lake.snapshots().columns
        assert sorted(row.snapshot_id for row in done.collect()) == sorted(number for (number,) in expected)
        assert done.collect() == dry
    ours = catalog_rows(file_catalog)
    for table, rows in catalog_rows(theirs).items():
        if not table.startswith("ducklake_inlined_data_"):
            assert ours[table] == rows, table
    assert set(dumps.rows(file_catalog)) == set(dumps.rows(theirs))


def choice_sql(choice: dict[str, Any]) -> str:
    numbers = [number for number in choice["versions"] if number >= 0]
    return f"versions => {numbers}"


@pytest.mark.parametrize("keep_last", [1, 5])
def test_kept_snapshots_show_what_they_did(catalog: Catalog, spark: SparkSession, keep_last: int) -> None:
    build(catalog)
    kept = range(LAST + 1 - keep_last, LAST + 1)
    with catalog.reference() as reference:
        history = {key: rows for key, rows in record(reference, "t", "w").items() if key[1] in kept}
    before = files_of(catalog)
    with attached(catalog, spark) as lake:
        assert lake.expire_snapshots(keep_last=keep_last).count() == LAST + 1 - keep_last
        assert [row.snapshot_id for row in lake.snapshots().collect()] == [*kept]
        with pytest.raises(penstock.NotFoundError, match="expired"):
            lake.table("t").read(version=kept[0] - 1)
        assert files_of(catalog) == before
        assert lake.cleanup_old_files().count() == 0, "nothing is two days old"
        planned = {row.path for row in lake.cleanup_old_files(cleanup_all=True, dry_run=True).collect()}
        assert files_of(catalog) == before
        deleted = {row.path for row in lake.cleanup_old_files(cleanup_all=True).collect()}
        assert deleted == planned
        assert {f"{catalog.data_path}{path}" for path in before - files_of(catalog)} == deleted
        assert lake.cleanup_old_files(cleanup_all=True).count() == 0
        assert lake.expire_snapshots(versions=[]).count() == 0
    assert_history(catalog, spark, history)
    with catalog.reference() as reference:
        assert record_of(reference, history) == history
        assert not reference.rows("FROM ducklake_delete_orphaned_files('lk', cleanup_all => true, dry_run => true)")
        if catalog.kind != "mysql":  # the extension can hardly write there
            reference.execute("CHECKPOINT lk", "INSERT INTO t VALUES (9, 'later', 9)")
            assert reference.value("SELECT count(*) FROM t WHERE name = 'later'") == 1


def record_of(reference: Reference, history: dict[tuple[TableName, int], Any]) -> dict[tuple[TableName, int], Any]:
    return {key: rows for key, rows in record(reference, "t", "w").items() if key in history}


def test_what_the_extension_leaves_for_ever(catalog: Catalog, spark: SparkSession) -> None:
    """Dead inlined rows, inlined deletes of files that are gone, options of tables and schemas that are gone."""
    build(catalog)
    with attached(catalog, spark) as lake:
        table_id = lake.table("t").info.id
        other = lake.table("w").info.id
        lake.set_option("parquet_compression", "zstd", table="t")
        lake.set_option("parquet_compression", "gzip", table="w")
        lake.drop_table("w")
        lake.table("t").delete("id < 100")
        lake.expire_snapshots(keep_last=1)
        options = {(row.option_name, row.value) for row in lake.options().collect()}
        assert ("parquet_compression", "zstd") in options
        assert ("parquet_compression", "gzip") not in options
    with dumps.opened(catalog) as database:
        for name in database.tables(f"ducklake_inlined_data_{table_id}_"):
            assert database.value(f'SELECT count(*) FROM "{name}" WHERE end_snapshot IS NOT NULL') == 0
        gone = f"""SELECT count(*) FROM ducklake_inlined_delete_{table_id}
                   WHERE file_id NOT IN (SELECT data_file_id FROM ducklake_data_file)"""
        assert database.value(gone) == 0
        assert not database.tables(f"ducklake_inlined_data_{other}_")


def test_by_time_and_by_the_option(file_catalog: Catalog, spark: SparkSession) -> None:
    build(file_catalog)
    with attached(file_catalog, spark) as lake:
        assert lake.expire_snapshots().count() == 0, "there is no option"
        times = [row.snapshot_time for row in lake.snapshots().orderBy("snapshot_id").collect()]
        middle = times[10].replace(tzinfo=UTC)
        told = [row.snapshot_id for row in lake.expire_snapshots(older_than=middle, dry_run=True).collect()]
        assert told == [number for number in range(LAST) if times[number] < times[10]]
        assert lake.expire_snapshots(older_than=timedelta(days=1)).count() == 0
        assert lake.expire_snapshots(older_than="1999-01-01").count() == 0
        lake.set_option("expire_older_than", "1 day")
        assert lake.expire_snapshots().count() == 0
        lake.set_option("expire_older_than", "0 seconds")
        assert lake.expire_snapshots().count() == LAST
        with pytest.raises(penstock.InvalidError, match="it takes an interval without minus"):
            lake.set_option("expire_older_than", "-10 days")
    with file_catalog.reference() as reference:
        reference.execute("CALL lk.set_option('expire_older_than', '-10 days')")
    with attached(file_catalog, spark) as lake:
        with pytest.raises(penstock.InvalidError, match="'-10 days', which is the age of what is yet to come"):
            lake.checkpoint()
        assert len(lake.table("t").read().collect()) > 0


def test_bad_input_changes_nothing(file_catalog: Catalog, spark: SparkSession) -> None:
    build(file_catalog)
    before = dumps.rows(file_catalog)
    with attached(file_catalog, spark) as lake:
        for arguments, match in (
            ({"versions": [1], "older_than": "2020-01-01"}, "takes one of"),
            ({"versions": [1], "keep_last": 1}, "takes one of"),
            ({"keep_last": 0}, "keep_last cannot be 0"),
            ({"versions": ["one"]}, "is no version"),
            ({"versions": [True]}, "is no version"),
        ):
            with leaving_nothing(file_catalog, lake, match):
                lake.expire_snapshots(**arguments)
        for verb in (lake.cleanup_old_files, lake.delete_orphaned_files):
            with leaving_nothing(file_catalog, lake, "not both"):
                verb(older_than="2020-01-01", cleanup_all=True)
        for verb in (lake.expire_snapshots, lake.cleanup_old_files, lake.delete_orphaned_files):
            with leaving_nothing(file_catalog, lake, "part of a transaction"), lake.transaction():
                verb()
        lake.set_option("delete_older_than", "")
        for verb in (lake.cleanup_old_files, lake.delete_orphaned_files):
            with leaving_nothing(file_catalog, lake, "cleanup_all=True"):
                verb()
        lake.set_option("delete_older_than", "2 days")
    for parameters in ({"read_only": True}, {"snapshot_version": LAST}):
        with penstock.attach(file_catalog.uri, spark=spark, **parameters) as lake:
            for verb in (lake.expire_snapshots, lake.cleanup_old_files, lake.delete_orphaned_files):
                with leaving_nothing(file_catalog, lake, "cannot be changed"):
                    verb()
    after = dumps.rows(file_catalog)
    assert {table for table in after if after[table] != before[table]} == {"ducklake_metadata"}


@pytest.mark.parametrize("option", ["expire_older_than", "delete_older_than"])
def test_ages_that_duckdb_takes_and_no_file_has(file_catalog: Catalog, spark: SparkSession, option: str) -> None:
    with file_catalog.build(data_inlining_row_limit=5) as reference:
        reference.execute(*STATEMENTS, f"CALL lk.set_option('{option}', '-10 days')")
    with attached(file_catalog, spark) as lake:
        expires = option == "expire_older_than"
        verbs = (lake.expire_snapshots,) if expires else (lake.cleanup_old_files, lake.delete_orphaned_files)
        for verb in verbs:
            with leaving_nothing(file_catalog, lake, f"option '{option}' has the value '-10 days'"):
                verb()
        lake.set_option(option, "5000 years")
        for verb in verbs:
            assert verb().count() == 0


def test_a_file_that_is_linked_twice_stays(file_catalog: Catalog, spark: SparkSession) -> None:
    """The extension deletes the rows of the other table."""
    linked = f"{file_catalog.directory}/linked.parquet"
    with file_catalog.build() as reference:
        reference.execute(f"COPY (SELECT i AS id FROM range(10) r(i)) TO '{linked}'")
        for table in ("a", "b"):
            reference.execute(
                f"CREATE TABLE {table} (id BIGINT)", f"CALL ducklake_add_data_files('lk', '{table}', '{linked}')"
            )
        reference.execute("DROP TABLE a")
    with attached(file_catalog, spark) as lake:
        lake.expire_snapshots(keep_last=1)
        assert lake.cleanup_old_files(cleanup_all=True).count() == 0
        assert len(lake.table("b").read().collect()) == 10
        lake.drop_table("b")
        lake.expire_snapshots(keep_last=1)
        assert {row.path for row in lake.cleanup_old_files(cleanup_all=True).collect()} == {linked}
        assert not Path(linked).exists()


def test_what_cannot_be_deleted_is_not_forgotten(
    file_catalog: Catalog, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(file_catalog)
    real, refused = file_deletion.delete_file, []

    def refusing(path: str) -> None:
        if not refused or path == refused[0]:
            refused[:] = [path]
            raise PermissionError("no")
        real(path)

    with attached(file_catalog, spark) as lake:
        lake.expire_snapshots(keep_last=1)
        scheduled = {row.path for row in lake.cleanup_old_files(cleanup_all=True, dry_run=True).collect()}
        monkeypatch.setattr(file_deletion, "delete_file", refusing)
        deleted = {row.path for row in lake.cleanup_old_files(cleanup_all=True).collect()}
        assert deleted == scheduled - {*refused}
        assert len(deleted) > 0
        monkeypatch.undo()
        assert [row.path for row in lake.cleanup_old_files(cleanup_all=True).collect()] == refused
        assert lake.cleanup_old_files(cleanup_all=True).count() == 0
    with file_catalog.reference() as reference:
        assert reference.value(f"SELECT count(*) FROM {METADATA}.ducklake_files_scheduled_for_deletion") == 0


def test_files_that_were_gone_before_are_forgotten(file_catalog: Catalog, spark: SparkSession) -> None:
    build(file_catalog)
    with attached(file_catalog, spark) as lake:
        lake.expire_snapshots(keep_last=1)
        [first, *_] = lake.cleanup_old_files(cleanup_all=True, dry_run=True).collect()
        Path(first.path).unlink()
        assert first in lake.cleanup_old_files(cleanup_all=True).collect()
        assert lake.cleanup_old_files(cleanup_all=True).count() == 0


def age(path: Path, hours: float) -> None:
    moment = (datetime.now(UTC) - timedelta(hours=hours)).timestamp()
    os.utime(path, (moment, moment))


def test_orphans(catalog: Catalog, spark: SparkSession) -> None:
    """Only files of DuckLake's names in the folders of tables, old enough, and named by no row in any spelling."""
    build(catalog)
    root = Path(catalog.data_path)
    known = files_of(catalog)
    folder = root / "main" / "t"
    name = "ducklake-01234567-89ab-cdef-0123-456789abcdef"
    orphans = [
        folder / f"{name}.parquet",
        folder / f"{name}-delete.parquet",
        folder / f"{name}-delete.puffin",
        folder / "p=1" / "q=a%2Fb" / f"{name}.parquet",
        root / "main" / "never came to be" / f"{name}.parquet",
    ]
    others = [
        folder / "mine.parquet",
        folder / f"{name}.PARQUET",
        folder / f"{name}.parquet.crc",
        folder / "notes" / f"{name}.parquet",
        root / f"{name}.parquet",
        root / "another lake" / "main" / "t" / f"{name}.parquet",
    ]
    young = folder / "ducklake-11111111-89ab-cdef-0123-456789abcdef.parquet"
    for path in (*orphans, *others, young):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        age(path, 0.5 if path == young else 30)
    for path in known:
        age(root / path, 1000)
    with attached(catalog, spark) as lake:
        assert lake.delete_orphaned_files().count() == 0, "nothing is two days old"
        assert lake.delete_orphaned_files(older_than=timedelta(hours=40)).count() == 0
        planned = {row.path for row in lake.delete_orphaned_files(cleanup_all=True, dry_run=True).collect()}
        assert planned == set(map(str, orphans))
        assert all(path.exists() for path in orphans)
        deleted = {row.path for row in lake.delete_orphaned_files(older_than=timedelta(hours=20)).collect()}
        assert deleted == planned
        assert not any(path.exists() for path in orphans)
        assert all(path.exists() for path in (*others, young))
        assert known <= files_of(catalog)
        assert lake.delete_orphaned_files(cleanup_all=True).count() == 0


def test_a_live_file_under_another_spelling_is_no_orphan(file_catalog: Catalog, spark: SparkSession) -> None:
    """The extension compares names as text, and deletes it."""
    name = "ducklake-01234567-89ab-cdef-0123-456789abcdef.parquet"
    folder = Path(file_catalog.data_path, "main", "t")
    with file_catalog.build() as reference:
        reference.execute("CREATE TABLE t AS SELECT i::BIGINT AS id FROM range(20) r(i)")
        reference.execute(f"COPY (SELECT i AS id FROM range(10) r(i)) TO '{folder}/{name}'")
        reference.execute(f"CALL ducklake_add_data_files('lk', 't', '{folder}/../t//{name}')")
    age(folder / name, 100)
    with attached(file_catalog, spark) as lake:
        assert lake.delete_orphaned_files(cleanup_all=True).count() == 0
        assert len(lake.table("t").read().collect()) == 30


def test_paths_that_lack_their_last_slash(sqlite_catalog: Catalog, spark: SparkSession) -> None:
    """The extension reads such a lake; its live files are no orphans, and what a merge schedules is found."""
    with sqlite_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t (id INTEGER)", *(f"INSERT INTO t VALUES ({n})" for n in range(3)))
    sqlite_catalog.tamper("UPDATE ducklake_schema SET path = 'main'", "UPDATE ducklake_table SET path = 't'")
    files = {Path(sqlite_catalog.data_path, path) for path in files_of(sqlite_catalog)}
    for path in files:
        age(path, 100)
    with attached(sqlite_catalog, spark) as lake:
        assert lake.delete_orphaned_files(cleanup_all=True).count() == 0
        lake.merge_adjacent_files()
        assert {Path(row.path) for row in lake.cleanup_old_files(cleanup_all=True).collect()} == files
        assert len(lake.table("t").read().collect()) == 3
    with sqlite_catalog.reference() as reference:
        assert reference.value("SELECT count(*) FROM t") == 3
