"""What is known of tables that rows are written to: as much as a fresh look finds, whoever changed them meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from penstock import InvalidError, NotFoundError
from penstock.ducklake.attachment import Attachment
from penstock.ducklake.catalog.objects import find_table
from penstock.ducklake.catalog.opening import AttachOptions, open_catalog
from penstock.ducklake.catalog.remembered_answers import Moment
from penstock.ducklake.catalog.snapshots import latest_snapshot
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.catalog.written_tables import KnownTables, WrittenTable, written_table
from penstock.ducklake.table import Table
from support.catalogs import Catalog

# By the extension, each after a look at the table.
CHANGES = (
    "ALTER TABLE t ADD COLUMN b INTEGER",
    "ALTER TABLE t RENAME COLUMN b TO c",
    "ALTER TABLE t ALTER COLUMN c SET DATA TYPE BIGINT",
    "ALTER TABLE t ALTER COLUMN c SET DEFAULT 5",
    "INSERT INTO t VALUES (1, 1)",
    "ALTER TABLE t ALTER COLUMN c SET NOT NULL",
    "ALTER TABLE t ALTER COLUMN c DROP NOT NULL",
    "ALTER TABLE t SET PARTITIONED BY (bucket(4, id))",
    "ALTER TABLE t RESET PARTITIONED BY",
    "ALTER TABLE t SET SORTED BY (c DESC)",
    "ALTER TABLE t RESET SORTED BY",
    "ALTER TABLE t DROP COLUMN c",
    "INSERT INTO t VALUES (7)",
    "DROP TABLE t; CREATE TABLE t (id BIGINT, other VARCHAR)",
    "ALTER TABLE t RENAME TO u; CREATE TABLE t (third DATE)",
    "DROP SCHEMA s CASCADE; CREATE SCHEMA s; CREATE TABLE s.t (id BIGINT)",
)


@pytest.fixture(params=["sqlite", "postgres"])
def shared(request: pytest.FixtureRequest) -> Catalog:
    """A catalog that the extension and Penstock have open at the same time."""
    made: Catalog = request.getfixturevalue(f"{request.param}_catalog")
    return made


@pytest.fixture
def attachment(shared: Catalog) -> Iterator[Attachment]:
    """A lake without Spark: what asks for it fails."""
    with shared.build() as reference:
        reference.execute("CREATE TABLE t (id BIGINT)", "CREATE SCHEMA s", "CREATE TABLE s.t (id BIGINT)")
    no_spark: Any = None
    attachment = Attachment(open_catalog(shared.uri, AttachOptions()), no_spark)
    yield attachment
    attachment.catalog.database.close()


def fresh(attachment: Attachment, schema: str) -> WrittenTable:
    database, snapshot = attachment.catalog.database, latest_snapshot(attachment.catalog.database)
    at = At(snapshot.id)
    return written_table(database, at, find_table(database, at, attachment.catalog.data_path, schema, "t"))


def known(tables: KnownTables, attachment: Attachment, schema: str) -> WrittenTable:
    database, data_path = attachment.catalog.database, attachment.catalog.data_path
    return tables.find(database, latest_snapshot(database), data_path, schema, "t")


def test_a_change_of_the_extensions_is_seen(shared: Catalog, attachment: Attachment) -> None:
    tables = attachment.known_tables
    with shared.reference() as reference:
        for change in CHANGES:
            before = [known(tables, attachment, schema) for schema in ("main", "s")]
            assert known(tables, attachment, "main") is before[0]
            reference.execute(*change.split("; "))
            after = [known(tables, attachment, schema) for schema in ("main", "s")]
            assert after == [fresh(attachment, schema) for schema in ("main", "s")]
            assert (after == before) is change.startswith("INSERT")


def test_rows_fit_the_table_as_it_is_by_now(shared: Catalog, attachment: Attachment) -> None:
    table = Table(attachment, "main", "t")
    with shared.reference() as reference:
        table.append([(1,)])
        reference.execute("ALTER TABLE t ADD COLUMN name VARCHAR")
        with pytest.raises(InvalidError, match=r"has 2 columns \(id, name\) and each row has 1"):
            table.append([(2,)])
        table.append([(2, "two")])
        reference.execute("ALTER TABLE t RENAME TO u")
        with pytest.raises(NotFoundError, match=r"table main\.t does not exist"):
            table.append([(3, "three")])
        assert sorted(reference.rows("FROM u")) == [(1, None), (2, "two")]


def test_a_backup_in_the_lakes_place_is_looked_at_anew(shared: Catalog, attachment: Attachment) -> None:
    tables, database = KnownTables(), attachment.catalog.database
    newest = latest_snapshot(database)
    Table(attachment, "main", "t").append([(1,)])
    found = known(tables, attachment, "main")
    older = tables.find(database, newest, attachment.catalog.data_path, "main", "t")
    assert older == found
    assert older is not found


def test_a_backup_that_went_on_is_another_lake(attachment: Attachment, shared: Catalog) -> None:
    tables, database = attachment.known_tables, attachment.catalog.database
    with shared.reference() as reference:
        Table(attachment, "main", "t").append([(1,)])
        found = known(tables, attachment, "main")
        reference.execute("INSERT INTO t VALUES (2)")
        assert known(tables, attachment, "main") is found
        newest = latest_snapshot(database)
        # As if an hour had been lost, and as many snapshots been made since.
        database.execute("UPDATE ducklake_column SET column_name = 'other' WHERE column_name = 'id'")
        earlier = database.time_parameter(newest.time - timedelta(hours=1))
        database.execute("UPDATE ducklake_snapshot SET snapshot_time = ?", [earlier])
        reference.execute("INSERT INTO t VALUES (3)")
        assert latest_snapshot(database).schema_version == newest.schema_version
        assert known(tables, attachment, "main") == fresh(attachment, "main")
        assert known(tables, attachment, "main") != found


def test_own_commits_need_no_question(attachment: Attachment, shared: Catalog) -> None:
    table = Table(attachment, "main", "t")
    table.append([(0,)])
    for number in range(1, 4):
        found = attachment.known_tables._known
        assert found is not None
        newest = latest_snapshot(attachment.catalog.database)
        assert found.moment == Moment(newest.id, newest.time)
        table.append([(number,)])
    with shared.reference() as reference:
        assert sorted(reference.rows("SELECT id FROM t")) == [(0,), (1,), (2,), (3,)]
