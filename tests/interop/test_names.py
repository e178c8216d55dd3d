"""Names: hostile ones, the same one in two schemas, the same one again after a drop, and new ones for old tables."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import penstock
from support.catalogs import Catalog
from support.compare import TableName, assert_same_tables
from support.reference import identifier

HOSTILE = (
    "Weird \"name", "it's", "a.b", "a/b", "with space", "ünï😀", "SELECT", "100%", "$dollar", "back`tick", "semi;colon",
    "back\\slash", "-- comment", "new\nline", "CamelCase", "0digit", "tab\tname", "{brace}", "[bracket]",
)  # fmt: skip


def test_hostile_column_names(catalog: Catalog, spark: SparkSession) -> None:
    columns = ", ".join(f"{identifier(name)} INTEGER" for name in HOSTILE)
    fields = ", ".join(f"{identifier(name)} INTEGER" for name in HOSTILE)
    numbers = ", ".join(str(number) for number in range(len(HOSTILE)))
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            f"CREATE TABLE t ({columns}, nested STRUCT({fields}))",
            f"INSERT INTO t VALUES ({numbers}, row({numbers}))",
            f"DELETE FROM t WHERE {identifier(HOSTILE[0])} = 1000",
            f"ALTER TABLE t RENAME {identifier(HOSTILE[0])} TO {identifier('re named')}",
        )
    assert_same_tables(catalog, spark, "t")


def test_hostile_column_names_of_inlined_rows(catalog: Catalog, spark: SparkSession) -> None:
    # MySQL's identifiers end with Unicode's first plane, and DuckDB's connector misspells backticks and backslashes.
    names = [n for n in HOSTILE if catalog.kind != "mysql" or (max(n) < "\U00010000" and not {"`", "\\"} & set(n))]
    columns = ", ".join(f"{identifier(name)} INTEGER" for name in names)
    numbers = ", ".join(str(number) for number in range(len(names)))
    with catalog.build() as reference:
        reference.execute(f"CREATE TABLE t ({columns})", f"INSERT INTO t VALUES ({numbers})")
    assert_same_tables(catalog, spark, "t")


def test_hostile_table_and_schema_names(catalog: Catalog, spark: SparkSession) -> None:
    names = [TableName(name, "schema " + name) for name in HOSTILE[:8]] + [TableName(name) for name in HOSTILE[8:]]
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "BEGIN", *(f"CREATE SCHEMA {identifier(name.schema)}" for name in names if name.schema != "main")
        )
        reference.execute(
            *(f"CREATE TABLE {name} AS SELECT {number} AS id" for number, name in enumerate(names)), "COMMIT"
        )
    assert_same_tables(catalog, spark, *names)


def test_same_name_in_two_schemas(catalog: Catalog, spark: SparkSession) -> None:
    with catalog.build(data_inlining_row_limit=1) as reference:
        reference.execute(
            "CREATE SCHEMA s",
            "CREATE TABLE t (a INTEGER)",
            "CREATE TABLE s.t (b VARCHAR)",
            "INSERT INTO t SELECT i FROM range(5) r(i)",
            "INSERT INTO s.t SELECT 'v' || i FROM range(5) r(i)",
            "INSERT INTO s.t VALUES ('inlined')",
            "DELETE FROM s.t WHERE b = 'v1'",
            "DROP TABLE s.t",
            "DROP SCHEMA s",
        )
    assert_same_tables(catalog, spark, "t", TableName("t", "s"))


def test_dropped_and_created_again(catalog: Catalog, spark: SparkSession) -> None:
    with catalog.build(data_inlining_row_limit=2) as reference:
        reference.execute(
            "CREATE TABLE t (a INTEGER)",
            "INSERT INTO t SELECT i FROM range(5) r(i)",
            "INSERT INTO t VALUES (100)",
            "DROP TABLE t",
            "CREATE TABLE t (b VARCHAR)",
            "INSERT INTO t SELECT 'v' || i FROM range(5) r(i)",
            "INSERT INTO t VALUES ('inlined')",
            "CREATE OR REPLACE TABLE t AS SELECT 1.5 AS c",
        )
    assert_same_tables(catalog, spark, "t")


def test_renamed_table(catalog: Catalog, spark: SparkSession) -> None:
    with catalog.build(data_inlining_row_limit=2) as reference:
        reference.execute(
            "CREATE TABLE old (a INTEGER)",
            "INSERT INTO old SELECT i FROM range(5) r(i)",
            "ALTER TABLE old RENAME TO new",
            "INSERT INTO new VALUES (100)",
            "CREATE TABLE old (b VARCHAR)",
            "INSERT INTO old VALUES ('another table')",
        )
    assert_same_tables(catalog, spark, "old", "new")


def test_tables_without_rows(catalog: Catalog, spark: SparkSession) -> None:
    with catalog.build() as reference:
        reference.execute(
            "CREATE TABLE empty (a INTEGER, s STRUCT(b VARCHAR[]))",
            "CREATE TABLE empty_select AS SELECT 1 AS a, 'x' AS b WHERE false",
            "CREATE TABLE emptied AS SELECT i AS a FROM range(20) r(i)",
            "DELETE FROM emptied",
        )
    assert_same_tables(catalog, spark, "empty", "empty_select", "emptied")


def test_names_do_not_depend_on_case(file_catalog: Catalog, spark: SparkSession) -> None:
    """DuckDB finds a table whatever the case of its name; so does Penstock."""
    with file_catalog.build() as reference:
        reference.execute("CREATE SCHEMA Sales", "CREATE TABLE Sales.Orders AS SELECT 1 AS Id")
    with penstock.attach(file_catalog.uri, read_only=True, spark=spark) as lake:
        frame = lake.table("sales.ORDERS").read()
        assert frame.columns == ["Id"]
        assert frame.where("ID = 1").count() == 1
        with pytest.raises(penstock.NotFoundError, match="invoices"):
            lake.table("sales.invoices").read()
