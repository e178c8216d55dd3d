"""What a snapshot shows besides rows: Penstock's lists are those of the extension's functions of the same name."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import penstock
from penstock.partitioning import Bucket, Identity
from support.catalogs import Catalog
from support.compare import assert_contents, query
from support.reference import METADATA, Reference

LAKE = (
    "CREATE TABLE t (id INTEGER DEFAULT 3, name VARCHAR NOT NULL, s STRUCT(a INTEGER, l VARCHAR[]))",
    "INSERT INTO t VALUES (1, 'a', NULL), (2, 'b', NULL)",
    "CREATE SCHEMA other",
    "CREATE TABLE other.t AS SELECT 1 AS a",
    "COMMENT ON TABLE t IS 'it''s a table'",
    "COMMENT ON COLUMN t.id IS 'the id'",
    "COMMENT ON TABLE other.t IS 'soon gone'",
    "COMMENT ON TABLE other.t IS NULL",
    "CREATE VIEW v AS SELECT id FROM t",
    "COMMENT ON VIEW v IS 'a view'",
    "CREATE VIEW gone AS SELECT 1 AS x",
    "DROP VIEW gone",
    "CREATE MACRO add_up(a, b := 3) AS a + b",
    "CREATE MACRO numbers(n) AS TABLE SELECT n AS x",
    "DELETE FROM t WHERE id = 1",
    "ALTER TABLE t SET SORTED BY (name DESC NULLS LAST, id)",
    "ALTER TABLE t SET PARTITIONED BY (bucket(4, id), name)",
    "CALL lk.set_option('parquet_compression', 'zstd')",
    "CALL lk.set_option('parquet_compression', 'gzip', schema => 'other')",
    "CALL lk.set_option('parquet_compression', 'lz4', schema => 'other', table_name => 't')",
    "CALL lk.set_option('target_file_size', '1MB', table_name => 't')",
    "BEGIN",
    "CALL lk.set_commit_message('me', 'a message', extra_info => '{\"a\": 1}')",
    "INSERT INTO t VALUES (7, 'z', {'a': 1, 'l': ['x']})",
    "COMMIT",
    'CREATE TABLE "Weird ""name" (a INTEGER)',
    'ALTER TABLE "Weird ""name" RENAME TO renamed',
    "CREATE TABLE dropped AS SELECT 1 AS a",
    "DROP TABLE dropped",
)


@pytest.fixture
def described(catalog: Catalog) -> Catalog:
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(*LAKE)
    return catalog


def test_lists(described: Catalog, spark: SparkSession) -> None:
    functions = {"snapshots": "snapshots", "options": "options", "tables": "table_info"}
    with described.reference() as reference:
        expected = {name: query(reference, f"FROM lk.{function}()") for name, function in functions.items()}
        current = reference.value("SELECT id FROM lk.current_snapshot()")
        kind, _, path = reference.rows("FROM lk.settings()")[0]
    with penstock.attach(described.uri, read_only=True, spark=spark) as lake:
        for name, contents in expected.items():
            assert_contents(getattr(lake, name)(), contents, name)
        assert lake.current_snapshot().id == current
        [settings] = lake.settings().collect()
        assert (settings.catalog_type, settings.data_path) == (kind, path)


def test_files(described: Catalog, spark: SparkSession) -> None:
    """Sizes are unsigned in DuckDB and plain longs in Spark."""
    with described.reference() as reference:
        versions = [version for (version,) in reference.rows("SELECT snapshot_id FROM lk.snapshots()")]
        expected = {v: _listed(reference, v) for v in versions[2:]}
    with penstock.attach(described.uri, read_only=True, spark=spark) as lake:
        for version in (2, versions[-1]):
            actual = sorted(map(tuple, lake.table("t").files(version=version).collect()), key=str)
            assert actual == expected[version], f"version {version}"


def test_table(described: Catalog, spark: SparkSession) -> None:
    with described.reference() as reference:
        ids = dict(reference.rows(f"SELECT column_name, column_id FROM {METADATA}.ducklake_column WHERE table_id = 1"))
    with penstock.attach(described.uri, read_only=True, spark=spark) as lake:
        table = lake.table("t")
        assert [(c.name, c.id, str(c.type)) for c in table.columns] == [
            ("id", ids["id"], "int32"), ("name", ids["name"], "varchar"), ("s", ids["s"], "struct"),
        ]  # fmt: skip
        assert [(c.name, c.id) for c in table.columns[2].children] == [("a", ids["a"]), ("l", ids["l"])]
        assert table.schema.simpleString() == "struct<id:int,name:string,s:struct<a:int,l:array<string>>>"
        assert table.comment == "it's a table"
        assert lake.table("other.t").comment is None
        assert table.column_tags("id") == {"comment": "the id"}
        assert [(k.expression, k.direction, k.null_order) for k in table.sort_order] == [
            ('"name"', "DESC", "NULLS_LAST"),
            ("id", "ASC", "NULLS_LAST"),
        ]
        assert table.partition_spec is not None
        assert [(field.column_id, field.transform) for field in table.partition_spec.fields] == [
            (ids["id"], Bucket(4)),
            (ids["name"], Identity()),
        ]
        assert (table.option("parquet_compression"), table.option("target_file_size")) == ("zstd", "1000000")
        assert lake.table("other.t").option("parquet_compression") == "lz4"
        assert lake.table("other.t").option("parquet_version") == "1"


def test_schemas_views_and_macros(described: Catalog, spark: SparkSession) -> None:
    with penstock.attach(described.uri, read_only=True, spark=spark) as lake:
        assert {schema.name for schema in lake.schemas()} == {"main", "other"}
        [view] = lake.views()
        assert (view.schema, view.name, view.dialect, view.tags["comment"]) == ("main", "v", "duckdb", "a view")
        assert "SELECT id" in view.sql
        macros = {macro.name: macro.implementations[0] for macro in lake.macros()}
        assert {name: (m.type, [p.name for p in m.parameters]) for name, m in macros.items()} == {
            "add_up": ("scalar", ["a", "b"]),
            "numbers": ("table", ["n"]),
        }


def _listed(reference: Reference, version: int) -> list[tuple[object, ...]]:
    return sorted(reference.rows(f"FROM ducklake_list_files('lk', 't', snapshot_version => {version})"), key=str)
