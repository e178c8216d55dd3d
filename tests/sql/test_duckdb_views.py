"""Views in DuckDB's dialect that are made here, and queries of them."""

from __future__ import annotations

from pyspark.sql import SparkSession

from penstock import Lake
from support import catalogs
from support.plans import files_read

from .conftest import create_view


def test_views_that_are_made_here(lake: Lake, spark: SparkSession, file_catalog: catalogs.Catalog) -> None:
    """A view in DuckDB's dialect, and queries of it over tables, views and temporary views of Spark's."""
    spark.sql("CREATE TABLE sales.t AS SELECT id, id % 3 AS k FROM range(10)")
    lake.create_view(
        "d", "SELECT k, list(id ORDER BY id)[1] AS first, 7 // 2 AS x FROM t GROUP BY ALL", dialect="duckdb"
    )
    create_view(lake, "s", "SELECT k + 1 AS k FROM sales.t")
    spark.sql("CREATE TEMPORARY VIEW passing AS SELECT 5 AS z")
    try:
        expected = [(0, 0, 3), (1, 1, 3), (2, 2, 3)]
        assert spark.sql("SELECT * FROM sales.d ORDER BY k").collect() == expected
        query = "SELECT max(s.k) AS m, min(z) AS z, count(*) AS n FROM s JOIN d USING (k), passing"
        assert lake.sql(query, dialect="duckdb").collect() == [(2, 5, 7)]
    finally:
        spark.catalog.dropTempView("passing")
    with lake.transaction():
        spark.sql("INSERT INTO sales.t VALUES (-1, 0)")
        assert lake.sql("SELECT first FROM d WHERE k = 0", dialect="duckdb").collect() == [(-1,)]
    lake.close()
    with file_catalog.reference() as reference:
        assert reference.rows("FROM d ORDER BY k") == [(0, -1, 3), (1, 1, 3), (2, 2, 3)]


def test_filters_reach_the_files(lake: Lake, spark: SparkSession) -> None:
    lake.set_option("data_inlining_row_limit", 0)
    spark.sql("CREATE TABLE sales.t (id BIGINT, p INT) PARTITIONED BY (p)")
    for part in range(3):
        spark.sql(f"INSERT INTO sales.t SELECT /*+ COALESCE(1) */ id, {part} FROM range(4)")
    for query, files in (
        ("WITH q AS (FROM t) SELECT sum(id) AS s FROM q WHERE p = 1", 1),
        ("SELECT id FROM t WHERE p IN (0, 1) AND id > (SELECT avg(x.id) FROM t x WHERE x.p = 2)", 3),
        ("FROM t", 3),
    ):
        assert files_read(lake.sql(query, dialect="duckdb"))["ducklake main.t"] == files, query
