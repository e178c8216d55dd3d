"""Variants: primitives, objects, arrays, shredded ones, NULL."""

from __future__ import annotations

from pyspark.sql import SparkSession

import penstock
from support.catalogs import Catalog
from support.compare import assert_same_tables

MIXED = (
    "1", "-1::BIGINT", "true", "1.5::DOUBLE", "1.25::DECIMAL(10,2)", "'text'", "''", "DATE '2024-01-01'",
    "TIMESTAMP '2024-01-01 00:00:00.5'", "TIMESTAMPTZ '2024-01-01 00:00:00+02'", "'\\x00\\xFF'::BLOB",
    "{'a': 1, 'b': {'c': [1, NULL, 3]}}", "[]", "[1, 2]",
    "[{'x': 1}, {'x': 2}]", "9223372036854775807", "'nan'::FLOAT", "MAP {'k': 1}",
)  # fmt: skip


def test_mixed_values(catalog: Catalog, spark: SparkSession) -> None:
    """No two rows alike: the values cannot be shredded."""
    with catalog.build(data_inlining_row_limit=0) as reference:
        rows = ", ".join(f"({number}, ({value})::VARIANT)" for number, value in enumerate(MIXED))
        reference.execute(
            "CREATE TABLE t (id INTEGER, v VARIANT)",
            f"INSERT INTO t VALUES {rows}, (100, NULL)",
            "DELETE FROM t WHERE id = 3",
        )
    assert_same_tables(catalog, spark, "t")


def test_shredded_values(catalog: Catalog, spark: SparkSession) -> None:
    """Rows all alike: DuckDB writes their fields as typed columns."""
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE TABLE t (id INTEGER, number VARIANT, object VARIANT, list VARIANT)",
            "INSERT INTO t SELECT i, i::VARIANT, {'a': i, 'b': 'n' || i, 'c': {'d': i * 1.5::DOUBLE}}::VARIANT,"
            " [i, i + 1]::VARIANT FROM range(5) r(i)",
            "INSERT INTO t VALUES (10, NULL, NULL, NULL), (11, 1::VARIANT, {'a': 1, 'z': 9}::VARIANT, []::VARIANT)",
        )
    assert_same_tables(catalog, spark, "t")


def test_uuids(file_catalog: Catalog, spark: SparkSession) -> None:
    """PySpark has no Python value for a UUID in a variant, so the encoded bytes are compared: 0x50 and the UUID's own.

    Alone in its column it is shredded into a typed Parquet column; beside a number it is not.
    """
    uuid = "'00000000-0000-0000-0000-00000000000a'::UUID::VARIANT"
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            f"CREATE TABLE mixed AS SELECT {uuid} AS v UNION ALL SELECT 1::VARIANT UNION ALL SELECT 'text'::VARIANT",
            f"CREATE TABLE shredded AS SELECT {uuid} AS v",
        )
    with penstock.attach(file_catalog.uri, read_only=True, spark=spark) as lake:
        for name in ("mixed", "shredded"):
            values = [bytes(row.v.value) for row in lake.table(name).read().collect()]
            assert bytes([0x50, *[0] * 15, 0x0A]) in values, name


def test_inlined_values(file_catalog: Catalog, spark: SparkSession) -> None:
    """Only a DuckDB catalog keeps variants in its tables; the extension writes files for the others."""
    with file_catalog.build(data_inlining_row_limit=100) as reference:
        rows = ", ".join(f"({number}, ({value})::VARIANT)" for number, value in enumerate(MIXED))
        reference.execute("CREATE TABLE t (id INTEGER, v VARIANT)", f"INSERT INTO t VALUES {rows}, (100, NULL)")
    assert_same_tables(file_catalog, spark, "t")
