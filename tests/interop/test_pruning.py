"""Filters: whatever files pruning leaves out, the rows are those that DuckDB finds."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import penstock
from support import effort
from support.catalogs import Catalog
from support.compare import assert_contents, query
from support.reference import Reference

PREDICATES = (
    "id = 7", "id <> 7", "id < 3", "id <= 3", "id > 25", "id >= 25", "id IN (1, 11, 21)", "id IN (1, NULL)",
    "id NOT IN (1, 2)", "id BETWEEN 8 AND 12", "NOT (id BETWEEN 2 AND 27)", "id = 1 OR name = 'n15'",
    "id > 5 AND id < 15 AND name <> 'n7'", "name = 'n12'", "name LIKE 'n2%'", "name LIKE '%9'", "name > 'n25'",
    "name IS NULL", "name IS NOT NULL AND id < 5", "NOT (name = 'n3')", "name = ''", "day = DATE '2024-01-05'",
    "day >= DATE '2024-01-28'", "day IS NULL", "ts = TIMESTAMP '2024-01-11 10:00:00'", "ts < '2024-01-02'",
    "amount > 40.5", "amount = 0", "amount IS NULL", "price = 7.25", "price < 1", "ok", "NOT ok", "ok IS NULL",
    "ok = true AND id > 20", "big = 18446744073709551615", "big < 5", "CAST(id AS BIGINT) = 9", "id + 1 = 9",
    "CAST(id AS STRING) = '9'", "nested.a = 5", "nested.a IS NULL", "id = -1", "id = 3000000000", "id < 9.5",
    "id = 9.5", "extra = 'default'", "extra = 'given'", "extra IS NULL", "u = '00000000-0000-0000-0000-000000000003'",
    "length(name) = 2", "name IN ('n1', 'n2', NULL)", "id <=> NULL", "name <=> 'n4'", "day IN (DATE '2024-01-03')",
    "year(day) = 2024 AND month(day) = 1 AND dayofmonth(day) = 9", "amount <> 'NaN'", "-id = -4",
    "coalesce(name, 'none') = 'none'",
)  # fmt: skip

# Where DuckDB writes the same thing differently.
DUCKDB = {
    "id <=> NULL": "id IS NOT DISTINCT FROM NULL",
    "name <=> 'n4'": "name IS NOT DISTINCT FROM 'n4'",
    "amount <> 'NaN'": "amount <> 'NaN'::DOUBLE",
}


def _fill(reference: Reference) -> None:
    """Three files and some inlined rows, whose ranges overlap in some columns and not in others."""
    reference.execute(
        "CREATE TABLE t (id INTEGER, name VARCHAR, day DATE, ts TIMESTAMP, amount DOUBLE, price DECIMAL(10,2),"
        " ok BOOLEAN, big UBIGINT, nested STRUCT(a INTEGER), u UUID)",
        *(_insert(start) for start in (0, 10)),
        "ALTER TABLE t ADD COLUMN extra VARCHAR DEFAULT 'default'",
        _insert(20, ", 'given'"),
        "INSERT INTO t SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM range(6)",
        "INSERT INTO t SELECT 5, '', DATE '2024-01-05', NULL, 'nan', 0.5, NULL, 18446744073709551615, {'a': NULL},"
        " '00000000-0000-0000-0000-000000000003', NULL FROM range(6)",
        "INSERT INTO t (id, name) VALUES (9, 'inlined'), (15, 'n15')",
        "DELETE FROM t WHERE id IN (2, 13)",
    )


def _insert(start: int, more: str = "") -> str:
    return (
        "INSERT INTO t SELECT i, 'n' || i, DATE '2024-01-01' + i::INTEGER,"
        " TIMESTAMP '2024-01-01 00:00:00' + INTERVAL (i) DAY + INTERVAL (i) HOUR,"
        " i * 1.5, i + 0.25, CASE WHEN i % 3 < 2 THEN i % 2 = 0 END, i, {'a': i},"
        f" ('00000000-0000-0000-0000-0000000000' || lpad(i::VARCHAR, 2, '0'))::UUID{more}"
        f" FROM range({start}, {start + 10}) r(i)"
    )


PARTITIONINGS = (
    "id", "day(ts), name", "bucket(4, id), bucket(3, name)", "ok, year(day), month(day), day(day)",
    "bucket(5, day), amount",
)  # fmt: skip


def _chosen(partitioning: str | None) -> tuple[str, ...]:
    """Without `--full`, each way to partition takes every third predicate, and the next one begins with the next."""
    if partitioning is None or effort.is_full():
        return PREDICATES
    return PREDICATES[PARTITIONINGS.index(partitioning) % 3 :: 3]


@pytest.mark.parametrize("partitioning", [pytest.param(None, marks=pytest.mark.compiled), *PARTITIONINGS])
def test_predicates(file_catalog: Catalog, spark: SparkSession, partitioning: str | None) -> None:
    with file_catalog.build(data_inlining_row_limit=3) as reference:
        _fill(reference)
        if partitioning:
            reference.execute(
                "CREATE TABLE p AS FROM t LIMIT 0",
                f"ALTER TABLE p SET PARTITIONED BY ({partitioning})",
                "INSERT INTO p FROM t WHERE id < 15 OR id IS NULL",
                "INSERT INTO p FROM t WHERE id >= 15",
            )
        table = "p" if partitioning else "t"
        # A copy, which nothing prunes: after some partitioned inserts (NULLs first) the extension itself loses rows.
        reference.execute(f"CREATE TEMP TABLE copied AS SELECT *, rowid AS row_id FROM {table}")
        expected = {
            p: query(reference, f"SELECT id, name, row_id AS rowid FROM temp.copied WHERE {DUCKDB.get(p, p)}")
            for p in _chosen(partitioning)
        }
        reference.execute("DROP TABLE temp.copied")
    with penstock.attach(file_catalog.uri, read_only=True, spark=spark) as lake:
        frame = lake.table(table).read(row_ids=True)
        for predicate, contents in expected.items():
            assert_contents(frame.where(predicate).select("id", "name", "rowid"), contents, predicate)


def test_pruning_on_every_catalog(catalog: Catalog, spark: SparkSession) -> None:
    """The statistics are compared in the catalog's own SQL: each database must order them as Spark does."""
    chosen = PREDICATES[:34:2]
    with catalog.build(data_inlining_row_limit=3) as reference:
        _fill(reference)
    with catalog.reference() as reference:
        expected = {p: query(reference, f"SELECT id, name, rowid FROM t WHERE {DUCKDB.get(p, p)}") for p in chosen}
    with penstock.attach(catalog.uri, read_only=True, spark=spark) as lake:
        frame = lake.table("t").read(row_ids=True)
        for predicate, contents in expected.items():
            assert_contents(frame.where(predicate).select("id", "name", "rowid"), contents, predicate)
        explanation = lake.table("t").explain("id = 7")
        assert explanation.kept < explanation.files


