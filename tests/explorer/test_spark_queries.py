"""Samples, changes and queries by Spark: what DuckDB gives, and no more than DuckDB may."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from penstock.errors import InvalidError, UnsupportedError
from penstock.explorer.lake_source import LakeSource
from penstock.explorer.queries import DuckdbQueries, Limits
from penstock.explorer.rendering import table_of
from penstock.explorer.spark_queries import SparkQueries


@pytest.fixture
def queries(shop: LakeSource, spark: SparkSession) -> SparkQueries:
    return SparkQueries(shop, Limits(rows=10), spark)


def test_a_sample_is_of_the_snapshot_that_is_looked_at(shop: LakeSource, queries: SparkQueries) -> None:
    with shop.opened(5) as view:
        found = queries.sample(view, table_of(view, 1), 990, 20)
        assert (len(found.rows), found.more) == (10, False)
        assert found.names == DuckdbQueries(shop).sample(view, table_of(view, 1), 0, 1).names
    with shop.opened() as view:
        assert "channel" in queries.sample(view, table_of(view, 1), 0, 1).names


def test_a_lake_as_it_was_is_asked_as_it_was(shop: LakeSource, spark: SparkSession) -> None:
    then = LakeSource(shop.uri, moment=(5, None))
    with then.opened() as view:
        queries = SparkQueries(then, Limits(rows=10), spark)
        assert queries.select(view, "SELECT count(*) FROM orders").rows == (("1000",),)
        assert "channel" not in queries.sample(view, table_of(view, 1), 0, 1).names
        assert queries.changes(view, table_of(view, 1), 5, 5, 0, 1).more


def test_changes_are_those_that_duckdb_tells(shop: LakeSource, queries: SparkQueries) -> None:
    with shop.opened() as view:
        orders = table_of(view, 1)
        ours, theirs = (one.changes(view, orders, 12, 12, 0, 100) for one in (queries, DuckdbQueries(shop)))
    assert len(ours.rows) == len(theirs.rows) == 38
    assert [row[:4] for row in ours.rows] == [row[:4] for row in theirs.rows]


def test_queries_are_of_duckdbs_dialect_and_the_snapshot(shop: LakeSource, queries: SparkQueries) -> None:
    with shop.opened() as view:
        found = queries.select(view, "SELECT region, count(*) AS n FROM orders GROUP BY ALL ORDER BY region; -- all")
        assert found.names == ("region", "n")
        assert [row[0] for row in found.rows] == ["Africa", "Americas", "Asia", "Europe"]
        assert queries.select(view, "FROM orders").more
    with shop.opened(5) as view:
        assert queries.select(view, "SELECT count(*) FROM orders").rows == (("1000",),)


@pytest.mark.parametrize(
    "sql",
    ["DROP TABLE orders", "FROM read_csv('/etc/passwd')", "SELECT 1; SELECT 2", "FROM parquet.`/etc/passwd`",
     "FROM text.`/etc/passwd`", "FROM spark_catalog.default.x", "SELECT nonexistent FROM orders"],
)  # fmt: skip
def test_nothing_else_can_be_run_or_read(shop: LakeSource, queries: SparkQueries, sql: str) -> None:
    with shop.opened() as view, pytest.raises((InvalidError, UnsupportedError)):
        queries.select(view, sql)


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0, 0.5, 1, 2])
def test_a_query_of_sparks_is_stopped_too(shop: LakeSource, spark: SparkSession, seconds: float) -> None:
    """Whenever that is: between two jobs of a query, Spark has nothing to stop."""
    queries = SparkQueries(shop, Limits(seconds=seconds), spark)
    with shop.opened() as view, pytest.raises(InvalidError, match=f"stopped after {seconds:g} seconds"):
        queries.select(view, "SELECT sum(a.id * b.id * c.id) FROM orders a, orders b, orders c WHERE c.id < 200")
