"""Partitioned tables: every transform, values that are awkward in a path, and specs that change."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from support.catalogs import Catalog
from support.compare import assert_same_tables

HOSTILE = (
    "NULL", "''", "'a/b'", "'a=b'", "'100%'", "'%2F'", "'😀'", "'it''s'", "'\"q\"'", "'$HOME'", "' '", "'..'", "'a\\b'",
    "'__HIVE_DEFAULT_PARTITION__'", "'NULL'", "'a+b&c'", "'#x?y'", "'[x]*'", "'é'", "'a:b'", "'{x}'", "'trailing '",
)  # fmt: skip


def test_hostile_identity_values(catalog: Catalog, spark: SparkSession) -> None:
    with catalog.build(data_inlining_row_limit=0) as reference:
        values = ", ".join(f"({number}, {text})" for number, text in enumerate(HOSTILE))
        reference.execute(
            "CREATE TABLE t (id INTEGER, key VARCHAR)",
            "ALTER TABLE t SET PARTITIONED BY (key)",
            f"INSERT INTO t VALUES {values}",
            "DELETE FROM t WHERE id % 5 = 0",
        )
    assert_same_tables(catalog, spark, "t")


@pytest.mark.parametrize(
    "transforms",
    [
        ("year(ts)", "month(ts)", "day(ts)", "hour(ts)"),
        ("bucket(4, id)", "bucket(3, name)"),
        ("bucket(5, ts)", "name"),
        ("day(d)", "ok"),
        ("year(tz)", "hour(tz)"),
    ],
    ids=" ".join,
)
def test_transforms(catalog: Catalog, spark: SparkSession, transforms: tuple[str, ...]) -> None:
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE TABLE t (id BIGINT, name VARCHAR, ts TIMESTAMP, tz TIMESTAMPTZ, d DATE, ok BOOLEAN)",
            f"ALTER TABLE t SET PARTITIONED BY ({', '.join(transforms)})",
            "INSERT INTO t SELECT i, 'n' || i % 4, TIMESTAMP '1969-12-30 22:00:00' + INTERVAL (i * 400) HOUR,"
            " TIMESTAMPTZ '2024-01-01 00:00:00+00' + INTERVAL (i) HOUR, DATE '2024-02-28' + (i % 3)::INTEGER, i % 2 = 0"
            " FROM range(8) r(i)",
            "INSERT INTO t VALUES (NULL, NULL, NULL, NULL, NULL, NULL)",
            "DELETE FROM t WHERE id IN (1, 5)",
        )
    assert_same_tables(catalog, spark, "t")


def test_identity_of_every_kind_of_type(catalog: Catalog, spark: SparkSession) -> None:
    values = {
        "i": ("INTEGER", "-5", "7"),
        "d": ("DATE", "'1969-12-31'", "'2024-01-01'"),
        "b": ("BOOLEAN", "true", "false"),
        "n": ("DECIMAL(10,2)", "-1.50", "2.25"),
        "f": ("DOUBLE", "'nan'", "-0.5"),
        "t": ("TIMESTAMP", "'2024-01-01 01:02:03.5'", "'1969-12-31 23:59:59.999999'"),
        "u": ("UUID", "'00000000-0000-0000-0000-00000000000a'", "'00000000-0000-0000-0000-00000000000b'"),
        "l": ("UBIGINT", "18446744073709551615", "0"),
    }
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute("BEGIN")
        for name, (kind, first, second) in values.items():
            reference.execute(
                f"CREATE TABLE p_{name} (id INTEGER, k {kind})",
                f"ALTER TABLE p_{name} SET PARTITIONED BY (k)",
                f"INSERT INTO p_{name} VALUES (1, {first}), (2, {second}), (3, NULL)",
            )
        reference.execute("COMMIT")
    assert_same_tables(catalog, spark, *(f"p_{name}" for name in values))


def test_changing_partitioning(catalog: Catalog, spark: SparkSession) -> None:
    with catalog.build(data_inlining_row_limit=2) as reference:
        reference.execute(
            "CREATE TABLE t (id INTEGER, region VARCHAR, day DATE)",
            "INSERT INTO t SELECT i, 'r' || i % 2, DATE '2024-01-01' + i::INTEGER FROM range(6) r(i)",
            "ALTER TABLE t SET PARTITIONED BY (region)",
            "INSERT INTO t SELECT i, 'r' || i % 2, DATE '2024-01-01' + i::INTEGER FROM range(6) r(i)",
            "INSERT INTO t VALUES (100, 'inlined', NULL)",
            "ALTER TABLE t SET PARTITIONED BY (month(day), bucket(2, id))",
            "INSERT INTO t SELECT i, 'r' || i % 2, DATE '2024-01-01' + (i * 9)::INTEGER FROM range(6) r(i)",
            "ALTER TABLE t RENAME region TO area",
            "INSERT INTO t VALUES (101, 'inlined', DATE '2025-01-01')",
            "ALTER TABLE t RESET PARTITIONED BY",
            "INSERT INTO t SELECT i, 'r' || i % 2, DATE '2024-01-01' + i::INTEGER FROM range(6) r(i)",
            "DELETE FROM t WHERE id = 3",
        )
    assert_same_tables(catalog, spark, "t")
