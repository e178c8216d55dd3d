"""What the checks of a lake's health find, and that what they advise mends it."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from penstock.ducklake.catalog.catalog_tables import INDEXES
from penstock.ducklake.catalog.opening import Catalog as OpenCatalog
from penstock.ducklake.inspection import thresholds
from penstock.ducklake.inspection.health import Finding, lake_health
from penstock.ducklake.model.names import parse_table_name
from support.catalogs import Catalog
from support.inspection import opened, shown
from support.reference import Reference, identifier, quote

OF_THE_CATALOG = {
    "format version", "small files", "deleted rows", "files without statistics", "inlined rows", "old snapshots",
    "scheduled files", "size of the catalog", "indexes", "options",
}  # fmt: skip
FILES = 20_000


def found(lake: OpenCatalog, *, store: bool = False) -> dict[str, list[Finding]]:
    """The findings that are not fine, by their checks."""
    every = lake_health(lake, shown(lake).at, store=store)
    severities = [one.severity for one in every]
    assert severities == sorted(severities, key=["problem", "advice", "fine"].index)
    assert all(one.message and "\n" not in one.message for one in every)
    bad: dict[str, list[Finding]] = {}
    for one in every:
        assert (one.severity == "fine") <= (not one.remedy and not one.verb), one
        if one.severity != "fine":
            bad.setdefault(one.check, []).append(one)
    return bad


def only(lake: OpenCatalog, check: str, *, store: bool = False) -> Finding:
    """The one thing that is wrong with a lake."""
    bad = found(lake, store=store)
    assert list(bad) == [check], bad
    [one] = bad[check]
    return one


def change(catalog: Catalog, *statements: str, **options: Any) -> None:
    with catalog.reference(**options) as reference:
        reference.execute(*statements)


def test_a_new_lake_is_fine(catalog: Catalog) -> None:
    with catalog.build() as reference:
        reference.execute("CREATE TABLE t AS FROM range(100)", "INSERT INTO t VALUES (1)", "CREATE TABLE empty (i INT)")
    with opened(catalog) as lake:
        every = lake_health(lake, shown(lake).at)
        assert {one.severity for one in every} == {"fine"}, every
        assert {one.check for one in every} == OF_THE_CATALOG | {"orphans", "missing files"}
        assert {one.check for one in lake_health(lake, shown(lake).at, store=False)} == OF_THE_CATALOG


def test_many_small_files_are_to_be_merged(file_catalog: Catalog) -> None:
    name = 'it\'s "a" 🦆 <b>'
    quoted = identifier(name)
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(f"CREATE TABLE {quoted} (i BIGINT)")
        for start in range(15):
            reference.execute(f"INSERT INTO {quoted} FROM range({start}, {start + 20})")
        size = sum(
            row["data_file_size_bytes"] for row in reference.records(f"FROM ducklake_list_files('lk', {quote(name)})")
        )
    with opened(file_catalog) as lake:
        advice = only(lake, "small files")
        assert (advice.schema, advice.table, advice.severity) == ("main", name, "advice")
        assert advice.numbers == {
            "files": 15, "merged": 15, "after": 1, "bytes": size, "target_file_size": 512_000_000
        }  # fmt: skip
        command = shlex.split(advice.remedy)
        assert (command[:4], parse_table_name(command[5])) == (
            ["penstock", "maintain", "LAKE", "merge"],
            ("main", name),
        )
        assert advice.verb == f"lake.merge_adjacent_files({name!r}, schema='main')"
    change(file_catalog, "CALL ducklake_merge_adjacent_files('lk')")
    with opened(file_catalog) as lake:
        assert found(lake) == {}


def test_many_deleted_rows_are_to_be_written_anew(file_catalog: Catalog) -> None:
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE TABLE due AS FROM range(2000) r(i)",
            "DELETE FROM due WHERE i < 1950",
            "CREATE TABLE share AS FROM range(40000) r(i)",
            "DELETE FROM share WHERE i < 12000",
            "CREATE TABLE few AS FROM range(2000) r(i)",
            "DELETE FROM few WHERE i < 1000",
        )
    with opened(file_catalog) as lake:
        due, share = found(lake)["deleted rows"]
        assert (due.table, due.numbers["due_files"], due.numbers["due_rows"]) == ("due", 1, 1950)
        assert (due.remedy, due.verb) == (
            "penstock maintain LAKE rewrite --table main.due", "lake.rewrite_data_files('due', schema='main')",
        )  # fmt: skip
        assert (share.table, share.numbers["share"], share.numbers["due_files"]) == ("share", 0.3, 0)
        assert "CALL system.rewrite_data_files" in share.remedy
        assert share.verb == "lake.rewrite_data_files('share', schema='main', delete_threshold=0.2)"
    change(file_catalog, "CALL ducklake_rewrite_data_files('lk', delete_threshold => 0.2)")
    with opened(file_catalog) as lake:
        assert "deleted rows" not in found(lake)


def test_files_without_statistics(file_catalog: Catalog) -> None:
    insert = "INSERT INTO t FROM range(10)"
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t AS FROM range(100)", insert, "DELETE FROM t WHERE true")
        reference.execute(insert, insert, "CREATE TABLE u AS FROM range(9)")
    with opened(file_catalog) as lake:
        lake.database.execute("DELETE FROM ducklake_file_column_stats WHERE data_file_id IN (0, 2)")
        advice = only(lake, "files without statistics")
        assert (advice.table, advice.numbers["files"], advice.remedy) == (
            "t",
            1,
            "penstock maintain LAKE merge --table main.t",
        )


def test_what_is_old_should_be_gone(catalog: Catalog) -> None:
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t AS FROM range(100)", "INSERT INTO t FROM range(10)")
        reference.execute("CALL ducklake_merge_adjacent_files('lk')")
    with opened(catalog) as lake:
        assert found(lake) == {}
        database, now = lake.database, datetime.now(UTC)
        old = now - thresholds.SNAPSHOT_AGE - timedelta(days=10)
        database.execute("UPDATE ducklake_snapshot SET snapshot_time = ? WHERE snapshot_id < 2", [old])
        advice = only(lake, "old snapshots")
        assert advice.numbers == {"snapshots": 4, "oldest_days": 100}
        assert "expire_older_than is not set" in advice.message
        assert advice.verb == "lake.set_option('expire_older_than', '90 days')"
        database.insert("ducklake_metadata", ("key", "value"), [("expire_older_than", "7 days")])
        advice = only(lake, "old snapshots")
        assert (advice.numbers["due"], advice.remedy) == (2, "penstock maintain LAKE expire")
        # The newest always stays.
        database.execute("UPDATE ducklake_snapshot SET snapshot_time = ?", [old])
        assert only(lake, "old snapshots").numbers["due"] == 3
        database.execute("DELETE FROM ducklake_snapshot WHERE snapshot_id < 3")
        assert found(lake) == {}

        scheduled = [now - timedelta(days=5)]
        database.execute("UPDATE ducklake_files_scheduled_for_deletion SET schedule_start = ?", scheduled)
        advice = only(lake, "scheduled files")
        assert advice.numbers == {"files": 2, "due": 2, "oldest_days": 5}
        assert advice.remedy == "penstock maintain LAKE cleanup"
        database.insert("ducklake_metadata", ("key", "value"), [("delete_older_than", "1 year")])
        assert found(lake) == {}


def test_many_inlined_rows_are_to_be_flushed(file_catalog: Catalog) -> None:
    rows = thresholds.INLINED_ROWS
    with file_catalog.build(data_inlining_row_limit=rows * 2) as reference:
        reference.execute(f"CREATE TABLE t AS FROM range({rows})", "CREATE TABLE few AS FROM range(10)")
    with opened(file_catalog) as lake:
        advice = only(lake, "inlined rows")
        assert (advice.table, advice.numbers) == ("t", {"rows": rows, "deletes": 0})
        assert advice.verb == "lake.flush_inlined_data(table='t', schema='main')"
    change(file_catalog, "CALL ducklake_flush_inlined_data('lk')")
    with opened(file_catalog) as lake:
        assert found(lake) == {}


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "mysql"])
def test_missing_indexes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    catalog: Catalog = request.getfixturevalue(f"{kind}_catalog")
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t AS FROM range(100)")
    with opened(catalog) as lake:
        assert found(lake) == {}
        monkeypatch.setattr("penstock.ducklake.inspection.checks.indexes.INDEXED_FILES", 1)
        advice = only(lake, "indexes")
        assert (advice.numbers, advice.verb) == (
            {"missing": len(INDEXES), "files": 1}, "lake.optimize_catalog()",
        )  # fmt: skip
        for index in INDEXES:
            lake.database.create_index(index.name, index.table, index.columns)
        assert found(lake) == {}


def test_a_catalog_that_grew(file_catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.ducklake.inspection.checks.catalog_tables.CATALOG_ROWS", 5)
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        for _ in range(5):
            reference.execute("CREATE OR REPLACE TABLE t AS FROM range(100)")
        told = reference.value("SELECT count(*) FROM __ducklake_metadata_lk.ducklake_snapshot")
    with opened(file_catalog) as lake:
        advice = only(lake, "size of the catalog")
        assert (advice.numbers["ended_files"], advice.numbers["ducklake_snapshot"]) == (4, told)
        assert advice.remedy == "penstock maintain LAKE expire --older-than '90 days'"


def test_an_older_format(file_catalog: Catalog) -> None:
    with file_catalog.build():
        pass
    with opened(file_catalog) as lake:
        lake.database.execute("UPDATE ducklake_metadata SET value = '0.3' WHERE key = 'version'")
        problem = only(lake, "format version")
        assert problem.severity == "problem"
        assert "automatic_migration=True" in problem.verb


def test_options_that_stand_in_the_way(file_catalog: Catalog) -> None:
    with file_catalog.build() as reference:
        reference.execute("CREATE TABLE t AS FROM range(9)", "CREATE TABLE u AS FROM range(3000)")
        reference.execute("DELETE FROM u WHERE range < 3")
        for name, value in (("auto_compact", False), ("target_file_size", "4KB"), ("rewrite_delete_threshold", 0)):
            table = "t" if name == "auto_compact" else "u"
            reference.execute(f"CALL lk.set_option('{name}', '{value}', table_name => '{table}')")
    with opened(file_catalog) as lake:
        lake.database.insert("ducklake_metadata", ("key", "value"), [("delete_older_than", "")])
        every = found(lake)["options"]
        assert [(one.severity, one.table) for one in every] == [
            ("problem", None), ("advice", "t"), ("advice", "u"), ("advice", "u")
        ]  # fmt: skip
        assert [one.verb for one in every] == [
            "lake.set_option('delete_older_than', '2 days')",
            "lake.set_option('auto_compact', 'true', table='t', schema='main')",
            "lake.set_option('target_file_size', '512MB', table='u', schema='main')",
            "lake.set_option('rewrite_delete_threshold', '0.95', table='u', schema='main')",
        ]


def test_an_option_that_is_not_understood_is_a_problem_and_no_end(file_catalog: Catalog) -> None:
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t AS FROM range(20)", *["INSERT INTO t FROM range(20)"] * 12)
    with opened(file_catalog) as lake:
        lake.database.insert("ducklake_metadata", ("key", "value"), [("target_file_size", "huge")])
        bad = found(lake)
        assert set(bad) == {"small files", "options"}
        assert "'huge', which is not understood" in bad["small files"][0].message


@pytest.mark.parametrize("value", ["garbage", "-10 days", "5000 years", "10000000 years", "2000 years"])
def test_ages_that_nobody_expected(stored: tuple[OpenCatalog, Path], value: str) -> None:
    lake, folder = stored
    age(folder / "ducklake-00000000-0000-7000-8000-000000000001.parquet", 300)
    names = ("delete_older_than", "expire_older_than")
    lake.database.insert("ducklake_metadata", ("key", "value"), [(name, value) for name in names])
    bad = found(lake, store=True)
    assert set(bad) == (set() if value.endswith("years") else {"old snapshots", "scheduled files", "orphans"})
    for check, [one] in bad.items():
        option = names[check == "old snapshots"]
        assert (one.severity, f"option {option!r} has the value {value!r}" in one.message) == ("problem", True)


@pytest.mark.parametrize("value", ["nan", "inf", "a lot"])
def test_thresholds_that_nobody_expected(stored: tuple[OpenCatalog, Path], value: str) -> None:
    lake, _ = stored
    lake.database.insert("ducklake_metadata", ("key", "value"), [("rewrite_delete_threshold", value)])
    bad = found(lake)
    assert set(bad) == {"deleted rows", "options"}
    assert f"option 'rewrite_delete_threshold' has the value {value!r}" in bad["options"][0].message


def test_an_error_that_nobody_expected_ends_one_check(
    stored: tuple[OpenCatalog, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("broken\n password=geheim")

    monkeypatch.setattr("penstock.ducklake.inspection.checks.snapshots.counted", broken)
    problem = only(stored[0], "old snapshots")
    assert problem.message == "this could not be checked: RuntimeError: broken password=***"


@pytest.fixture
def stored(file_catalog: Catalog) -> Iterator[tuple[OpenCatalog, Path]]:
    """A lake with a partitioned table, and the folder of that."""
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE TABLE t (i BIGINT, p VARCHAR)",
            "ALTER TABLE t SET PARTITIONED BY (p)",
            "INSERT INTO t SELECT i, 'a/ =%' FROM range(10) r(i)",
            "INSERT INTO t SELECT i, 'b' FROM range(10) r(i)",
            "DELETE FROM t WHERE i = 3",
            "DELETE FROM t WHERE p = 'b'",
        )
    with opened(file_catalog) as lake:
        yield lake, Path(file_catalog.data_path) / "main" / "t"


def age(path: Path, days: float) -> Path:
    """A file that was written so many days ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * 10)
    moment = time.time() - days * 86400
    os.utime(path, (moment, moment))
    return path


