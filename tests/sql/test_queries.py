"""Queries by name: one snapshot for each, older ones on demand, row ids, changes, caches; pruned as `read` prunes."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from penstock import Lake
from penstock.errors import InvalidError, NotFoundError
from penstock.spark.jvm import query_execution
from penstock.spark.releases import has_views_of_catalogs
from support.catalogs import Catalog
from support.compare import assert_contents, query
from support.plans import files_read
from support.writing import attached

from .conftest import Sql, functions_in_from


def plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().toString())


@pytest.mark.compiled  # Spark's own list of tables needs it
def test_names(lake: Lake, spark: SparkSession, sql: Sql) -> None:
    sql("CREATE NAMESPACE sales.`crm $/`")
    sql("CREATE TABLE sales.orders AS SELECT 1 AS a")
    sql("CREATE TABLE sales.`crm $/`.`odd.name 🦆` AS SELECT 2 AS `a.b`")
    assert sql("SELECT * FROM sales.ORDERS") == sql("SELECT * FROM sales.main.orders") == [(1,)]
    assert sql("SELECT `a.b` FROM sales.`crm $/`.`odd.name 🦆`") == [(2,)]
    spark.range(1).createOrReplaceTempView("beside")
    assert lake.sql("SELECT a, id FROM orders, beside").collect() == [(1, 0)]
    assert spark.table("sales.orders").collect() == [(1,)]
    sql("USE sales.`crm $/`")
    try:
        assert sql("SELECT * FROM `odd.name 🦆`") == [(2,)]
        assert sql("SELECT current_catalog(), current_schema()") == [("sales", "`crm $/`")]
    finally:
        sql("USE spark_catalog.default")
    assert {row.namespace for row in spark.sql("SHOW NAMESPACES IN sales").collect()} == {"main", "`crm $/`"}
    assert [table.name for table in spark.catalog.listTables("sales.main")] == ["orders"]
    assert [column.name for column in spark.catalog.listColumns("sales.main.orders")] == ["a"]
    assert spark.catalog.tableExists("sales.main.orders")
    assert not spark.catalog.tableExists("sales.main.nope")


def test_older_snapshots(lake: Lake, spark: SparkSession, sql: Sql) -> None:
    sql("CREATE TABLE sales.t AS SELECT 1 AS a")
    first = lake.current_snapshot()
    sql("ALTER TABLE sales.t ADD COLUMN b STRING")
    sql("INSERT INTO sales.t VALUES (2, 'x')")
    assert sql(f"SELECT * FROM sales.t VERSION AS OF {first.id}") == [(1,)]
    time = first.time.strftime("%Y-%m-%d %H:%M:%S.%f")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert sql(f"SELECT * FROM sales.t TIMESTAMP AS OF '{time}'") == [(1,)]
    assert spark.read.option("versionAsOf", first.id).table("sales.t").collect() == [(1,)]
    both = f"SELECT n.a, o.a FROM sales.t n LEFT JOIN sales.t VERSION AS OF {first.id} o ON n.a = o.a ORDER BY n.a"
    assert sql(both) == [(1, 1), (2, None)]
    with pytest.raises(NotFoundError, match="99"):
        sql("SELECT * FROM sales.t VERSION AS OF 99")
    with pytest.raises(InvalidError, match="'latest' is no snapshot's number"):
        sql("SELECT * FROM sales.t VERSION AS OF 'latest'")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        sql("SELECT * FROM sales.t VERSION AS OF 0")


def test_an_option_that_nobody_would_look_at_is_an_error(lake: Lake, spark: SparkSession, sql: Sql) -> None:
    sql("CREATE TABLE sales.t AS SELECT 1 AS a")
    for read in (spark.read.option("Nanoseconds", "long").table("sales.t"), spark.read.option("x", 1).table("sales.t")):
        with pytest.raises(AnalysisException, match=r"sales\.t is read by its name, and takes no option (nano|x)"):
            read.count()
        with pytest.raises(AnalysisException, match="only versionAsOf and timestampAsOf"):
            read.where("a > 0").collect()
    assert spark.read.option("VERSIONASOF", lake.current_snapshot().id).table("sales.t").count() == 1
    spark.range(1).selectExpr("2 AS a").write.option("distribution", "none").mode("append").saveAsTable("sales.t")
    assert spark.table("sales.t").count() == 2


def test_frames_by_name_show_the_table_as_of_when_they_run(lake: Lake, spark: SparkSession, sql: Sql) -> None:
    sql("CREATE TABLE sales.t AS SELECT 1 AS a")
    by_name, read, fixed = (
        spark.table("sales.t"),
        lake.table("t").read(),
        spark.sql("SELECT * FROM sales.t VERSION AS OF 1"),
    )
    sql("INSERT INTO sales.t VALUES (2)")
    assert (by_name.count(), read.count(), fixed.count()) == (2, 1, 1)
    sql("ALTER TABLE sales.t ADD COLUMN b INT")
    assert by_name.columns == ["a"]
    assert by_name.count() == 2
    sql("ALTER TABLE sales.t DROP COLUMN a")
    with pytest.raises(AnalysisException, match=r"COLUMNS_MISMATCH|INCOMPATIBLE"):
        by_name.select("a").collect()


@pytest.mark.compiled
def test_one_query_sees_one_snapshot(lake: Lake, spark: SparkSession) -> None:
    """Two tables always have as many rows: whoever sees them at two snapshots counts differently now and then."""
    for name in "ab":
        spark.sql(f"CREATE TABLE sales.{name} (id BIGINT)")
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            with lake.transaction():
                for name in "ab":
                    lake.table(name).append(spark.range(1))

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        for _ in range(10):
            [(difference, scalar)] = spark.sql(
                "SELECT (SELECT count(*) FROM sales.a) - (SELECT count(*) FROM sales.b), sum(n) FROM"
                " (SELECT count(*) AS n FROM sales.a UNION ALL SELECT -count(*) FROM sales.b)"
            ).collect()
            assert (difference, scalar) == (0, 0)
        stop.set()
        writing.result()
    assert lake.table("a").read().count() > 1


def test_row_ids(lake: Lake, spark: SparkSession, sql: Sql) -> None:
    sql("CREATE TABLE sales.t AS SELECT id FROM range(3)")
    sql("UPDATE sales.t SET id = 10 WHERE rowid = 1")
    assert sql("SELECT rowid, id FROM sales.t ORDER BY rowid") == [(0, 0), (1, 10), (2, 2)]
    assert spark.table("sales.t").select("rowid").where("rowid > 1").collect() == [(2,)]
    assert spark.table("sales.t").columns == ["id"]
    sql("CREATE TABLE sales.own AS SELECT 'mine' AS rowid")
    assert sql("SELECT rowid FROM sales.own") == [("mine",)]
    sql("DELETE FROM sales.own WHERE rowid = 'mine'")
    assert sql("SELECT * FROM sales.own") == []


def _check_changes_clause(sql: Sql, last: int) -> None:
    clause = "SELECT id, name, _change_type, _commit_version FROM sales.t CHANGES FROM VERSION"
    assert sql(f"{clause} 3 TO VERSION {last} ORDER BY 4, 3") == [
        (2, "c", "update_postimage", 3),
        (2, "b", "update_preimage", 3),
        (1, "a", "delete", 4),
    ]
    assert sql(f"{clause} 3 EXCLUSIVE TO VERSION {last}") == [(1, "a", "delete", 4)]
    net = "SELECT id, name, _change_type FROM sales.t CHANGES FROM VERSION 2 TO VERSION 4 WITH"
    assert sql(f"{net} (deduplicationMode = 'netChanges', computeUpdates = 'false')") == [(2, "c", "insert")]


def test_changes(lake: Lake, file_catalog: Catalog, spark: SparkSession, sql: Sql) -> None:
    sql("CREATE TABLE sales.t (id INT, name STRING)")
    sql("INSERT INTO sales.t VALUES (1, 'a'), (2, 'b')")
    sql("UPDATE sales.t SET name = 'c' WHERE id = 2")
    sql("DELETE FROM sales.t WHERE id = 1")
    last = lake.current_snapshot().id
    if has_views_of_catalogs(spark.version):
        _check_changes_clause(sql, last)
    else:  # the statement came with Spark 4.2, as the views of catalogs
        with pytest.raises(ParseException):
            sql(f"SELECT * FROM sales.t CHANGES FROM VERSION 3 TO VERSION {last}")
    with functions_in_from(spark) as place:
        function = f"SELECT * FROM {place}table_changes('t', 2, 4)"
        ours = spark.sql(function)
    lake.close()
    with file_catalog.reference() as reference:
        expected = query(reference, "FROM lk.table_changes('t', 2, 4)")
    with attached(file_catalog, spark, name="sales"), functions_in_from(spark) as place:
        assert_contents(spark.sql(function), expected)
        error = "the lake has no table function nope; there are" if place else "TABLE_VALUED_FUNCTIONS"
        with pytest.raises(NotFoundError if place else AnalysisException, match=error):
            sql(f"SELECT * FROM {place}nope()")
        with pytest.raises(InvalidError, match="table_changes needs start_snapshot"):
            sql(f"SELECT * FROM {place}table_changes('t')")
    del ours


def test_files_are_pruned_as_by_read(lake: Lake, spark: SparkSession) -> None:
    lake.create_table("t", "id BIGINT, p STRING", partitioned_by=["p"])
    lake.table("t").append(spark.range(1000).selectExpr("id", "concat('p', id % 4)"))
    lake.table("t").delete("id = 6")
    spark.range(3).selectExpr("concat('p', id) AS p").where("p = 'p1'").createOrReplaceTempView("few")
    for where in (
        "p = 'p2'",
        "p IN ('p0', 'p1') AND id < 10",
        "id > 5000",
        "rowid = 3",
        "p = (SELECT max(p) FROM few)",
    ):
        by_name = spark.sql(f"SELECT * FROM sales.t WHERE {where}")
        lake.table("t").read(row_ids=True).createOrReplaceTempView("read")
        read = spark.sql(f"SELECT * EXCEPT (rowid) FROM read WHERE {where}")
        assert sorted(by_name.collect()) == sorted(read.collect()), where
        assert files_read(by_name) == files_read(read), where
    assert (
        files_read(spark.sql("SELECT * FROM sales.t WHERE p = 'p2'"))["ducklake main.t"]
        < lake.table("t").files().count()
    )
    shown = spark.sql("SELECT * FROM sales.t WHERE p = 'p2'")._jdf.queryExecution().simpleString()
    assert f"main.t at snapshot {lake.current_snapshot().id}" in shown
    assert "EqualTo(p,p2)" in shown


def test_cached_tables_follow_statements(lake: Lake, file_catalog: Catalog, spark: SparkSession, sql: Sql) -> None:
    sql("CREATE TABLE sales.t AS SELECT 1 AS a")
    sql("CACHE TABLE sales.t")
    assert "InMemoryRelation" in plan(spark.table("sales.t"))
    for statement, count in (
        ("INSERT INTO sales.main.t VALUES (2)", 2),
        ("UPDATE sales.t SET a = 5 WHERE a = 1", 2),
        ("DELETE FROM sales.t WHERE a = 5", 1),
        ("TRUNCATE TABLE sales.t", 0),
    ):
        sql(statement)
        assert sql("SELECT count(*) FROM sales.t") == [(count,)], statement
    lake.table("t").append(spark.range(1).selectExpr("cast(id as int)"))
    assert sql("SELECT count(*) FROM sales.t") == [(1,)], "Python's verbs"
    with attached(file_catalog, spark) as other:
        other.table("t").append(spark.range(1).selectExpr("cast(id as int)"))
    assert sql("SELECT count(*) FROM sales.t") == [(1,)], "Spark is not told of what others write"
    sql("REFRESH TABLE sales.t")
    assert sql("SELECT count(*) FROM sales.t") == [(2,)]
    sql("DELETE FROM sales.t WHERE rowid = (SELECT max(rowid) FROM sales.t)")
    with lake.transaction() as transaction:
        sql("INSERT INTO sales.t VALUES (9)")
        assert sql("SELECT count(*) FROM sales.t") == [(2,)]
        transaction.roll_back()
    assert sql("SELECT count(*) FROM sales.t") == [(1,)]
    sql("UNCACHE TABLE IF EXISTS sales.t")


def test_dataframe_calls(lake: Lake, spark: SparkSession, sql: Sql) -> None:
    sql("CREATE TABLE sales.t AS SELECT id, id % 3 AS k FROM range(10)")
    frame = spark.table("sales.t")
    joined = frame.alias("a").join(frame.alias("b"), F.col("a.id") == F.col("b.id") + 1)
    assert joined.count() == 9
    frame.createOrReplaceTempView("seen")
    assert sql("SELECT count(*) FROM seen s LEFT ANTI JOIN sales.t t ON s.id = t.id + 5") == [(5,)]


def test_a_new_session_says_how_to_know_a_lake(lake: Lake, spark: SparkSession, sql: Sql) -> None:
    sql("CREATE TABLE sales.t AS SELECT 1 AS a")
    fresh = spark.newSession()
    assert fresh.sql("SELECT 1").collect() == [(1,)]
    for text in ("SELECT * FROM sales.t", "SELECT * FROM sales.main.t"):
        with pytest.raises(AnalysisException, match=r'lake\.register\("sales", spark=session\)'):
            fresh.sql(text)
    lake.register("sales", spark=fresh)
    assert fresh.sql("SELECT * FROM sales.t").collect() == [(1,)]


def test_explain_tells_what_is_read(lake: Lake, spark: SparkSession, sql: Sql) -> None:
    lake.set_option("data_inlining_row_limit", 0)
    sql("CREATE TABLE sales.t (id BIGINT, p INT) PARTITIONED BY (p)")
    for part in range(3):
        sql(f"INSERT INTO sales.t SELECT /*+ COALESCE(1) */ id, {part} FROM range(4)")
    for text, files in (("SELECT * FROM sales.t", 3), ("SELECT * FROM sales.t WHERE p = 1", 1)):
        [[shown]] = sql(f"EXPLAIN {text}")
        assert (
            f"ducklake main.t at snapshot {lake.current_snapshot().id}, 3 files before pruning, {files} after it"
            in shown
        )
    lake.sql("DELETE FROM t WHERE id = 1 AND p = 2")
    frame = lake.table("t").read().where("p = 2")
    shown = str(query_execution(frame).executedPlan())
    assert "2 files before pruning, 0 after it" in shown  # without deletes
    assert "1 files before pruning, 1 after it" in shown
    assert frame.count() == 3
