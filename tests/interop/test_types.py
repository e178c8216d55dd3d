"""Every type, at its edges, in Parquet files and as rows inlined in the catalog."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import penstock
from support.catalogs import Catalog
from support.compare import assert_contents, assert_same_tables, query
from support.lake_samples import NESTED, PRIMITIVES, Sample, create_table, insert_rows, storable_in_mysql

pytestmark = pytest.mark.compiled

TYPES = pytest.mark.parametrize("samples", [PRIMITIVES, NESTED], ids=["primitive", "nested"])


@TYPES
def test_types_in_files(catalog: Catalog, spark: SparkSession, samples: tuple[Sample, ...]) -> None:
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(create_table("t", samples), insert_rows("t", samples))
    assert_same_tables(catalog, spark, "t")


@TYPES
def test_types_of_inlined_rows(catalog: Catalog, spark: SparkSession, samples: tuple[Sample, ...]) -> None:
    storable = samples if catalog.inlines_every_value else storable_in_mysql(samples)
    with catalog.build(data_inlining_row_limit=100) as reference:
        reference.execute(create_table("t", storable), insert_rows("t", storable))
        assert reference.rows("FROM ducklake_list_files('lk', 't')") == []
    assert_same_tables(catalog, spark, "t")


def test_nanoseconds_as_numbers(catalog: Catalog, spark: SparkSession) -> None:
    with catalog.build(data_inlining_row_limit=3) as reference:
        reference.execute(
            "CREATE TABLE t (n TIMESTAMP_NS, l TIMESTAMP_NS[])",
            "INSERT INTO t VALUES ('1969-12-31 23:59:59.999999999', ['2024-01-01 00:00:00.123456789', NULL])",
            "INSERT INTO t SELECT TIMESTAMP_NS '2024-01-01 00:00:00.123456789', [] FROM range(5)",
        )
    with catalog.reference() as reference:
        expected = query(reference, "SELECT epoch_ns(n) AS n, [epoch_ns(x) FOR x IN l] AS l FROM t")
    with penstock.attach(catalog.uri, read_only=True, spark=spark) as lake:
        assert_contents(lake.table("t").read(nanoseconds="long"), expected)


def test_text_with_a_nul_character(file_catalog: Catalog, spark: SparkSession) -> None:
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t (s VARCHAR)", "INSERT INTO t VALUES ('a' || chr(0) || 'b'), (chr(0))")
    assert_same_tables(file_catalog, spark, "t")
