"""Deleted rows that Spark's reader leaves out: queries cost no job and no join more, and show what DuckDB shows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import penstock
from support.catalogs import Catalog
from support.compare import assert_contents, query
from support.published import PublishedCatalog
from support.web_server import WebServer
from support.writing import attached

ROWS = 5000
KINDS = ["Parquet", "vectors", "inlined"]
DELETE = "DELETE FROM t WHERE id % 7 = 3 OR id IN (0, 4999)"


def make(catalog: Catalog, kind: str, **parameters: object) -> None:
    """A table at snapshot 2, of one file, of which the next ones delete rows."""
    limit = ROWS if kind == "inlined" else 0
    with catalog.build(data_inlining_row_limit=0, **parameters) as reference:
        reference.execute("CREATE TABLE t (id BIGINT, name VARCHAR, x DOUBLE)")
        reference.execute(f"INSERT INTO t SELECT i, 'n' || i, nullif(i % 5, 0) FROM range({ROWS}) r(i)")
    with catalog.build(data_inlining_row_limit=limit) as reference:
        if kind == "vectors":
            reference.set_option("write_deletion_vectors", True)
        reference.execute(DELETE)
        if kind != "vectors":  # of which the extension forgets the first
            reference.execute("DELETE FROM t WHERE id BETWEEN 100 AND 200")


def jobs(spark: SparkSession, run: Callable[[], Any]) -> int:
    """How many jobs of Spark's a call costs."""
    scheduler: Any = spark.sparkContext._jsc.sc().dagScheduler()
    before = scheduler.numTotalJobs()
    run()
    return int(scheduler.numTotalJobs() - before)


def plan(frame: DataFrame) -> str:
    execution: Any = frame._jdf
    return str(execution.queryExecution().optimizedPlan().toString())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("adaptive", [False, True])
def test_no_job_comes_before_a_query(file_catalog: Catalog, spark: SparkSession, kind: str, adaptive: bool) -> None:
    make(file_catalog, kind)
    spark.conf.set("spark.sql.adaptive.enabled", str(adaptive).lower())
    with penstock.attach(file_catalog.uri, read_only=True, spark=spark) as lake:
        t = lake.table("t")
        for statement in ("count(id + 1)", "sum(x)", "max(lower(name))"):
            with_deletes, without = t.read().selectExpr(statement), t.read(version=2).selectExpr(statement)
            assert jobs(spark, with_deletes.collect) == jobs(spark, without.collect)
            assert "Join" not in plan(with_deletes)
        assert jobs(spark, t.read) == 0


