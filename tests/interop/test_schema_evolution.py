"""Columns added, dropped, renamed, promoted and re-added, with files and inlined rows from before and after."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from support.catalogs import Catalog
from support.compare import assert_same_tables

# The same history is written to files and, where it fits, into the catalog.
PLACES = pytest.mark.parametrize("inlined_rows", [0, 100], ids=["files", "inlined"])


@PLACES
def test_added_dropped_renamed_columns(catalog: Catalog, spark: SparkSession, inlined_rows: int) -> None:
    with catalog.build(data_inlining_row_limit=inlined_rows) as reference:
        reference.execute(
            "CREATE TABLE t (a INTEGER, b VARCHAR, c DOUBLE)",
            "INSERT INTO t VALUES (1, 'one', 1.5), (2, 'two', 2.5)",
            "ALTER TABLE t ADD COLUMN d DATE",
            "INSERT INTO t VALUES (3, 'three', 3.5, DATE '2024-01-03')",
            "ALTER TABLE t RENAME b TO bb",
            "ALTER TABLE t DROP COLUMN c",
            "INSERT INTO t VALUES (4, 'four', DATE '2024-01-04')",
            "ALTER TABLE t ADD COLUMN c VARCHAR DEFAULT 'a new c'",
            "INSERT INTO t VALUES (5, 'five', DATE '2024-01-05', 'c of five')",
            "DELETE FROM t WHERE a = 3",
            "UPDATE t SET c = 'updated' WHERE a = 1",
        )
    assert_same_tables(catalog, spark, "t")


@PLACES
def test_swapped_names(catalog: Catalog, spark: SparkSession, inlined_rows: int) -> None:
    with catalog.build(data_inlining_row_limit=inlined_rows) as reference:
        reference.execute(
            "CREATE TABLE t (a INTEGER, b INTEGER)",
            "INSERT INTO t VALUES (1, 2)",
            "ALTER TABLE t RENAME a TO swap",
            "ALTER TABLE t RENAME b TO a",
            "ALTER TABLE t RENAME swap TO b",
            "INSERT INTO t (a, b) VALUES (20, 10)",
        )
    assert_same_tables(catalog, spark, "t")


@PLACES
def test_promoted_types(catalog: Catalog, spark: SparkSession, inlined_rows: int) -> None:
    steps = {
        "i8": ("TINYINT", "SMALLINT", "INTEGER", "BIGINT"),
        "i16": ("SMALLINT", "INTEGER", "BIGINT"),
        "i32": ("INTEGER", "BIGINT"),
        "u8": ("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"),
        "u16": ("USMALLINT", "UINTEGER", "UBIGINT"),
        "u32": ("UINTEGER", "UBIGINT"),
        "f32": ("FLOAT", "DOUBLE"),
    }
    with catalog.build(data_inlining_row_limit=inlined_rows) as reference:
        reference.execute(
            f"CREATE TABLE t ({', '.join(f'{name} {types[0]}' for name, types in steps.items())})",
            "INSERT INTO t VALUES (-1, -2, -3, 200, 50000, 4000000000, 0.1)",
            "INSERT INTO t (i8) VALUES (NULL)",
        )
        for step in range(1, 4):
            changed = {name: types[step] for name, types in steps.items() if step < len(types)}
            reference.execute(
                "BEGIN",
                *(f"ALTER TABLE t ALTER {name} SET TYPE {kind}" for name, kind in changed.items()),
                "COMMIT",
                "INSERT INTO t VALUES (100, 1000, 100000, 255, 65535, 4294967295, 2.5)",
            )
    assert_same_tables(catalog, spark, "t")


def test_promotions_with_one_file_each(catalog: Catalog, spark: SparkSession) -> None:
    """Promotions that jump over a type, and the extremes that only the new type holds."""
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE TABLE t (a TINYINT, b UTINYINT, c UINTEGER, d FLOAT)",
            "INSERT INTO t VALUES (-128, 255, 4294967295, 'nan'), (127, 0, 0, '-0.0')",
            "ALTER TABLE t ALTER a SET TYPE BIGINT",
            "ALTER TABLE t ALTER b SET TYPE UBIGINT",
            "ALTER TABLE t ALTER c SET TYPE UBIGINT",
            "ALTER TABLE t ALTER d SET TYPE DOUBLE",
            "INSERT INTO t VALUES (-9223372036854775808, 18446744073709551615, 18446744073709551615, 1e300)",
        )
    assert_same_tables(catalog, spark, "t")


def test_not_null_and_default_changes_leave_old_rows_alone(catalog: Catalog, spark: SparkSession) -> None:
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE TABLE t (a INTEGER, b INTEGER DEFAULT 1)",
            "INSERT INTO t (a) VALUES (1)",
            "ALTER TABLE t ALTER b SET DEFAULT 2",
            "INSERT INTO t (a) VALUES (2)",
            "ALTER TABLE t ADD COLUMN c INTEGER DEFAULT 3",
            "ALTER TABLE t ALTER c SET DEFAULT 4",
            "INSERT INTO t (a) VALUES (3)",
            "ALTER TABLE t ALTER c DROP DEFAULT",
            "INSERT INTO t (a) VALUES (4)",
            "ALTER TABLE t ALTER a SET NOT NULL",
            "ALTER TABLE t ALTER a DROP NOT NULL",
            "INSERT INTO t VALUES (NULL, NULL, NULL)",
        )
    assert_same_tables(catalog, spark, "t")


def test_all_columns_of_old_files_dropped(catalog: Catalog, spark: SparkSession) -> None:
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE TABLE t (a INTEGER)",
            "INSERT INTO t VALUES (1), (2)",
            "ALTER TABLE t ADD COLUMN b INTEGER DEFAULT 9",
            "ALTER TABLE t DROP COLUMN a",
            "INSERT INTO t VALUES (3)",
        )
    assert_same_tables(catalog, spark, "t")