def test_orphans_are_told(stored: tuple[OpenCatalog, Path]) -> None:
    lake, folder = stored
    assert found(lake, store=True) == {}
    name = "ducklake-00000000-0000-7000-8000-00000000000{}.parquet"
    age(folder / "p=b" / name.format(1), 3)
    age(folder.parent / "gone" / name.format(2), 3)
    age(folder / name.format(3), 0.5)  # not due yet
    age(folder / name.format(4), 0)  # a writer may be about to commit it
    age(folder / "notes.txt", 30)  # of somebody else
    advice = only(lake, "orphans", store=True)
    assert advice.numbers == {"files": 3, "due": 2, "bytes": 20, "stored_files": 9}
    assert (advice.remedy, advice.verb) == ("penstock maintain LAKE orphans", "lake.delete_orphaned_files()")


def test_files_that_are_gone_are_told(stored: tuple[OpenCatalog, Path]) -> None:
    lake, folder = stored
    files = [path for path in folder.rglob("*.parquet") if "-delete" not in path.name]
    live = next(path for path in files if "p=b" not in str(path))
    dead = next(path for path in files if "p=b" in str(path))
    dead.unlink()
    problem = only(lake, "missing files", store=True)
    assert (problem.severity, problem.table, problem.numbers) == ("problem", "t", {"files": 1, "live": 0})
    assert "expire" in problem.verb
    live.unlink()
    problem = only(lake, "missing files", store=True)
    assert problem.numbers == {"files": 2, "live": 1}
    assert str(live) in problem.message or str(dead) in problem.message
    assert "restore" in problem.message
    assert found(lake) == {}


