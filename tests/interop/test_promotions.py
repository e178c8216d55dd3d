"""Every change of a column's type that the extension accepts, with files of the type before and after."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pyspark.sql import SparkSession

from support.catalogs import Catalog
from support.compare import assert_same_tables
from support.reference import Reference

VALUES = {
    "BOOLEAN": ("true", "false"),
    "TINYINT": ("-5", "127"),
    "SMALLINT": ("-500",),
    "INTEGER": ("-70000",),
    "BIGINT": ("-9007199254740993",),
    "UTINYINT": ("200",),
    "USMALLINT": ("60000",),
    "UINTEGER": ("4000000000",),
    "UBIGINT": ("18446744073709551615",),
    "FLOAT": ("1.1", "'nan'", "'-inf'"),
    "DOUBLE": ("1.1", "1e300", "-0.0"),
    "DECIMAL(5,2)": ("-1.25",),
    "DECIMAL(20,4)": ("12345678.9876",),
    "DATE": ("DATE '1960-01-02'",),
    "TIME": ("TIME '10:00:00.5'",),
    "TIMESTAMP": ("TIMESTAMP '1960-01-02 03:04:05.678901'",),
    "TIMESTAMP_S": ("TIMESTAMP_S '1960-01-02 03:04:05'",),
    "TIMESTAMP_MS": ("TIMESTAMP_MS '1960-01-02 03:04:05.678'",),
    "TIMESTAMP_NS": ("TIMESTAMP_NS '2024-01-02 03:04:05.678901234'",),
    "TIMESTAMPTZ": ("TIMESTAMPTZ '2024-01-02 03:04:05+02'",),
    "VARCHAR": ("'5'", "'[1, 2]'"),
    "BLOB": ("'ab'::BLOB",),
    "UUID": ("'00000000-0000-0000-0000-00000000000a'::UUID",),
    "JSON": ("'{\"a\": 1}'",),
}
INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
UNSIGNED = ("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
FLOATS = ("FLOAT", "DOUBLE")
# What `ALTER TABLE ... SET TYPE` takes; the documentation has only the widening of integers and of FLOAT.
PROMOTIONS = {
    "BOOLEAN": (*INTEGERS, *UNSIGNED),
    "TINYINT": ("SMALLINT", "INTEGER", "BIGINT", *FLOATS, "DECIMAL(5,2)", "DECIMAL(20,4)"),
    "SMALLINT": ("INTEGER", "BIGINT", *FLOATS, "DECIMAL(20,4)"),
    "INTEGER": ("BIGINT", *FLOATS, "DECIMAL(20,4)"),
    "BIGINT": FLOATS,
    "UTINYINT": ("SMALLINT", "BIGINT", "USMALLINT", "UINTEGER", "UBIGINT", *FLOATS, "DECIMAL(5,2)"),
    "USMALLINT": ("INTEGER", "BIGINT", "UINTEGER", "UBIGINT", *FLOATS),
    "UINTEGER": ("BIGINT", "UBIGINT", *FLOATS, "DECIMAL(20,4)"),
    "UBIGINT": FLOATS,
    "FLOAT": ("DOUBLE",),
    "DECIMAL(5,2)": (*FLOATS, "DECIMAL(20,4)"),
    "DECIMAL(20,4)": FLOATS,
    "DATE": ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMPTZ"),
    "TIMESTAMP": ("TIMESTAMP_NS", "TIMESTAMPTZ"),
    "TIMESTAMP_S": ("TIMESTAMP", "TIMESTAMP_MS", "TIMESTAMP_NS"),
    "TIMESTAMP_MS": ("TIMESTAMP", "TIMESTAMP_NS"),
}
TO_JSON = (
    "BOOLEAN",
    *INTEGERS,
    *UNSIGNED,
    *FLOATS,
    "DECIMAL(20,4)",
    "DATE",
    "TIME",
    "TIMESTAMP",
    "VARCHAR",
    "BLOB",
    "UUID",
)


def _promote(reference: Reference, table: str, pairs: Sequence[tuple[str, str]]) -> None:
    """A table with a column a pair, in rows of the old types, then of the new ones; all types change at once."""
    columns = ", ".join(f"c{number} {old}" for number, (old, _) in enumerate(pairs))
    reference.execute(f"CREATE TABLE {table} ({columns})", *_rows(table, [old for old, _ in pairs]))
    changes = [f"ALTER TABLE {table} ALTER c{number} SET TYPE {new}" for number, (_, new) in enumerate(pairs)]
    reference.execute("BEGIN", *changes, "COMMIT", *_rows(table, [new for _, new in pairs]))


def _rows(table: str, types: Sequence[str]) -> list[str]:
    longest = max(len(VALUES[kind]) for kind in types)
    rows = [", ".join((*VALUES[kind], *["NULL"] * longest)[number] for kind in types) for number in range(longest + 1)]
    return [f"INSERT INTO {table} VALUES ({row})" for row in rows]


@pytest.mark.slow
def test_every_promotion_of_files(file_catalog: Catalog, spark: SparkSession) -> None:
    pairs = [(old, new) for old, wider in PROMOTIONS.items() for new in wider]
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        _promote(reference, "t", pairs)
        _promote(reference, "texts", [(old, "JSON") for old in TO_JSON])
    assert_same_tables(file_catalog, spark, "t", "texts")


def test_promotions_of_inlined_rows(catalog: Catalog, spark: SparkSession) -> None:
    pairs = [("TINYINT", "BIGINT"), ("UTINYINT", "UBIGINT"), ("UINTEGER", "UBIGINT")]
    if catalog.inlines_every_value:
        pairs.append(("FLOAT", "DOUBLE"))
    with catalog.build(data_inlining_row_limit=100) as reference:
        _promote(reference, "t", pairs)
    assert_same_tables(catalog, spark, "t")


def test_nested_promotions(catalog: Catalog, spark: SparkSession) -> None:
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE TABLE t (s STRUCT(u UINTEGER, l STRUCT(d DATE)[]))",
            "INSERT INTO t VALUES ({'u': 4000000000, 'l': [{'d': DATE '1960-01-02'}, NULL]}), (NULL)",
            "ALTER TABLE t ALTER s SET TYPE STRUCT(u UBIGINT, l STRUCT(d TIMESTAMP)[])",
            "INSERT INTO t VALUES ({'u': 18446744073709551615, 'l': [{'d': TIMESTAMP '1960-01-02 00:00:01'}]})",
        )
    assert_same_tables(catalog, spark, "t")
