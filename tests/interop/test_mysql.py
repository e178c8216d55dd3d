"""How far the extension itself goes on a MySQL catalog, and lakes that it made there all alone."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from pyspark.sql import SparkSession

from support.catalogs import Catalog, MySQLCatalog
from support.compare import assert_history, assert_same_tables, record
from support.lake_samples import PRIMITIVES, create_table, insert_rows, storable_in_mysql
from support.reference import Reference
from support.servers import MariaDBServer
from support.writers import Writer
from support.writing import attached

NO_JOINS = "only simple deletes"


@pytest.fixture
def lake(mysql_catalog: Catalog) -> Iterator[Reference]:
    """The extension on MySQL, with a table of inlined rows and one of files."""
    with mysql_catalog.reference() as reference:
        reference.execute(
            "CREATE TABLE inlined (id INTEGER, name VARCHAR)",
            "INSERT INTO inlined VALUES (1, 'a'), (2, 'b')",
            "CREATE TABLE filed AS SELECT i AS id, 'n' || i AS name FROM range(50) r(i)",
        )
        yield reference


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO inlined VALUES (3, 'c')",
        "INSERT INTO filed SELECT i, 'n' FROM range(50) r(i)",
        "UPDATE inlined SET name = 'x' WHERE id = 1",
        "UPDATE filed SET name = 'x' WHERE id = 1",
        "DELETE FROM inlined WHERE id = 1",
        "ALTER TABLE filed RENAME name TO title",
        "ALTER TABLE filed DROP COLUMN name",
        "ALTER TABLE inlined ALTER id SET TYPE BIGINT",
        "COMMENT ON TABLE filed IS 'text'",
        "CALL ducklake_flush_inlined_data('lk')",
        "CALL ducklake_expire_snapshots('lk', versions => [1])",
    ],
)
def test_what_the_extension_cannot_do(lake: Reference, statement: str) -> None:
    """The MySQL connector runs no UPDATE or DELETE with a join, and the extension needs one for each of these."""
    with pytest.raises(duckdb.Error, match=NO_JOINS):
        lake.execute(statement)


def test_nested_columns_need_inlining_off(mysql_catalog: Catalog) -> None:
    with mysql_catalog.reference() as reference, pytest.raises(duckdb.Error, match="does not support arrays"):
        reference.execute("CREATE TABLE t (l INTEGER[])")


def test_lake_made_on_mysql(mysql_catalog: Catalog, spark: SparkSession, lake: Reference) -> None:
    lake.execute(
        "DELETE FROM filed WHERE id IN (3, 4)",
        "DELETE FROM filed WHERE id BETWEEN 10 AND 40",
        "ALTER TABLE filed ADD COLUMN note VARCHAR DEFAULT 'none'",
        "CREATE SCHEMA s",
        "CREATE TABLE s.t AS SELECT 1 AS a",
        "CREATE TABLE dropped AS SELECT 1 AS a",
        "DROP TABLE dropped",
        "ALTER TABLE inlined RENAME TO kept",
    )
    lake.close()
    assert_same_tables(mysql_catalog, spark, "filed", "kept", "dropped")


@pytest.mark.parametrize("inlined_rows", [0, 100], ids=["files", "inlined"])
def test_types_on_mysql(mysql_catalog: Catalog, spark: SparkSession, inlined_rows: int) -> None:
    samples = storable_in_mysql(PRIMITIVES) if inlined_rows else PRIMITIVES
    with mysql_catalog.reference(data_inlining_row_limit=inlined_rows) as reference:
        reference.execute(create_table("t", samples), insert_rows("t", samples))
    assert_same_tables(mysql_catalog, spark, "t")


def test_inlined_tables_of_commits_that_are_not_there_yet(
    mysql_catalog: MySQLCatalog, mysql_server: MariaDBServer
) -> None:
    """CREATE TABLE is a commit of its own: a table may be that of another program, which registers it in a moment."""
    database = mysql_catalog.database
    others, left = f"{database}.ducklake_inlined_data_1_1", f"{database}.ducklake_inlined_data_9_9_penstock"
    with Writer(mysql_catalog.uri, mysql_catalog.data_path) as own:
        mysql_server.execute(
            f"CREATE TABLE {others} (row_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, other TEXT)",
            f"INSERT INTO {others} VALUES (0, 1, NULL, 'theirs')",
            f"CREATE TABLE {left} (row_id BIGINT)",
        )
        own.create_table("t")
        own.append("t", 7)
        names = own.catalog.database.tables("ducklake_inlined_data_")
        assert own.catalog.database.query("SELECT other FROM ducklake_inlined_data_1_1") == [("theirs",)]
        [(registered,)] = own.catalog.database.query("SELECT table_name FROM ducklake_inlined_data_tables")
        assert names == {"ducklake_inlined_data_tables", "ducklake_inlined_data_1_1", registered}
        own.append("t", 8)
    with mysql_catalog.reference() as reference:
        assert reference.rows("FROM t ORDER BY id") == [(7,), (8,)]


@pytest.mark.slow
def test_flush_of_rows_and_deletes_that_only_penstock_can_change(
    mysql_catalog: MySQLCatalog, spark: SparkSession
) -> None:
    """The extension inlines no nested rows there and flushes nothing, but shows what was flushed, at every snapshot."""
    rows = "SELECT id, concat('a\\'b/=%$ 🦆', id) AS name, double(if(id % 2 = 0, 'nan', '-0.0')) AS f FROM range({})"
    with attached(mysql_catalog, spark, data_inlining_row_limit=10) as lake:
        table = lake.create_table("t", "id BIGINT, name STRING, f DOUBLE")
        table.append(spark.sql(rows.format("4")))
        table.append(spark.sql(rows.format("100, 200")))
        table.delete("id IN (1, 103)")
        table.update({"name": "''"}, "id IN (2, 150)")
        table.add_column("late DATE DEFAULT DATE'1969-12-31'")
        table.append(spark.sql("SELECT 7L, NULL, NULL, DATE'9999-12-31'"))
    with mysql_catalog.reference() as reference:
        history = record(reference, "t")
    assert_history(mysql_catalog, spark, history)
    with attached(mysql_catalog, spark) as lake:
        newest = lake.current_snapshot().id
        told = sorted(map(repr, lake.table("t").changes(0, newest).collect()))
        [line] = lake.flush_inlined_data().collect()
        assert line.rows_flushed == 7, "rows that were deleted since are part of history"
        assert sorted(map(repr, lake.table("t").changes(0, newest).collect())) == told
        assert lake.flush_inlined_data().collect() == []
        for name in lake._attachment.catalog.database.tables("ducklake_inlined_data_1_"):
            assert lake._attachment.catalog.database.query(f"SELECT count(*) FROM {name}") == [(0,)], name
    with mysql_catalog.reference() as reference:
        shown = record(reference, "t")
        assert {key: shown[key] for key in history} == history
    assert_history(mysql_catalog, spark, history)
