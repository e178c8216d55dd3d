"""Partition values and pruning on real lakes that DuckDB's extension wrote, for every type and transform."""

from __future__ import annotations

import json
from typing import Any

import duckdb
import pytest

from penstock.ducklake.catalog.dialects import DUCKDB
from penstock.ducklake.catalog.file_pruning import keep_condition, prunings
from penstock.errors import InvalidError
from penstock.partitioning import (
    Bucket,
    Identity,
    PartitionField,
    PartitionSpec,
    directory,
    directory_names,
    parse_transform,
)
from penstock.predicates import implied_by
from penstock.schema.columns import Column
from penstock.schema.types import parse_type
from support.arrays import spark_array
from support.predicate_samples import POOLS, Sample, duckdb_type, literal, samples, spark_type, stored_sql
from support.spark_logic import Row

CATALOG = "__ducklake_metadata_lk."
CASES = [(name, t) for name in sorted(POOLS) for t in ("identity", "bucket(16)")]
CASES += [(name, t) for name in ("date", "timestamp", "timestamp_ns") for t in ("year", "month", "day", "hour")]
CASES += [(name, t) for name in ("timestamp_s", "timestamp_ms") for t in ("year", "hour")]
CASES += [("timestamptz", t) for t in ("year", "month", "day", "hour")] + [("time", "hour")]
MOST_FILES = 8
LONG_NAMES = 200  # characters of a value that still fit in a directory's name


@pytest.mark.parametrize(("name", "transform"), CASES)
def test_partition_values_and_pruning(lake: duckdb.DuckDBPyConnection, name: str, transform: str) -> None:
    type = parse_type(name)
    stored = [sample for sample in samples(name) if comparable(sample, name, transform)]
    stored = stored[:: 1 if transform.startswith("bucket") else 1 + len(stored) // MOST_FILES]
    partitioned_by = parse_transform(transform).describe("x")
    declared = duckdb_type(name)
    lake.execute(f"CREATE OR REPLACE TABLE t (n INTEGER, x {declared})")
    lake.execute(f"ALTER TABLE t SET PARTITIONED BY ({partitioned_by})")
    rows = [f"({n}, {stored_sql(sample.stored, type)})" for n, sample in enumerate(stored)]
    lake.execute(f"INSERT INTO t SELECT n, CAST(x AS {declared}) FROM (VALUES {', '.join(rows)}, (-1, NULL)) v(n, x)")
    table_id = lake.execute(f"SELECT max(table_id) FROM {CATALOG}ducklake_table").fetchone()[0]
    files = partitions(lake, table_id)

    for n, sample in enumerate(stored):
        expected = parse_transform(transform).apply(sample.stored, type)
        text = sample.text if transform == "identity" else str(expected)
        assert files[n][1] == ("0.0" if text == "-0.0" else text), sample
    assert files[-1][1] is None
    assert_written_alike(name, transform, stored, files)
    assert_pruned_soundly(lake, table_id, name, transform, stored, files)


def comparable(sample: Sample, name: str, transform: str) -> bool:
    if transform != "identity":
        return True
    if name == "blob":
        return sample.stored.decode(errors="replace").encode() == sample.stored
    return not isinstance(sample.stored, str) or (len(sample.stored) < LONG_NAMES and "\0" not in sample.stored)


def assert_written_alike(name: str, transform: str, stored: list[Sample], files: Files) -> None:
    """Penstock would give the same rows the same partition values and directories."""
    type, by = parse_type(name), parse_transform(transform)
    array = spark_array(type, [sample.stored for sample in stored] + [None])
    values = by.values(array, type).to_pylist()
    assert values == [files[n][1] for n in [*range(len(stored)), -1]]
    names = directory_names(PartitionSpec(0, (PartitionField(0, 2, by),)), [Column(2, "x", type, 0)])
    for n, value in zip([*range(len(stored)), -1], values, strict=True):
        assert directory(names, [value]) == files[n][2]


def test_blobs_that_are_not_text_are_refused(lake: duckdb.DuckDBPyConnection) -> None:
    lake.execute("CREATE OR REPLACE TABLE t (x BLOB)")
    lake.execute("ALTER TABLE t SET PARTITIONED BY (x)")
    with pytest.raises(duckdb.InvalidInputException, match="unicode"):
        lake.execute("INSERT INTO t VALUES ('\\xC3\\x28'::BLOB)")
    with pytest.raises(InvalidError, match="bucket"):
        Identity().values(spark_array(parse_type("blob"), [b"\xc3\x28"]), parse_type("blob"))


Files = dict[int, tuple[int, str | None, str]]


def partitions(lake: duckdb.DuckDBPyConnection, table_id: int) -> Files:
    """For each row's number, its file, partition value and directory."""
    sql = f"""SELECT t.n, f.data_file_id, v.partition_value, parse_dirpath(f.path) || '/'
              FROM (SELECT n, parse_filename(filename) AS name FROM t) t
              JOIN {CATALOG}ducklake_data_file f ON f.table_id = ? AND parse_filename(f.path) = t.name
              JOIN {CATALOG}ducklake_file_partition_value v USING (data_file_id)"""
    return {n: (file, value, path) for n, file, value, path in lake.execute(sql, [table_id]).fetchall()}


def assert_pruned_soundly(lake: Any, table_id: int, name: str, transform: str, stored: Any, files: Any) -> None:
    partition_id = lake.execute(f"SELECT max(partition_id) FROM {CATALOG}ducklake_partition_info").fetchone()[0]
    spec = PartitionSpec(partition_id, (PartitionField(0, 2, parse_transform(transform)),))
    column = Column(2, "x", parse_type(name), 0)
    spark = spark_type(name)
    for sample in stored[:: max(1, len(stored) // 4)]:
        for operator in ("=", "<", ">="):
            tree = [operator, ["column", "x"], literal(spark, sample.shown)]
            found = prunings(
                implied_by([json.dumps(tree)], [column]), table_id, [spec], {2: column}, DUCKDB, CATALOG.__add__
            )
            condition = keep_condition(found)
            sql = f"SELECT d.data_file_id FROM {CATALOG}ducklake_data_file d WHERE d.table_id = ? AND {condition.sql}"
            kept = {row[0] for row in lake.execute(sql, [table_id, *condition.parameters]).fetchall()}
            matching = {
                files[n][0] for n, one in enumerate(stored) if Row({("x",): (spark, one.shown)}).matches([tree])
            }
            assert matching <= kept, tree
            if operator == "=" and isinstance(spec.fields[0].transform, Bucket) and hashes(name, sample):
                assert {value for file, value, _ in files.values() if file in kept} == {files[stored.index(sample)][1]}


def hashes(name: str, sample: Sample) -> bool:
    """Whether all that Spark shows as this value is in one bucket."""
    return name != "timestamp_ns" and sample.text != "nan"
