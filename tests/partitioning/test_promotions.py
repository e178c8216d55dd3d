"""Files keep the statistics and partition values of the type that their column had: real lakes, after promotions."""

from __future__ import annotations

import json
from datetime import date, datetime
from typing import Any

import duckdb
import pytest

from penstock.ducklake.catalog.dialects import DUCKDB
from penstock.ducklake.catalog.file_pruning import keep_condition, prunings
from penstock.partitioning import PartitionField, PartitionSpec, parse_transform
from penstock.predicates import implied_by
from penstock.schema.columns import Column
from penstock.schema.types import parse_type
from support.predicate_samples import duckdb_type, literal, spark_type

CATALOG = "__ducklake_metadata_lk."
PROMOTIONS = [
    ("boolean", "int32", ["true", "false"]),
    ("int32", "int64", ["5", "-5"]),
    ("uint32", "int64", ["5", "4294967295"]),
    ("uint8", "uint64", ["5", "255"]),
    ("int32", "float64", ["5", "16777217"]),
    ("int64", "float32", ["5", "9007199254740993"]),
    ("int32", "decimal(18,2)", ["5", "-5"]),
    ("decimal(4,1)", "decimal(18,2)", ["5.5", "-0.1"]),
    ("decimal(18,3)", "decimal(38,2)", ["1.005", "1.004", "-1.005"]),
    ("decimal(4,1)", "float64", ["0.1", "5.5"]),
    ("float32", "float64", ["0.1", "1e-45", "3.4e38"]),
    ("int32", "json", ["9", "10"]),
    ("date", "timestamp", ["'2024-01-01'", "'1969-12-31'"]),
    ("timestamp_s", "timestamp", ["'2024-01-01 01:02:03'", "'1969-12-31 23:59:59'"]),
    ("timestamp", "timestamptz", ["'2024-01-01 01:02:03'", "'2024-07-01 23:59:59.5'"]),
]


CASES = [(*one, transform) for one in PROMOTIONS for transform in ("identity", "bucket(16)")]
CASES += [(*one, "year") for one in PROMOTIONS if one[1].startswith("timestamp")]


@pytest.mark.parametrize(("old", "new", "values", "transform"), CASES)
def test_promoted_values_are_still_found(
    lake: duckdb.DuckDBPyConnection, old: str, new: str, values: list[str], transform: str
) -> None:
    lake.execute(f"CREATE OR REPLACE TABLE t (x {duckdb_type(old)})")
    lake.execute(f"ALTER TABLE t SET PARTITIONED BY ({parse_transform(transform).describe('x')})")
    for value in values:
        lake.execute(f"INSERT INTO t VALUES (CAST({value} AS {duckdb_type(old)}))")
    lake.execute(f"ALTER TABLE t ALTER x SET TYPE {duckdb_type(new)}")
    for (value,) in lake.execute("SELECT x FROM t").fetchall():
        assert matches(lake, value) <= kept(lake, new, transform, value), value


def matches(lake: duckdb.DuckDBPyConnection, value: Any) -> set[str]:
    return {
        name
        for (name,) in lake.execute("SELECT DISTINCT parse_filename(filename) FROM t WHERE x = ?", [value]).fetchall()
    }


def kept(lake: duckdb.DuckDBPyConnection, new: str, transform: str, value: Any) -> set[str]:
    column = Column(1, "x", parse_type(new), 0)
    table_id = lake.execute(f"SELECT max(table_id) FROM {CATALOG}ducklake_table").fetchone()[0]
    partition_id = lake.execute(f"SELECT max(partition_id) FROM {CATALOG}ducklake_partition_info").fetchone()[0]
    spec = PartitionSpec(partition_id, (PartitionField(0, 1, parse_transform(transform)),))
    tree = ["=", ["column", "x"], literal(spark_type(new), shown(value))]
    found = prunings(implied_by([json.dumps(tree)], [column]), table_id, [spec], {1: column}, DUCKDB, CATALOG.__add__)
    condition = keep_condition(found)
    sql = f"SELECT parse_filename(d.path) FROM {CATALOG}ducklake_data_file d WHERE d.table_id = ? AND {condition.sql}"
    return {name for (name,) in lake.execute(sql, [table_id, *condition.parameters]).fetchall()}


def shown(value: Any) -> Any:
    if isinstance(value, datetime):
        return (
            round(value.timestamp() * 1_000_000)
            if value.tzinfo
            else (value - datetime(1970, 1, 1)) // (datetime.resolution)
        )
    return (value - date(1970, 1, 1)).days if isinstance(value, date) else value
