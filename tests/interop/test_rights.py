"""Users who may not do everything on a catalog's server: no rows are missing or too many without an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import psycopg
import pymysql
import pytest
from pyspark.sql import SparkSession

import penstock
from support.catalogs import Catalog, MySQLCatalog
from support.servers import MariaDBServer, PostgresServer
from support.writers import Writer
from support.writing import attached, leaving_nothing


@dataclass(frozen=True)
class Rights:
    """A lake on a server, and what its administrator does there."""

    catalog: Catalog
    uri: str  # for the user, who has no rights yet
    user: str
    everywhere: str  # all tables of the catalog
    administer: Callable[..., None]

    def grant(self, rights: str, on: str | None = None) -> None:
        self.administer(f"GRANT {rights} ON {on or self.everywhere} TO {self.user}")


@pytest.fixture
def postgres_rights(postgres_catalog: Catalog, postgres_server: PostgresServer) -> Iterator[Rights]:
    def administer(*statements: str) -> None:
        with psycopg.connect(postgres_catalog.target, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    administer("CREATE ROLE guest LOGIN")
    uri = postgres_catalog.uri.replace("user=postgres", "user=guest")
    yield Rights(postgres_catalog, uri, "guest", "ALL TABLES IN SCHEMA public", administer)
    administer("DROP OWNED BY guest", "DROP ROLE guest")


@pytest.fixture
def mysql_rights(mysql_catalog: MySQLCatalog, mysql_server: MariaDBServer) -> Rights:
    mysql_server.execute("CREATE OR REPLACE USER guest@localhost")
    uri = mysql_catalog.uri.replace("user=root", "user=guest")
    return Rights(mysql_catalog, uri, "guest@localhost", f"{mysql_catalog.database}.*", mysql_server.execute)


@pytest.fixture(params=["postgres", "mysql"])
def rights(request: pytest.FixtureRequest) -> Rights:
    made: Rights = request.getfixturevalue(f"{request.param}_rights")
    return made


def made_later(rights: Rights, spark: SparkSession, grant: Callable[[], None]) -> None:
    """A table whose inlined rows and deletes are in tables from after the grant."""
    with penstock.attach(rights.catalog.uri, data_path=rights.catalog.data_path, spark=spark) as lake:
        filed = lake.create_table("filed", spark.range(100))
        grant()
        filed.delete("id = 5")
        lake.create_table("small", "id INT").append(spark.sql("SELECT 1 AS id"))


def test_tables_that_were_made_after_the_grant(rights: Rights, spark: SparkSession) -> None:
    def grant() -> None:
        if rights.catalog.kind == "postgres":
            rights.grant("SELECT")
        else:  # where rights on a database hold for all tables that come
            database = rights.everywhere.removesuffix(".*")
            with penstock.attach(rights.catalog.uri, spark=spark) as lake:
                for name in sorted(lake._attachment.catalog.database.tables("ducklake_")):
                    rights.grant("SELECT", f"{database}.{name}")

    made_later(rights, spark, grant)
    with penstock.attach(rights.uri, read_only=True, spark=spark) as lake:
        for name in ("filed", "small"):
            with pytest.raises(
                penstock.CatalogError, match=r"guest.* ducklake_inlined_\w+_\d.*GRANT SELECT ON"
            ) as caught:
                lake.table(name).read().collect()
            assert isinstance(caught.value.__cause__, psycopg.Error | pymysql.MySQLError)
    rights.grant("SELECT")
    with penstock.attach(rights.uri, read_only=True, spark=spark) as lake:
        assert len(lake.table("filed").read().collect()) == 99
        assert len(lake.table("small").read().collect()) == 1


def test_a_writer_who_may_not_make_tables(rights: Rights, spark: SparkSession) -> None:
    """What would be kept in a table that is not there goes to files; tables that are there are used."""
    one = spark.sql("SELECT CAST(1 AS BIGINT) AS id")
    with penstock.attach(rights.catalog.uri, data_path=rights.catalog.data_path, spark=spark) as lake:
        lake.create_table("old", "id BIGINT")
        lake.create_table("filed", spark.range(100))
    if rights.catalog.kind == "postgres":
        rights.administer("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    rights.grant("SELECT, INSERT, UPDATE, DELETE")
    with penstock.attach(rights.uri, spark=spark) as lake:
        tables = lake._attachment.catalog.database.tables("ducklake_")
        lake.table("old").append(one)  # where there is a table for it
        assert lake.table("old").files().count() == 0
        with lake.transaction():
            lake.create_table("new", "id BIGINT").append(one)
        lake.table("filed").delete("id = 5")
        lake.table("filed").update({"id": "-6"}, where="id = 6")
        lake.table("old").add_column("note STRING DEFAULT 'none'")
        lake.table("old").append(spark.sql("SELECT CAST(2 AS BIGINT) AS id, 'x' AS note"))
        assert lake.table("old").files().count() == 1
        assert lake._attachment.catalog.database.tables("ducklake_") == tables
    with rights.catalog.reference() as reference:
        assert reference.rows("FROM old ORDER BY id") == [(1, "none"), (2, "x")]
        assert reference.rows("FROM new") == [(1,)]
        assert reference.rows("SELECT count(*), min(id), count(*) FILTER (id IN (5, 6)) FROM filed") == [(99, -6, 0)]
    rights.grant("CREATE", "SCHEMA public" if rights.catalog.kind == "postgres" else None)
    with penstock.attach(rights.uri, spark=spark) as lake:
        lake.table("new").append(one)
        assert lake.table("new").files().count() == 1
        assert len(lake.table("new").read().collect()) == 2


def test_the_right_to_make_tables_is_asked_for_by_name(rights: Rights) -> None:
    data_path = rights.catalog.data_path
    with Writer(rights.catalog.uri, data_path) as lake:
        lake.create_table("t")
        if rights.catalog.kind == "postgres":
            rights.administer("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        rights.grant("SELECT, INSERT, UPDATE, DELETE")
        grant = r"GRANT CREATE ON SCHEMA public TO guest|GRANT [A-Z, ]*CREATE ON `\w+`\.\* TO 'guest'@'localhost'"
        with Writer(rights.uri, data_path) as guest, pytest.raises(penstock.CatalogError, match=grant):
            guest.create_table("no right to its table of inlined rows")
        database = lake.catalog.database
        assert database.query("SELECT max(snapshot_id), count(*) FROM ducklake_snapshot") == [(1, 2)]
        assert database.query("SELECT table_name FROM ducklake_table") == [("t",)]
        assert database.query("SELECT count(*) FROM ducklake_inlined_data_tables") == [(1,)]


def test_a_reader_attaches_without_read_only(rights: Rights, spark: SparkSession) -> None:
    """To attach writes nothing. What a reader tries to write leaves neither a snapshot nor a file."""
    with attached(rights.catalog, spark) as lake:
        lake.create_table("filed", spark.range(100)).delete("id = 5")
        lake.create_table("small", "id BIGINT").append(spark.range(1))
        lake.create_table("many", spark.range(100)).append(spark.range(100))
    rights.grant("SELECT")
    with penstock.attach(rights.uri, data_path=rights.catalog.data_path, spark=spark) as lake:
        assert len(lake.table("filed").read().collect()) == 99
        assert len(lake.table("small").read().collect()) == 1
        for change in (
            lambda: lake.table("filed").append(spark.range(100)),
            lambda: lake.table("filed").delete("id > 50"),
            lambda: lake.table("small").append(spark.range(1)),
            lambda: lake.table("many").merge_adjacent_files(),
            lambda: lake.expire_snapshots(versions=[1]),
            lambda: lake.drop_table("filed"),
        ):
            with leaving_nothing(rights.catalog, lake, "guest.* GRANT ", penstock.CatalogError):
                change()


def test_who_may_not_forget_files_deletes_none(rights: Rights, spark: SparkSession) -> None:
    with attached(rights.catalog, spark) as lake:
        table = lake.create_table("filed", spark.range(100))
        table.append(spark.range(100))
        table.merge_adjacent_files()
    rights.grant("SELECT")
    with (
        penstock.attach(rights.uri, spark=spark) as lake,
        leaving_nothing(rights.catalog, lake, "ducklake_files_scheduled_for_deletion", penstock.CatalogError),
    ):
        lake.cleanup_old_files(cleanup_all=True)
