"""Infinite dates and timestamps: what Spark writes of them, DuckDB's extension finds by every filter."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

import penstock
from penstock import Lake
from support.catalogs import Catalog
from support.reference import METADATA, Reference
from support.writing import attached, data_files

pytestmark = pytest.mark.compiled

KINDS = {
    "d": "DATE",
    "t": "TIMESTAMP",
    "z": "TIMESTAMPTZ",
    "s": "TIMESTAMP_S",
    "m": "TIMESTAMP_MS",
    "n": "TIMESTAMP_NS",
}
COLUMNS = ", ".join(f"{name} {kind}" for name, kind in KINDS.items())
WRITABLE = [name for name in KINDS if name != "s"]  # the extension itself writes no infinite timestamp_s to a file
VALUES = ("infinity", "-infinity", "2020-01-01")
FILTERS = {
    "= 'infinity'": [1],
    "= '-infinity'": [2],
    "= '2020-01-01'": [3],
    "> '2000-01-01'": [1, 3],
    "< '2000-01-01'": [2],
    "<= '2020-01-01'": [2, 3],
}
# Spark's way to write the greatest and the least of its timestamps, which are DuckDB's infinities.
FAR = {"d": "DATE'+5881580-07-11'", "z": "TIMESTAMP'+294247-01-10 04:00:54.775807'"}


@pytest.mark.slow
def test_rows_of_the_extension_written_anew(file_catalog: Catalog, spark: SparkSession) -> None:
    """Updated, copied, by partition, by bucket, in the catalog: each table answers like the one that DuckDB made."""
    with file_catalog.build(data_inlining_row_limit=100) as reference:
        reference.execute(f"CREATE TABLE origin (id INT, {COLUMNS})")
        for id, value in enumerate(VALUES, start=1):
            reference.execute(f"INSERT INTO origin VALUES ({id}, {', '.join([repr(value)] * len(KINDS))})")
    buckets = [f"bucket(5, {name})" for name in WRITABLE]
    partitions = {"plain": [], "by_value": WRITABLE, "by_bucket": buckets, "by_second": ["s", "bucket(5, s)"]}
    with attached(file_catalog, spark, data_inlining_row_limit=0) as lake:
        rows = lake.table("origin").read(nanoseconds="truncate").coalesce(1)
        for table, fields in partitions.items():
            _create(lake, table, *fields).append(rows)
        _create(lake, "updated").append(rows)
        lake.table("updated").update({"id": "id"})
        _create(lake, "inlined")
        lake.set_option("data_inlining_row_limit", 100, table="inlined")
        lake.table("inlined").append(rows)
        copied = lake.table("plain").read(nanoseconds="truncate").selectExpr(*map(_text, KINDS))
        assert sorted(copied.collect()) == sorted(rows.selectExpr(*map(_text, KINDS)).collect())
    with file_catalog.reference(data_inlining_row_limit=0) as reference:
        for table in (*partitions, "updated", "inlined"):
            _judge(reference, table)
        assert _bounds(reference, "plain") == {name: {("-infinity", "infinity")} for name in KINDS}
        _compare_with_the_extension(reference, "by_value", WRITABLE)
        _compare_with_the_extension(reference, "by_bucket", buckets)
        values = [(values[0], count) for _, values, count in data_files(reference, "by_second")]
        assert sorted(values) == [("-infinity", 1), ("2020-01-01 00:00:00", 1), ("infinity", 1)]


def test_pruning_by_infinite_bounds(file_catalog: Catalog, spark: SparkSession) -> None:
    """The extension's files with infinity as a bound, also of milliseconds, which Spark's own reader cannot read."""
    columns = ", ".join(f"{name} {KINDS[name]}" for name in WRITABLE)
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(f"CREATE TABLE t (id INT, {columns})")
        for id, value in enumerate(VALUES, start=1):
            reference.execute(f"INSERT INTO t VALUES ({id}, {', '.join([repr(value)] * len(WRITABLE))})")
    with penstock.attach(file_catalog.uri, read_only=True, spark=spark) as lake:
        table = lake.table("t")
        for name in WRITABLE:
            far = FAR.get(name, "TIMESTAMP_NTZ'+294247-01-10 04:00:54.775807'")
            for condition, files in ((f"= {far}", 1), ("> '2000-01-01'", 2), ("= '2020-01-01'", 1)):
                assert table.explain(f"{name} {condition}").kept == files, f"{name} {condition}"
            assert _ids(table.read(nanoseconds="truncate").where(f"{name} = {far} OR {name} < '2000-01-01'")) == [1, 2]


def _create(lake: Lake, table: str, *partitioned_by: str) -> penstock.Table:
    columns = COLUMNS.replace("TIMESTAMP,", "TIMESTAMP_NTZ,").replace("TIMESTAMPTZ", "TIMESTAMP")
    return lake.create_table(table, f"id INT, {columns}", partitioned_by=list(partitioned_by))


def _judge(reference: Reference, table: str) -> None:
    for name in KINDS:
        for condition, ids in FILTERS.items():
            found = reference.value(f"SELECT list(id ORDER BY id) FROM {table} WHERE {name} {condition}")
            assert found == ids, f"{table}: {name} {condition}"


def _compare_with_the_extension(reference: Reference, table: str, fields: list[str]) -> None:
    """Statistics, partition values and directories are those of a table that it fills with the same rows."""
    reference.execute(
        f"CREATE TABLE theirs_{table} AS SELECT * REPLACE (NULL::TIMESTAMP_S AS s) FROM origin WHERE false",
        f"ALTER TABLE theirs_{table} SET PARTITIONED BY ({', '.join(fields)})",
        f"INSERT INTO theirs_{table} SELECT * REPLACE (NULL AS s) FROM origin",
    )
    assert data_files(reference, table) == data_files(reference, f"theirs_{table}")
    ours, theirs = _bounds(reference, table), _bounds(reference, f"theirs_{table}")
    assert {name: ours[name] for name in WRITABLE} == {name: theirs[name] for name in WRITABLE}


def _bounds(reference: Reference, table: str) -> dict[str, set[tuple[str, str]]]:
    """The bounds of columns in the statistics of files and of the whole table."""
    found: dict[str, set[tuple[str, str]]] = {name: set() for name in KINDS}
    for kind in ("ducklake_file_column_stats", "ducklake_table_column_stats"):
        rows = reference.rows(
            f"SELECT column_name, min_value, max_value FROM {METADATA}.{kind} s"
            f" JOIN {METADATA}.ducklake_table t USING (table_id)"
            f" JOIN {METADATA}.ducklake_column c USING (table_id, column_id)"
            f" WHERE table_name = '{table}' AND column_name <> 'id'"
        )
        for name, low, high in rows:
            found[name].add((low, high))
    return found


def _text(name: str) -> str:
    return f"CAST({name} AS STRING) AS {name}"  # Python has no such dates


def _ids(rows: DataFrame) -> list[int]:
    return sorted(row.id for row in rows.select("id").collect())