MODES = {
    "compiled": {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"},
    "by row": {"spark.sql.parquet.enableVectorizedReader": "false"},
    "many tasks": {"spark.sql.files.maxPartitionBytes": "5000", "spark.sql.files.openCostInBytes": "0"},
}
QUERIES = [
    "SELECT id, name, x FROM {t}",
    "SELECT count(*) AS rows, count(x) AS xs, CAST(sum(id) AS BIGINT) AS ids, min(name) AS name FROM {t}",
    "SELECT name FROM {t} WHERE id BETWEEN 95 AND 210 AND x = 2",
    "SELECT count(*) AS rows FROM {t} WHERE x IS NULL OR id > 4990",
    "SELECT a.id FROM {t} a WHERE a.id < 30 AND NOT EXISTS (SELECT 1 FROM {t} b WHERE b.id = a.id + 1)",
]


@pytest.mark.parametrize("mode", ["interpreted", *MODES])
@pytest.mark.parametrize("kind", KINDS)
def test_queries(file_catalog: Catalog, spark: SparkSession, kind: str, mode: str) -> None:
    make(file_catalog, kind)
    with file_catalog.reference() as reference:
        expected = [query(reference, text.format(t="t")) for text in QUERIES]
    before = {name: spark.conf.get(name) for name in MODES.get(mode, {})}
    try:
        for name, value in MODES.get(mode, {}).items():
            spark.conf.set(name, value)
        with penstock.attach(file_catalog.uri, read_only=True, spark=spark) as lake:
            lake.table("t").read().createOrReplaceTempView("with_deletes")
            for text, contents in zip(QUERIES, expected, strict=True):
                assert_contents(spark.sql(text.format(t="with_deletes")), contents)
    finally:
        for name, value in before.items():
            spark.conf.set(name, str(value))


def test_views_of_other_sessions_and_cached_rows(file_catalog: Catalog, spark: SparkSession) -> None:
    make(file_catalog, "Parquet")
    with penstock.attach(file_catalog.uri, read_only=True, spark=spark) as lake:
        rows = lake.table("t").read()
        left = rows.count()
        rows.createOrReplaceGlobalTempView("left_rows")
        other = spark.newSession()
        assert other.sql("SELECT count(*), count(DISTINCT id) FROM global_temp.left_rows").first() == (left, left)
        cached = rows.cache()
        assert (cached.count(), cached.where("id % 7 = 3").count()) == (left, 0)
        cached.unpersist()
        spark.catalog.dropGlobalTempView("left_rows")


def test_staged_deletes(file_catalog: Catalog, spark: SparkSession) -> None:
    make(file_catalog, "Parquet")
    with attached(file_catalog, spark) as lake:
        t = lake.table("t")
        before = t.read()
        left = before.count()
        with lake.transaction():
            t.delete("id >= 1000")
            assert "Join" not in plan(t.read())
            assert t.read().agg({"id": "max"}).first() == (999,)
            t.delete("id < 10")
            assert t.read().where("id < 11").collect() == t.read().where("id = 10").collect()
            assert before.count() == left
        assert t.read(version=3).count() == t.read(version=2).count() - 716
    with file_catalog.reference() as reference:
        assert reference.value("SELECT min(id) || ' ' || max(id) FROM t") == "11 999"


def test_pages_that_a_filter_skips(file_catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    """A file with small pages and their bounds: Spark reads single rows out of the middle of it."""
    path = tmp_path / "pages.parquet"
    numbers = pa.table({"id": pa.array(range(10_000), pa.int64())})
    pq.write_table(numbers, path, row_group_size=4000, max_rows_per_page=50, write_page_index=True)
    with attached(file_catalog, spark) as lake:
        t = lake.create_table("t", "id BIGINT")
        t.add_files(str(path))
        t.delete("id % 2 = 1 AND id % 50 < 40")
        rows = t.read(row_ids=True)
        left = [number for number in range(10_000) if not (number % 2 == 1 and number % 50 < 40)]
        for low, high in ((60, 70), (3990, 4012), (4500, 8100), (9999, 9999)):
            found = rows.where(f"id BETWEEN {low} AND {high} OR id = 30").collect()
            wanted = [number for number in left if low <= number <= high or number == 30]
            assert sorted(map(tuple, found)) == [(number, number) for number in wanted]


@pytest.mark.parametrize("encrypted", [False, True])
def test_a_delete_file_that_is_gone(file_catalog: Catalog, spark: SparkSession, encrypted: bool) -> None:
    """No row comes back, in a scan or in the change feed, whatever the session ignores."""
    make(file_catalog, "Parquet", encrypted=encrypted)
    ignored = {f"spark.sql.files.ignore{what}Files": "true" for what in ("Missing", "Corrupt")}
    for name, value in ignored.items():
        spark.conf.set(name, value)
    try:
        with penstock.attach(file_catalog.uri, read_only=True, spark=spark) as lake:
            t = lake.table("t")
            rows, feed = t.read(), t.deletions(3)
            for deletes in Path(file_catalog.data_path).rglob("*-delete.parquet"):
                deletes.unlink()
            for frame in (rows, feed):
                with pytest.raises(Exception, match=r"-delete\.parquet"):
                    frame.collect()
            assert t.read(version=2).count() == ROWS
    finally:
        for name in ignored:
            spark.conf.unset(name)


@pytest.mark.parametrize("kind", ["Parquet", "vectors"])
def test_tasks_share_what_they_read(spark: SparkSession, web: WebServer, kind: str) -> None:
    """However many tasks read a data file, its delete file is fetched once, or by each of those that began first."""
    published = PublishedCatalog(web)
    make(published, kind)
    spark.conf.set("spark.sql.files.maxPartitionBytes", "2000")
    try:
        with penstock.attach(published.uri, spark=spark) as lake:
            rows = lake.table("t").read()
            assert rows.rdd.getNumPartitions() > 5
            web.requests.clear()
            assert rows.count() > 4000
            assert 1 <= len(web.asked(ending="-delete.parquet" if kind == "Parquet" else "-delete.puffin")) <= 2
            web.requests.clear()
            again = lake.table("t").read()  # an executor keeps what it has read
            assert again.where("id % 7 = 3 OR id IN (0, 4999)").isEmpty()
            assert web.asked(ending="-delete.parquet" if kind == "Parquet" else "-delete.puffin") == []
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
