"""The law of pruning, through Spark: for any predicate, the rows of the pruned scan are those of the whole table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from pyspark.sql import DataFrame, SparkSession

import penstock
from support.catalogs import DuckDBCatalog
from support.effort import tries
from support.lake_predicates import PARTITIONINGS, predicates, select


@dataclass(frozen=True)
class Rows:
    table: penstock.Table
    whole: DataFrame


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Rows]:
    catalog = DuckDBCatalog(Path(tmp_path_factory.mktemp("law")))
    with catalog.build(data_inlining_row_limit=0) as lake:
        lake.execute(f"CREATE TABLE t AS {select(0, 3)}")
        for keys in PARTITIONINGS:
            lake.execute(f"ALTER TABLE t SET PARTITIONED BY ({keys})", f"INSERT INTO t {select(3, 12)}")
        lake.execute("DELETE FROM t WHERE i = 7 AND s = 'a'")
    with penstock.attach(catalog.uri, read_only=True, name="law", spark=spark) as lake:
        table = lake.table("t")
        whole = table.read(row_ids=True).localCheckpoint()
        whole.createOrReplaceTempView("whole")
        yield Rows(table, whole)


@pytest.mark.parametrize("time_zone", ["UTC", "America/New_York"])
def test_pruned_equals_unpruned(rows: Rows, spark: SparkSession, time_zone: str) -> None:
    @settings(max_examples=tries(20, 250), deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
    @given(predicates)
    def law(predicate: str) -> None:
        pruned = sorted(row.rowid for row in rows.table.read(row_ids=True).where(predicate).select("rowid").collect())
        assert pruned == sorted(row.rowid for row in rows.whole.where(predicate).select("rowid").collect())

    spark.conf.set("spark.sql.session.timeZone", time_zone)
    try:
        law()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


SHAPES = (
    "SELECT rowid FROM {t} WHERE {p}",
    "SELECT x.rowid FROM {t} x LEFT ANTI JOIN (SELECT rowid FROM {t} WHERE {p}) y ON x.rowid = y.rowid",
    "SELECT x.rowid FROM (SELECT rowid, i FROM {t} WHERE {p}) x JOIN {t} y ON x.i <=> y.i AND x.rowid <> y.rowid",
    "SELECT rowid FROM {t} WHERE i >= (SELECT min(i) FROM {t} WHERE {p}) OR s IN (SELECT s FROM {t} WHERE {p})",
)


@pytest.mark.parametrize("shape", SHAPES)
def test_pruned_by_name_equals_unpruned(rows: Rows, spark: SparkSession, shape: str) -> None:
    """The same for plain SQL: tables by their names, in joins and subqueries."""

    @settings(max_examples=tries(6, 150), deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
    @given(predicates)
    def law(predicate: str) -> None:
        pruned, whole = (
            sorted(row.rowid for row in spark.sql(shape.format(t=table, p=predicate)).collect())
            for table in ("law.main.t", "whole")
        )
        assert pruned == whole

    law()


def test_pruning_happens(rows: Rows) -> None:
    """Each kind of predicate leaves files out, so that the law above is not kept by reading everything."""
    for predicate in (
        "s = 'a'", "s LIKE 'zz%'", "i = 7", "i IN (7, 0)", "d > 1e200", "day = DATE '2024-02-29'", "s IS NULL",
        "ts >= TIMESTAMP_NTZ '2024-02-29 00:00:00' AND ts < TIMESTAMP_NTZ '2024-03-01 00:00:00'", "NOT (i <> 7)",
        "u = '00000000-0000-0000-0000-00000000000a'", "big > 9223372036854775808", "st.x = 0",
        "tz < TIMESTAMP '2000-01-01 00:00:00+00:00'", "CAST(ts AS DATE) = DATE '2024-02-29'", "n < -1",
        "s = 'a' OR day = DATE '9999-12-31'", "i BETWEEN 5 AND 9", "year(ts) = 1969",
    ):  # fmt: skip
        explanation = rows.table.explain(predicate)
        assert 0 < explanation.kept < explanation.files, explanation
        assert explanation.reasons, explanation
