"""Statements inside `with lake.transaction():` belong to it, each thread's to its own."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from penstock import Lake
from penstock.errors import ConflictError, InvalidError

from .conftest import Sql, create_view, evolving_insert


def test_statements_and_verbs_are_one_snapshot(lake: Lake, spark: SparkSession, sql: Sql) -> None:
    sql("CREATE TABLE sales.t AS SELECT id FROM range(3)")
    newest = lake.current_snapshot().id
    with lake.transaction(message="both"):
        sql("INSERT INTO sales.t VALUES (10)")
        lake.table("t").append(spark.range(20, 21))
        assert sql("SELECT count(*), max(id) FROM sales.t") == [(5, 20)]
        sql("DELETE FROM sales.t WHERE id = (SELECT max(id) FROM sales.t)")
        sql("INSERT OVERWRITE sales.t SELECT id + 100 FROM sales.t")
        sql("CREATE TABLE sales.copy AS SELECT * FROM sales.t")
        sql("ALTER TABLE sales.copy ADD COLUMN b INT")
        sql("MERGE INTO sales.copy c USING sales.t t ON c.id = t.id WHEN MATCHED THEN UPDATE SET b = 1")
        create_view(lake, "v", "SELECT sum(b) AS s FROM sales.copy")
        assert sql("SELECT * FROM sales.v") == [(4,)]
        assert lake.current_snapshot().id == newest
    assert lake.current_snapshot().id == newest + 1
    assert sql("SELECT id, b FROM sales.copy ORDER BY id") == [(100, 1), (101, 1), (102, 1), (110, 1)]
    assert lake.snapshots().orderBy("snapshot_id").collect()[-1].commit_message == "both"


def test_nothing_stays_of_one_that_fails(lake: Lake, spark: SparkSession, sql: Sql) -> None:
    sql("CREATE TABLE sales.t AS SELECT id FROM range(3)")
    with lake.transaction() as transaction:
        sql("INSERT INTO sales.t VALUES (10)")
        sql("CREATE TABLE sales.u (a INT)")
        transaction.roll_back()
    assert sql("SELECT count(*) FROM sales.t") == [(3,)]
    assert sql("SHOW TABLES IN sales.main") == [("main", "t", False)]


def test_a_statement_that_fails_leaves_the_others(lake: Lake, sql: Sql) -> None:
    sql("CREATE TABLE sales.t AS SELECT id FROM range(3)")
    with lake.transaction():
        sql("INSERT INTO sales.t VALUES (10)")
        with pytest.raises(Exception, match="oops"):
            sql("INSERT INTO sales.t SELECT raise_error('oops')")
        with pytest.raises(InvalidError, match="takes effect at once"):
            sql("CALL sales.system.merge_adjacent_files()")
    assert sql("SELECT id FROM sales.t WHERE id > 5") == [(10,)]


def test_each_thread_has_its_own(lake: Lake, spark: SparkSession, sql: Sql) -> None:
    sql("CREATE TABLE sales.t (id BIGINT)")

    def count() -> int:
        [(found,)] = spark.sql("SELECT count(*) FROM sales.t").collect()
        return int(found)

    def in_one(number: int) -> list[int]:
        with lake.transaction():
            spark.sql(f"INSERT INTO sales.t VALUES ({number})")
            with ThreadPoolExecutor(1) as other:
                seen = [count(), other.submit(count).result()]
            spark.sql(f"INSERT INTO sales.t VALUES ({number})")
            return [*seen, count()]

    assert in_one(1) == [1, 0, 2]
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(in_one, range(3)))
    assert all(last == first + 1 and first > 2 for first, _, last in found)
    assert count() == 8


def test_conflicts(lake: Lake, spark: SparkSession, sql: Sql) -> None:
    sql("CREATE TABLE sales.t AS SELECT id FROM range(3)")

    def late() -> None:
        with lake.transaction():
            sql("UPDATE sales.t SET id = 9 WHERE id = 1")
            with ThreadPoolExecutor(1) as other:
                other.submit(sql, "DELETE FROM sales.t WHERE id = 1").result()

    with pytest.raises(ConflictError):
        late()
    assert sql("SELECT id FROM sales.t") == [(0,), (2,)]


def test_commit_messages(lake: Lake, spark: SparkSession, sql: Sql) -> None:
    with lake.transaction():
        sql("CREATE TABLE sales.t (a INT)")
        sql("CALL sales.system.set_commit_message('me', 'why', extra_info => '{}')")
    last = lake.snapshots().orderBy("snapshot_id").collect()[-1]
    assert (last.author, last.commit_message, last.commit_extra_info) == ("me", "why", "{}")
    with pytest.raises(InvalidError, match="begin one"):
        sql("CALL sales.system.set_commit_message('me', 'why')")


def test_pandas_and_arrow_see_the_transaction(lake: Lake, spark: SparkSession, sql: Sql) -> None:
    """Spark serves them from a thread of its own."""
    sql("CREATE TABLE sales.t AS SELECT 1 AS a")
    with lake.transaction():
        sql("INSERT INTO sales.t VALUES (2)")
        sql("DELETE FROM sales.t WHERE a = 1")
        sql("CREATE TABLE sales.u AS SELECT 5 AS b")
        assert spark.table("sales.t").toPandas()["a"].tolist() == [2]
        assert lake.sql("SELECT * FROM t JOIN u ON b > a").toArrow().num_rows == 1
        with ThreadPoolExecutor(1) as other:
            assert other.submit(lambda: spark.table("sales.t").toPandas()["a"].tolist()).result() == [1]
    assert spark.table("sales.t").toPandas()["a"].tolist() == [2]


def test_an_interrupted_query_stays_in_the_transaction(lake: Lake, spark: SparkSession, sql: Sql) -> None:
    """After an interrupt py4j has another thread in the JVM for the same one of Python's."""
    sql("CREATE TABLE sales.t AS SELECT 0 AS a")
    before = lake.last_committed_snapshot()
    with lake.transaction() as transaction:
        sql("INSERT INTO sales.t VALUES (1)")
        threading.Timer(1, lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)).start()
        # PySpark's own attempt to cancel the jobs may fail while it is interrupted, as it always does in 4.1.
        try:
            with pytest.raises((Py4JError, KeyboardInterrupt)) as ended:
                spark.sql("SELECT count(*) FROM range(10000000) a JOIN range(1000) b ON a.id % 7 = b.id % 5").collect()
        finally:
            spark.sparkContext.cancelAllJobs()
        assert spark.version < "4.2" or any(isinstance(error, KeyboardInterrupt) for error in _chain(ended.value))
        sql("INSERT INTO sales.t VALUES (2)")
        assert sql("SELECT * FROM sales.t") == [(0,), (1,), (2,)]
        assert lake.last_committed_snapshot() == before
        transaction.roll_back()
    assert sql("SELECT * FROM sales.t") == [(0,)]


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and those that were handled when it came."""
    while error is not None:
        yield error
        error = error.__context__


def test_the_cache_holds_what_is_committed(lake: Lake, spark: SparkSession, sql: Sql) -> None:
    sql("CREATE TABLE sales.t AS SELECT 1 AS a")
    lake.register("shop")
    with ThreadPoolExecutor(1) as other, lake.transaction():
        sql("INSERT INTO sales.t VALUES (2)")
        for cache in (lambda: sql("CACHE TABLE sales.t"), lambda: spark.table("sales.t").cache()):
            with pytest.raises(AnalysisException, match="cache it after the transaction"):
                cache()
        other.submit(sql, "CACHE TABLE sales.t").result()  # what is committed
        assert other.submit(sql, "SELECT * FROM sales.t").result() == [(1,)]
        assert sql("SELECT * FROM sales.t") == [(1,), (2,)]
        other.submit(sql, "CACHE TABLE shop.t").result()
        lake.table("t").append(spark.sql("SELECT 3 AS a"))
        sql("ALTER TABLE sales.t SET TBLPROPERTIES ('x' = 'y')")
        assert other.submit(sql, "SELECT * FROM shop.t").result() == [(1,)]
        assert sql("SELECT * FROM shop.t") == [(1,), (2,), (3,)]
    for name in ("sales", "shop"):
        assert sql(f"SELECT * FROM {name}.t") == [(1,), (2,), (3,)]
    sql("CACHE TABLE shop.t")
    sql("INSERT INTO sales.t VALUES (4)")
    lake.table("t").append(spark.sql("SELECT 5 AS a"))
    assert spark.catalog.isCached("shop.t")
    assert sql("SELECT count(*) FROM shop.t") == [(5,)]
    sql("UNCACHE TABLE shop.t")


def test_schema_evolution_that_fails_alters_nothing(lake: Lake, spark: SparkSession, sql: Sql) -> None:
    sql("CREATE TABLE sales.t (a INT)")
    with lake.transaction():
        sql(f"EXPLAIN {evolving_insert(spark, 'SELECT 1 AS a, 2 AS explained')}")
        failing = "CAST(raise_error('boom') AS INT) AS failed"
        with pytest.raises(Exception, match="boom"):
            sql(evolving_insert(spark, f"SELECT 1 AS a, {failing}"))
        sql(evolving_insert(spark, "SELECT 1 AS a, 3 AS b"))
        assert sql("SELECT * FROM sales.t") == [(1, 3)]
    assert lake.table("t").read().columns == ["a", "b"]


def test_several_inserts_of_one_query(lake: Lake, sql: Sql) -> None:
    sql("CREATE TABLE sales.t AS SELECT 1 AS a")
    with pytest.raises(AnalysisException, match="write them one by one"):
        sql("FROM sales.t INSERT INTO sales.t SELECT a + 1 INSERT INTO sales.t SELECT a + 10")
    assert sql("SELECT * FROM sales.t") == [(1,)]
