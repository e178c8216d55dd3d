"""The files that a snapshot shows, asked of every kind of database."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from shutil import copy

import pytest

from penstock.ducklake.catalog.opening import AttachOptions, open_catalog
from penstock.ducklake.catalog.snapshots import latest_snapshot
from penstock.ducklake.catalog.table_files import table_sizes
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.catalog.visible_files import FileScope
from penstock.ducklake.model.files import FileGroup
from penstock.errors import StaleReadError
from support.catalogs import Catalog

PATHS = ("s3://my_bucket/a", "s3://my_bucket/b", "s3://myxbucket/a", "s3://my-bucket/a", "s3://a!b/a", "s3://a!!b/a")


def test_every_store_is_found(catalog: Catalog) -> None:
    with catalog.build() as reference:
        reference.execute("CREATE TABLE t (i BIGINT)")
    with closing(open_catalog(catalog.uri, AttachOptions()).database) as database:
        columns = ("data_file_id", "table_id", "begin_snapshot", "path", "path_is_relative")
        rows = [(number, 1, 1, path, False) for number, path in enumerate(PATHS)]
        database.insert("ducklake_data_file", columns, rows)
        newest = latest_snapshot(database)
        scope = FileScope(database, 1, f"{catalog.data_path}main/t/", At(newest.id), newest.id, len(PATHS))
        assert sorted(scope.other_stores()) == sorted({path for path in PATHS if not path.endswith("/b")})
        # None of them has a size: to the extension that is 0.
        assert table_sizes(database, At(newest.id)) == {1: (len(PATHS), 0, 0, 0)}


def test_kinds_of_files_are_told_apart(catalog: Catalog) -> None:
    ours, theirs = f"ducklake-{0:08}-0000-7000-8000-{0:012}.parquet", "theirs.parquet"
    plain, unknown = (None, ours, None, None), (None, theirs, None, None)
    mapped, partial, encrypted = (7, theirs, None, None), (None, ours, 9, None), (None, ours, None, "key")
    with catalog.build() as reference:
        reference.execute("CREATE TABLE t (i BIGINT)")
    with closing(open_catalog(catalog.uri, AttachOptions()).database) as database:
        columns = ("data_file_id", "table_id", "begin_snapshot", "path_is_relative", "file_size_bytes", "mapping_id",
                   "path", "partial_max", "encryption_key")  # fmt: skip
        alone = ((), (plain,), (unknown,), (mapped,), (partial,), (encrypted,))
        for kinds in (*alone, (plain, unknown), (unknown, plain), (mapped, plain, partial), (plain, encrypted, mapped)):
            rows = [(number, 1, 1, True, 10 + number, *kinds[number % len(kinds)]) for number in range(3 * len(kinds))]
            database.execute("DELETE FROM ducklake_data_file")
            database.insert("ducklake_data_file", columns, rows)
            groups = FileScope(database, 1, "", At(1), 1, 100).groups()
            sizes = {kind: sum(row[4] for row in rows if row[5:] == kind) for kind in kinds}
            made = {
                FileGroup(kind[0], kind is encrypted, kind is partial, False, 0, 3, size, kind is unknown)
                for kind, size in sizes.items()
            }
            assert len(groups) == len(made)
            assert set(groups) == made


def test_a_delete_file_of_no_file_hides_none(sqlite_catalog: Catalog) -> None:
    with sqlite_catalog.build() as reference:
        reference.execute("CREATE TABLE t (i BIGINT)")
    with closing(open_catalog(sqlite_catalog.uri, AttachOptions()).database) as database:
        columns = ("data_file_id", "table_id", "begin_snapshot", "path_is_relative", "file_size_bytes", "path")
        database.insert("ducklake_data_file", columns, [(number, 1, 1, True, 10, f"{number}") for number in range(2)])
        told = ("delete_file_id", "table_id", "begin_snapshot", "data_file_id", "path", "path_is_relative", "format")
        database.insert("ducklake_delete_file", told, [(77, 1, 1, None, "x", True, "parquet")])
        scope = FileScope(database, 1, "", At(1), 1, 100)
        [group] = scope.groups()
        assert group.file_count == len(scope.data_files(group)) == 2


def test_a_catalog_that_was_put_back_is_not_read_as_before(sqlite_catalog: Catalog, tmp_path: Path) -> None:
    """A DataFrame is made for the kinds of files that there were: another history may have others."""
    backup, rows = tmp_path / "backup.sqlite", "INSERT INTO t SELECT i FROM range(30) r(i)"
    with sqlite_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t (i BIGINT)", rows, rows)
    copy(sqlite_catalog.target, backup)
    with closing(open_catalog(sqlite_catalog.uri, AttachOptions()).database) as database:

        def scope(version: int) -> FileScope:
            newest = latest_snapshot(database)
            return FileScope(
                database, 1, f"{sqlite_catalog.data_path}main/t/", At(version), newest.id, newest.next_file_id,
                seen_time=newest.time,
            )  # fmt: skip

        for before, after in (("CALL ducklake_merge_adjacent_files('lk')", ()), (rows, ("DELETE FROM t", rows, rows))):
            with sqlite_catalog.reference(data_inlining_row_limit=0) as reference:
                reference.execute(before)
            old = scope(2)
            [group] = old.groups()
            assert len(old.data_files(group)) == 1
            with closing(sqlite3.connect(backup)) as source, closing(sqlite3.connect(sqlite_catalog.target)) as target:
                source.backup(target)
            with sqlite_catalog.reference(data_inlining_row_limit=0) as reference:
                reference.execute(*after)
            with pytest.raises(StaleReadError, match=r"put back to an older state.*call read\(\) again"):
                old.data_files(group)
            [group] = scope(2).groups()
            assert len(scope(2).data_files(group)) == 1
