"""Names of lakes in sessions: several at once, clones, new sessions, closed lakes, names that are taken."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

import penstock
from penstock import Lake
from penstock.errors import AttachError, InvalidError, NotFoundError
from penstock.spark.releases import has_views_of_catalogs
from support.catalogs import Catalog
from support.writing import attached


def test_two_lakes_with_the_same_names(spark: SparkSession, tmp_path: Path) -> None:
    uris = [f"ducklake:{tmp_path}/{name}.ducklake" for name in "ab"]
    with penstock.attach(uris[0], name="one", spark=spark), penstock.attach(uris[1], name="two", spark=spark) as two:
        spark.sql("CREATE TABLE one.t AS SELECT 1 AS a")
        spark.sql("CREATE TABLE two.t AS SELECT 2 AS a")
        assert sorted(spark.sql("SELECT * FROM one.t UNION ALL SELECT * FROM two.t").collect()) == [(1,), (2,)]
        with two.transaction():
            spark.sql("INSERT INTO two.t SELECT a FROM one.t")
            spark.sql("INSERT INTO one.t VALUES (7)")
        assert spark.sql("SELECT sum(a) FROM two.t").collect() == [(3,)]
        assert two.sql("SELECT a FROM t WHERE a IN (SELECT a FROM one.t)").collect() == [(1,)]


def test_closed_and_attached_again(spark: SparkSession, tmp_path: Path) -> None:
    before = dict(spark.sparkContext.getConf().getAll())
    first = penstock.attach(f"ducklake:{tmp_path}/a.ducklake", name="sales", spark=spark)
    spark.sql("CREATE TABLE sales.t AS SELECT 1 AS a")
    frame, current = spark.table("sales.t"), spark.catalog.currentCatalog()
    second = penstock.attach(f"ducklake:{tmp_path}/b.ducklake", name="sales", spark=spark)
    spark.sql("CREATE TABLE sales.t AS SELECT 2 AS a")
    assert spark.sql("SELECT * FROM sales.t").collect() == [(2,)]
    first.close()
    assert spark.sql("SELECT * FROM sales.t").collect() == [(2,)]
    with pytest.raises(PySparkException, match=r"closed or detached; attach it again"):
        frame.collect()
    spark.sql("USE sales")
    second.close()
    assert spark.catalog.currentCatalog() == current
    with pytest.raises(AnalysisException):
        spark.sql("SELECT * FROM sales.t")
    assert spark.conf.get("spark.sql.catalog.sales", None) is None
    assert dict(spark.sparkContext.getConf().getAll()) == before
    with penstock.attach(f"ducklake:{tmp_path}/a.ducklake", name="sales", spark=spark):
        assert spark.sql("SELECT * FROM sales.t").collect() == [(1,)]


def test_new_and_cloned_sessions(spark: SparkSession, tmp_path: Path) -> None:
    with penstock.attach(f"ducklake:{tmp_path}/a.ducklake", name="sales", spark=spark) as lake:
        spark.sql("CREATE TABLE sales.t (id BIGINT)")
        other = spark.newSession()
        with pytest.raises(AnalysisException):
            other.sql("SELECT * FROM sales.t")
        lake.register("sales", spark=other)
        other.sql("INSERT INTO sales.t VALUES (1)")
        assert spark.sql("SELECT * FROM sales.t").collect() == [(1,)]
        spark.range(2, 4).write.parquet(f"{tmp_path}/in")

        def write(batch: DataFrame, number: int) -> None:
            batch.writeTo("sales.t").append()
            batch.sparkSession.sql("DELETE FROM sales.t WHERE id = 3")

        stream = spark.readStream.schema("id BIGINT").parquet(f"{tmp_path}/in").writeStream.foreachBatch(write)
        stream.option("checkpointLocation", f"{tmp_path}/c").trigger(availableNow=True).start().awaitTermination(120)
        assert sorted(spark.sql("SELECT * FROM sales.t").collect()) == [(1,), (2,)]


@pytest.mark.parametrize("name", ["", "a.b", "spark_catalog", "taken", "a\nb"])
def test_names_that_cannot_be(spark: SparkSession, tmp_path: Path, name: str) -> None:
    spark.conf.set("spark.sql.catalog.taken", "some.other.Catalog")
    try:
        with pytest.raises(InvalidError, match="cannot be the name of a catalog here"):
            penstock.attach(f"ducklake:{tmp_path}/a.ducklake", name=name, spark=spark)
        with penstock.attach(f"ducklake:{tmp_path}/a.ducklake", spark=spark):
            pass  # the one that failed has let go of the file
        assert spark.conf.get("spark.sql.catalog.taken") == "some.other.Catalog"
    finally:
        spark.conf.unset("spark.sql.catalog.taken")


def test_statements_in_the_lake_alone(spark: SparkSession, tmp_path: Path) -> None:
    with penstock.attach(f"ducklake:{tmp_path}/a.ducklake", spark=spark) as lake:
        lake.sql("CREATE TABLE t AS SELECT id FROM range(5)")
        lake.sql("CREATE SCHEMA crm")
        lake.sql("CREATE TABLE crm.t AS SELECT 'x' AS a")
        spark.range(2).createOrReplaceTempView("few")
        assert lake.sql("SELECT count(*) FROM t JOIN few USING (id)").collect() == [(2,)]
        assert lake.sql("SELECT id FROM t WHERE id > :least", {"least": 3}).collect() == [(4,)]
        assert lake.sql("SELECT a FROM crm.t").collect() == [("x",)]
        assert lake.sql("SELECT count(*) FROM table_insertions('t', 0)").collect() == [(5,)]
        lake.sql("MERGE INTO t USING few ON t.id = few.id WHEN MATCHED THEN DELETE")
        assert lake.table("t").read().count() == 3
        frame = lake.sql("SELECT * FROM t")
        lake.sql("DELETE FROM t")
        assert frame.count() == 0
        for statement in ("SET x = 1", "USE crm", "CREATE TEMP VIEW y AS SELECT 1 AS a"):
            with pytest.raises(InvalidError, match=r"use spark\.sql"):
                lake.sql(statement)
        assert spark.catalog.currentCatalog() == "spark_catalog"
        assert spark.conf.get("spark.sql.catalog.lake", None) is None


def test_lakes_of_a_session(spark: SparkSession, tmp_path: Path) -> None:
    same = penstock.session(lakes={"one": f"ducklake:{tmp_path}/a.ducklake", "two": f"ducklake:{tmp_path}/b.ducklake"})
    try:
        assert same is spark or same._jsparkSession == spark._jsparkSession
        same.sql("CREATE TABLE one.t AS SELECT 1 AS a")
        same.sql("CREATE TABLE two.t AS SELECT a + 1 AS a FROM one.t")
        assert spark.sql("SELECT * FROM two.t").collect() == [(2,)]
    finally:
        for name in ("one", "two"):
            for suffix in ("", ".lake"):
                spark.conf.unset(f"spark.sql.catalog.{name}{suffix}")


def test_read_only_and_pinned(spark: SparkSession, tmp_path: Path) -> None:
    uri = f"ducklake:{tmp_path}/a.ducklake"
    with penstock.attach(uri, name="sales", spark=spark):
        spark.sql("CREATE TABLE sales.t AS SELECT 1 AS a")
        spark.sql("INSERT INTO sales.t VALUES (2)")
    with penstock.attach(uri, name="sales", spark=spark, snapshot_version=1):
        assert spark.sql("SELECT * FROM sales.t").collect() == [(1,)]
    with penstock.attach(uri, name="sales", spark=spark, read_only=True):
        for statement in (
            "INSERT INTO sales.t VALUES (3)",
            "DELETE FROM sales.t",
            "CREATE TABLE sales.u (a INT)",
            "DROP TABLE sales.t",
            "TRUNCATE TABLE sales.t",
            "CALL sales.system.set_option('parquet_version', '2')",
            *(["CREATE VIEW sales.v AS SELECT 1 AS a"] if has_views_of_catalogs(spark.version) else []),
        ):
            with pytest.raises(InvalidError, match="read_only=True and cannot be changed"):
                spark.sql(statement)
        assert spark.sql("SELECT count(*) FROM sales.t").collect() == [(2,)]
    with pytest.raises(NotFoundError), penstock.attach(uri, name="sales", spark=spark) as lake:
        lake.table("nope")


def test_a_lake_that_took_a_name_over_can_be_closed(
    duckdb_catalog: Catalog, sqlite_catalog: Catalog, spark: SparkSession
) -> None:
    with attached(duckdb_catalog, spark, name="sales") as one:
        one.sql("CREATE TABLE t AS SELECT 1 AS a")
        spark.sql("USE sales")
        with attached(sqlite_catalog, spark, name="sales"):
            pass
        spark.sql("USE spark_catalog")
        assert spark.sql("SHOW CATALOGS").where("catalog = 'sales'").count() == 0
        assert one.sql("SELECT * FROM t").collect() == [(1,)]


def test_a_lake_without_a_name_takes_nobodys(
    duckdb_catalog: Catalog, sqlite_catalog: Catalog, spark: SparkSession
) -> None:
    with attached(duckdb_catalog, spark) as one, attached(sqlite_catalog, spark, name="lake") as two:
        one.sql("CREATE TABLE t AS SELECT 'one' AS a")
        two.sql("CREATE TABLE t AS SELECT 'two' AS a")
        assert one.sql("SELECT * FROM lake.t").collect() == [("two",)]
        one.sql("DELETE FROM lake.t")
        assert one.sql("SELECT * FROM t").collect() == [("one",)]


def test_functions_of_sparks_beside_a_lake(lake: Lake, spark: SparkSession) -> None:
    lake.sql("CREATE TABLE t AS SELECT array(1, 2) AS items")
    assert lake.sql("SELECT e.col FROM t, LATERAL explode(t.items) e").collect() == [(1,), (2,)]
    spark.sql("USE sales")
    try:
        assert spark.sql("SELECT * FROM VALUES (1) v(x), LATERAL stack(1, x + 1) s").collect() == [(1, 2)]
    finally:
        spark.sql("USE spark_catalog")


def test_a_session_whose_lakes_cannot_all_be_attached_has_none(spark: SparkSession, tmp_path: Path) -> None:
    good = f"ducklake:{tmp_path}/a.ducklake"
    with pytest.raises(AttachError):
        penstock.session(lakes={"one": good, "bad": "ducklake:nothing_like_this:x"})
    with pytest.raises(AnalysisException):
        spark.sql("SHOW SCHEMAS IN one").collect()
    with penstock.attach(good, name="one", spark=spark):
        assert spark.sql("SHOW SCHEMAS IN one").collect() == [("main",)]
