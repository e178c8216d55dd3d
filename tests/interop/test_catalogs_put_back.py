"""A catalog that a backup takes the place of, while a lake is attached or a transaction is open."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime, timedelta

import pytest

import penstock
from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.catalog.snapshots import latest_snapshot
from support import dumps
from support.catalogs import Catalog
from support.writers import Writer
from support.writing import files_of

ORDERS = "CREATE TABLE orders (id BIGINT)"


def backed_up(catalog: Catalog) -> str:
    """A lake with a backup of its snapshot 1, and a table that was made after it."""
    with catalog.build() as reference:
        reference.execute("CREATE TABLE t AS SELECT range AS id FROM range(15)")
    backup = f"{catalog.target}.backup"
    shutil.copy(catalog.target, backup)
    with catalog.build() as reference:
        reference.execute(ORDERS)
    return backup


def put_back(catalog: Catalog, backup: str) -> None:
    """As `sqlite3 lake.sqlite '.restore backup'` does it: the file stays the same one."""
    with closing(sqlite3.connect(backup)) as source, closing(sqlite3.connect(catalog.target)) as target:
        source.backup(target)


@pytest.mark.parametrize("inlined", [False, True])
@pytest.mark.parametrize(
    "after",
    [
        pytest.param((), id="lower number"),
        pytest.param(("CREATE TABLE salaries (amount BIGINT)",), id="same number, other table"),
        pytest.param(("CREATE TABLE orders (price BIGINT)",), id="same number, other columns"),
        pytest.param((ORDERS, "INSERT INTO orders VALUES (1)"), id="higher number"),
    ],
)
def test_a_transaction_on_a_snapshot_that_is_gone(sqlite_catalog: Catalog, after: Sequence[str], inlined: bool) -> None:
    backup = backed_up(sqlite_catalog)
    files = files_of(sqlite_catalog)
    with Writer(sqlite_catalog.uri, sqlite_catalog.data_path) as writer:
        with pytest.raises(penstock.ConflictError, match="put back to an older"), writer.transaction() as tx:  # noqa: PT012
            writer.stage_file(tx, "t", 1)
            (writer.stage_inlined if inlined else writer.stage_file)(tx, "orders", 666, 667)
            put_back(sqlite_catalog, backup)
            with sqlite_catalog.build() as reference:
                reference.execute(*after)
            before = dumps.rows(sqlite_catalog)
        assert dumps.rows(sqlite_catalog) == before
        assert files_of(sqlite_catalog) == files
        writer.append("t", 100)  # the lake goes on
    with sqlite_catalog.reference() as reference:
        assert reference.rows("SELECT count(*), max(id) FROM t") == [(16, 100)]


def test_the_time_of_a_snapshot_tells_too(catalog: Catalog) -> None:
    """On every database: its number may be that of another snapshot."""
    with Writer(catalog.uri, catalog.data_path) as writer:
        writer.create_table("t")
        database = writer.catalog.database
        with pytest.raises(penstock.ConflictError, match="put back"), writer.transaction() as transaction:  # noqa: PT012
            writer.stage_inlined(transaction, "t", 1)
            _move(database, transaction.staging.base.time - timedelta(hours=1))
        with writer.transaction() as transaction:
            writer.stage_inlined(transaction, "t", 2)
    with catalog.reference() as reference:
        assert reference.rows("FROM t") == [(2,)]


def _move(database: Database, time: datetime) -> None:
    with database.transaction():
        database.execute("UPDATE ducklake_snapshot SET snapshot_time = ? WHERE snapshot_id = 1", [time])


@pytest.fixture(params=["duckdb", "sqlite"])
def file(request: pytest.FixtureRequest) -> Catalog:
    """A catalog that is a file of this machine."""
    made: Catalog = request.getfixturevalue(f"{request.param}_catalog")
    return made


@pytest.mark.parametrize("how", ["renamed", "removed"])
def test_another_file_under_the_name_of_the_catalog(file: Catalog, how: str) -> None:
    """What is written to the one that is open is gone afterwards."""
    backup = backed_up(file)
    files = files_of(file)
    with Writer(file.uri, file.data_path) as writer:
        with pytest.raises(penstock.CatalogError, match="replaced by another"), writer.transaction() as tx:  # noqa: PT012
            writer.stage_file(tx, "t", 100)
            if how == "renamed":
                os.replace(backup, file.target)
            else:
                os.rename(file.target, f"{file.target}.gone")
        for refused in (lambda: writer.append("t", 100), lambda: latest_snapshot(writer.catalog.database)):
            with pytest.raises(penstock.CatalogError, match="attach it again"):
                refused()
        assert files_of(file) == files
        if how == "renamed" and file.kind == "duckdb":  # DuckDB would go on with the old file
            with (
                pytest.raises(penstock.AttachError, match="everywhere in this process"),
                Writer(file.uri, file.data_path) as second,
            ):
                second.append("t", 100)
    if how == "removed":
        os.rename(f"{file.target}.gone", file.target)
    with Writer(file.uri, file.data_path) as writer:
        writer.append("t", 100)
    with file.reference() as reference:
        assert reference.rows("SELECT count(*), max(id) FROM t") == [(16, 100)]


def test_a_catalog_by_a_relative_path_stays_the_same_in_another_folder(
    file: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    backed_up(file)
    monkeypatch.chdir(file.directory)
    uri = file.uri.replace(f"{file.directory}/", "")
    with Writer(uri, file.data_path) as writer:
        monkeypatch.chdir("/")
        writer.append("t", 100)