def test_old_versions_after_a_rewrite(catalog: Catalog, spark: SparkSession) -> None:
    """The newest table statistics know nothing of rows that an old version still shows."""
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t AS SELECT i AS id FROM range(100) r(i)", "DELETE FROM t WHERE id < 90")
        before = query(reference, "FROM t AT (VERSION => 1) WHERE id < 10")
        reference.execute("CALL ducklake_rewrite_data_files('lk', 't', delete_threshold => 0.1)")
    assert before.rows.total() == 10
    with penstock.attach(catalog.uri, read_only=True, spark=spark) as lake:
        assert_contents(lake.table("t").read(version=1).where("id < 10"), before, "version 1")


def test_zero_is_both_zeros(file_catalog: Catalog, spark: SparkSession) -> None:
    """Dictionaries and Bloom filters of files tell them apart; SQL does not."""
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t (f DOUBLE, g FLOAT)", "INSERT INTO t SELECT '-0.0', '0.0' FROM range(2000)")
    with penstock.attach(file_catalog.uri, read_only=True, spark=spark) as lake:
        rows = lake.table("t").read()
        for predicate in ("f = 0.0D", "f >= 0.0D", "g = -0.0F", "g <= -0.0F", "f IN (0.0D, 1.0D)"):
            assert rows.where(predicate).count() == 2000, predicate