def test_linked_files_are_looked_for_where_they_are(file_catalog: Catalog, tmp_path: Path) -> None:
    with file_catalog.build() as reference:
        reference.execute("CREATE TABLE t (i BIGINT)")
        for name in ("a", "b%20b"):
            (tmp_path / "linked").mkdir(exist_ok=True)
            reference.execute(
                f"COPY (SELECT range AS i FROM range(10)) TO '{tmp_path}/linked/{name}.parquet'",
                f"CALL ducklake_add_data_files('lk', 't', '{tmp_path}/linked/{name}.parquet')",
            )
    with opened(file_catalog) as lake:
        assert found(lake, store=True) == {}
        (tmp_path / "linked" / "b%20b.parquet").unlink()
        assert only(lake, "missing files", store=True).numbers == {"files": 1, "live": 1}


def test_a_relative_data_path_from_another_folder(
    sqlite_catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Reference() as reference:
        reference.attach(sqlite_catalog.uri, data_path="or.files/", data_inlining_row_limit=0)
        reference.execute("CREATE TABLE t AS FROM range(10)")
    with opened(sqlite_catalog) as lake:
        assert found(lake, store=True) == {}
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with opened(sqlite_catalog) as lake:
        problem = only(lake, "store", store=True)
        assert problem.severity == "problem"
        assert "files are under or.files/, relative to the folder that a program is started in" in problem.message


def test_a_store_that_cannot_be_reached_is_a_problem(stored: tuple[OpenCatalog, Path]) -> None:
    lake, _ = stored
    far = replace(lake, data_path="gs2://user:geheim@nowhere/lake/")
    problem = only(far, "store", store=True)
    assert problem.severity == "problem"
    assert "geheim" not in repr(problem)
    behind_https = replace(lake, data_path="https://example.org/lake/")
    [web] = [one for one in lake_health(behind_https, shown(lake).at) if one.check == "store"]
    assert (web.severity, "cannot be listed" in web.message) == ("fine", True)


def test_many_files_are_checked_in_seconds(sqlite_catalog: Catalog) -> None:
    with sqlite_catalog.build() as reference:
        reference.execute("CREATE TABLE t (d VARCHAR)")
    with opened(sqlite_catalog) as lake:
        database = lake.database
        with database.transaction():
            database.insert(
                "ducklake_data_file",
                ("data_file_id", "table_id", "begin_snapshot", "path", "path_is_relative", "record_count",
                 "file_size_bytes", "row_id_start"),
                [(n, 1, 1, f"ducklake-00000000-0000-7000-8000-{n:012}.parquet", True, 1000, 1_000_000, 1000 * n)
                 for n in range(FILES)],
            )  # fmt: skip
            database.insert(
                "ducklake_file_column_stats",
                ("data_file_id", "table_id", "column_id", "value_count"),
                [(n, 1, 1, 1000) for n in range(1, FILES)],
            )
        started = time.process_time()
        bad = found(lake, store=True)
        assert time.process_time() - started < 10  # a second, where the machine does nothing else
        assert set(bad) == {"small files", "files without statistics", "indexes", "missing files"}
        assert bad["missing files"][0].numbers["files"] == FILES
        assert bad["files without statistics"][0].numbers["files"] == 1
        assert bad["small files"][0].numbers["merged"] == FILES
