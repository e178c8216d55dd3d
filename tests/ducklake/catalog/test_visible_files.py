"""The files that a snapshot shows, asked of every kind of database."""

from __future__ import annotations

from contextlib import closing

from penstock.ducklake.catalog.opening import AttachOptions, open_catalog
from penstock.ducklake.catalog.snapshots import latest_snapshot
from penstock.ducklake.catalog.table_files import table_sizes
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.catalog.visible_files import FileScope
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
