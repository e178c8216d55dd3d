"""What is known of tables that rows are written to: as much as a fresh look finds, whoever changed them meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from penstock import InvalidError, NotFoundError
from penstock.ducklake.attachment import Attachment
from penstock.ducklake.catalog.objects import find_table
from penstock.ducklake.catalog.opening import AttachOptions, open_catalog
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
