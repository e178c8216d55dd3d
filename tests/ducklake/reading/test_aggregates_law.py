"""The law of aggregates, through Spark: from the catalog, they are what the rows themselves give."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

import penstock
from support.aggregates import answered_query
from support.catalogs import DuckDBCatalog
from support.effort import tries
from support.lake_predicates import COLUMNS, PARTITIONINGS, predicates, select

FUNCTIONS = ("count(*)", "count(1)", *(f"{f}({c})" for f in ("count", "min", "max") for c in COLUMNS if c != "st.x"))
aggregates = st.lists(st.sampled_from(FUNCTIONS), min_size=1, max_size=3).map(", ".join)
LAW = settings(max_examples=tries(6, 200), deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[penstock.Lake]:
    """Tables of many small files, of which some have deletes; `t` has inlined rows and partitions, `plain` neither."""
    catalog = DuckDBCatalog(Path(tmp_path_factory.mktemp("law")))
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(f"CREATE TABLE t AS {select(0, 3)}", f"CREATE TABLE plain AS {select(0, 2)}")
        for start, keys in enumerate(PARTITIONINGS):
            reference.execute(f"ALTER TABLE t SET PARTITIONED BY ({keys})", f"INSERT INTO t {select(3, 12)}")
            reference.execute(f"INSERT INTO plain {select(start * 3, start * 3 + 1 + start)}")
        reference.execute("DELETE FROM t WHERE i = 7 AND s = 'a'", "DELETE FROM plain WHERE i = 1000000")
    with catalog.build(data_inlining_row_limit=10) as reference:
        reference.execute(f"INSERT INTO t {select(20, 24)}")
    with penstock.attach(catalog.uri, read_only=True, name="agg", spark=spark) as made:
        yield made


@pytest.mark.parametrize("table", ["t", "plain"])
def test_aggregates_are_those_of_the_rows(lake: penstock.Lake, spark: SparkSession, table: str) -> None:
    def query(functions: str, where: str = "") -> DataFrame:
        return spark.sql(f"SELECT {functions} FROM agg.main.{table}{where}")

    @LAW
    @given(aggregates, st.none() | predicates)
    def law(functions: str, predicate: str | None) -> None:
        answered_query(spark, lambda: query(functions, f" WHERE {predicate}" if predicate else ""))

    law()
    assert answered_query(spark, lambda: query("count(*)"))[1] < lake.table(table).files().count()
