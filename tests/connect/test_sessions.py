"""A Spark Connect session: what it reads and writes as a classic one does, and what it cannot do."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.connect.streaming.query import StreamingQuery
from pyspark.sql.connect.streaming.readwriter import DataStreamWriter

import penstock
from penstock import InvalidError, Lake, PenstockError, UnsupportedError, delta, lance
from support.catalogs import Catalog
from support.writing import attached
from support.writing import files_of as stored_files

FIELD_IDS = "spark.sql.parquet.fieldId.read.enabled"
PREDICATES = [
    "id = 25", "id < 15 OR id > 85", "id IN (3, 47, NULL)", "NOT (id BETWEEN 10 AND 89)", "day = '2024-01-05'",
    "day >= DATE '2024-01-08' AND lower(name) = 'v3'", "name LIKE 'v1%'", "name IS NULL", "ts < '2024-01-02 00:00:00'",
    "year(ts) = 2023", "target.id = 1 AND false", "amount > 4.25", "id = 25 OR rand() < 2", "`a b` = 7",
]  # fmt: skip


@pytest.fixture
def lake(file_catalog: Catalog, spark: SparkSession) -> Iterator[Lake]:
    """Ten files of ten rows, in the order of all columns."""
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            'CREATE TABLE t (id BIGINT, name VARCHAR, day DATE, ts TIMESTAMPTZ, amount DECIMAL(10,2), "a b" INTEGER)',
            *(
                f"INSERT INTO t SELECT i, CASE WHEN i % 9 > 0 THEN 'v' || i % 10 END, DATE '2024-01-01' + {number},"
                f" TIMESTAMPTZ '2024-01-01 00:00:00Z' + INTERVAL {number} DAY, i / 20, i % 10"
                f" FROM range({number * 10}, {number * 10 + 10}) r(i)"
                for number in range(10)
            ),
        )
    with attached(file_catalog, spark) as lake:
        yield lake


@contextmanager
def unchanged(catalog: Catalog, lake: Lake) -> Iterator[None]:
    snapshot, files = lake.current_snapshot(), stored_files(catalog)
    yield
    assert lake.current_snapshot() == snapshot
    assert stored_files(catalog) == files


def files_of(frame: DataFrame) -> int:
    return len(frame.inputFiles())


def rows_of(frame: DataFrame) -> list[str]:
    return sorted(map(repr, frame.collect()))


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_law_of_pruning(zone: str, lake: Lake, spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        table = lake.table("t")
        everything = table.read().alias("target")
        for predicate in PREDICATES:
            if not predicate.startswith("target"):  # which is a name in statements
                assert rows_of(table.read(where=predicate)) == rows_of(everything.where(predicate)), predicate
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))


def test_fewer_files_are_read(lake: Lake) -> None:
    table = lake.table("t")
    assert files_of(table.read()) == 10
    assert files_of(table.read(where="id = 25")) == 1
    assert files_of(table.read(where=(F.col("id") < 15) | (F.col("id") > 85))) == 4
    assert files_of(table.read(where=F.col("id").isin(3, 47) & F.expr("name IS NOT NULL"))) == 2
    assert files_of(table.read(where="day = '2024-01-05'")) == 1
    assert files_of(table.read(where="id = 25 OR lower(name) = 'x'")) == 10
    assert table.read(where="id = -1").collect() == []
    assert table.explain("id = 25").kept == 1
    version = table.append([(25, "again", None, None, None, None)]).id  # type: ignore[union-attr]
    assert [row.name for row in table.read(where="id = 25", version=version).orderBy("name").collect()] == [
        "again", "v5",
    ]  # fmt: skip


def test_statements_read_few_files(lake: Lake, spark: SparkSession) -> None:
    table = lake.table("t")
    for missing in table.read(where="id >= 90").inputFiles():  # whoever opens one of these fails
        Path(missing.removeprefix("file:")).rename(missing.removeprefix("file:") + ".away")
    table.update({"name": "'new'"}, where="id = 25")
    table.delete("id BETWEEN 30 AND 39")
    source = spark.createDataFrame([(1, "merged"), (45, "merged"), (1000, "in")], "id long, name string")
    merge = table.merge(source, on="target.id = source.id").when_matched_update({"name": "source.name"})
    merge.when_not_matched_insert().execute()
    table.merge(source.where("id = 45"), on=["id"]).when_matched_delete().execute()
    found = {row.id: row.name for row in table.read(where="id < 90 OR id = 1000").collect()}
    assert len(found) == 80
    assert (found[25], found[1], found[1000]) == ("new", "merged", "in")


def test_what_needs_the_jvm_says_so(lake: Lake, spark: SparkSession, tmp_path: Path) -> None:
    table = lake.table("t")
    stream = spark.readStream.format("rate").load()
    asked = [
        lambda: lake.register("sales"),
        lambda: lake.sql("SELECT 1"),
        lambda: table.read_stream(),
        lambda: table.write_stream(stream, checkpoint=str(tmp_path)),
        lambda: penstock.register(spark),
        lambda: penstock.attach(f"ducklake:{tmp_path}/x.ducklake", name="sales", spark=spark),
        lambda: lance.open(str(tmp_path), "n", spark=spark),
        lambda: delta.open(str(tmp_path), spark=spark),
    ]
    for ask in asked:
        with pytest.raises(UnsupportedError, match="Spark Connect"):
            ask()


def test_bad_input_changes_nothing(lake: Lake, file_catalog: Catalog, spark: SparkSession) -> None:
    table = lake.table("t")
    wide = spark.createDataFrame([(1, 5_000_000_000)], "id long, `a b` long")
    with unchanged(file_catalog, lake):
        with pytest.raises(InvalidError, match="has type int64"):
            table.append(spark.createDataFrame([("x",)], "id string"), by_name=True)
        with pytest.raises(InvalidError, match="does not fit int"):
            table.append(wide, by_name=True)
        for statement in (
            lambda: table.delete("nope = 1"),
            lambda: table.update({"id": "nope"}),
            lambda: table.read(where="nope = 1"),
            lambda: table.merge(wide, on="target.nope = source.id").when_matched_delete().execute(),
        ):
            with pytest.raises(AnalysisException, match="nope"):
                statement()
        twice = spark.createDataFrame([(1, "a"), (1, "b")], "id long, name string")
        with pytest.raises(InvalidError, match="match the same row"):
            table.merge(twice, on="id").when_matched_update().execute()
        with pytest.raises(InvalidError, match="list of columns"):
            lake.create_table("u", "id NOSUCHTYPE")
    assert not spark.getTags()


def test_columns_are_found_by_their_ids_whatever_a_session_was_set_to(lake: Lake, spark: SparkSession) -> None:
    table = lake.table("t")
    table.rename_column("name", "title")
    spark.conf.unset(FIELD_IDS)
    assert table.read().where("title = 'v5'").count() == 9
    spark.conf.set("spark.sql.parser.escapedStringLiterals", "true")
    try:
        table.add_column("path STRING DEFAULT 'C:\\x'")
        with pytest.raises(UnsupportedError, match="escapedStringLiterals"):
            table.read().collect()
    finally:
        spark.conf.unset("spark.sql.parser.escapedStringLiterals")


def test_files_that_spark_passes_over(file_catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    added = tmp_path / "_added.parquet"
    duckdb.execute(f"COPY (SELECT 7 AS id) TO '{added}'")
    with file_catalog.build() as reference:
        reference.execute("CREATE TABLE t (id INTEGER)", f"CALL ducklake_add_data_files('lk', 't', '{added}')")
    with attached(file_catalog, spark) as lake, pytest.raises(UnsupportedError, match="passes over"):
        lake.table("t").read()


def test_values_and_names_that_hurt(file_catalog: Catalog, spark: SparkSession) -> None:
    parts = ["a/b", "é=%", "🦆", "", "x y", "{1}*?[2]", "it's", "a+b", None, "#;&$", "\\n", '"']
    with attached(file_catalog, spark) as lake:
        table = lake.create_table('"a b`c"', "`p q` STRING, `x``y` DOUBLE", partitioned_by=["`p q`"])
        rows = [(part, value) for part in parts for value in (float("nan"), -0.0, None)]
        table.append(spark.createDataFrame(rows, "`p q` string, `x``y` double").repartition(3))
        assert table.read(row_ids=True).count() == len(rows)
        for part in parts:
            where = F.col("`p q`").isNull() if part is None else F.col("`p q`") == part
            assert table.read(where=where).count() == 3, part
        table.delete(F.col("`p q`") == "🦆")
        table.update({"`x``y`": F.lit(1.5)}, where="`p q` = 'a/b'")
    with file_catalog.reference() as reference:
        assert reference.value('SELECT count(*) FROM "a b`c"') == len(rows) - 3
        assert reference.value('SELECT count(*) FROM "a b`c" WHERE "x`y" = 1.5') == 3


def test_no_rows_and_many_files(file_catalog: Catalog, spark: SparkSession) -> None:
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE TABLE none (id INTEGER)",
            "CREATE TABLE t (id BIGINT, p INTEGER)",
            "ALTER TABLE t SET PARTITIONED BY (p)",
            "INSERT INTO t SELECT i, i % 300 FROM range(900) r(i)",
            "DELETE FROM t WHERE id % 3 = 1",
        )
    with attached(file_catalog, spark) as lake:
        assert lake.table("none").read().collect() == []
        lake.table("none").delete("id = 1")
        table = lake.table("t")
        assert table.read().agg(F.count("*"), F.sum("id")).first() == (600, sum(i for i in range(900) if i % 3 != 1))
        assert files_of(table.read(where="p = 8")) == 1
        table.append(spark.createDataFrame([], "id long, p int"))
        assert table.read(row_ids=True).select("rowid").distinct().count() == 600


def test_a_failed_or_interrupted_write_leaves_nothing(lake: Lake, file_catalog: Catalog, spark: SparkSession) -> None:
    table = lake.table("t")

    def slow(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            time.sleep(60)
            yield batch

    fails = "IF(id = 99999, raise_error('penstock breaks'), 'x') AS name"
    with unchanged(file_catalog, lake):
        with pytest.raises(PySparkException, match="penstock breaks"):
            table.append(spark.range(100_000, numPartitions=4).selectExpr("id", fails), by_name=True)
        stopped: list[BaseException] = []

        def append() -> None:
            try:
                table.append(spark.range(2).mapInArrow(slow, "id long"), by_name=True)
            except PySparkException as error:
                stopped.append(error)

        writer = threading.Thread(target=append)
        writer.start()
        while writer.is_alive() and not stopped:
            time.sleep(1)
            spark.interruptAll()
        writer.join()
        assert "CANCELED" in str(stopped[0]).upper()


def test_two_threads_write_at_once(lake: Lake, spark: SparkSession) -> None:
    table = lake.table("t")
    threads = [
        threading.Thread(target=lambda n=number: table.append(spark.range(n, n + 50).select("id"), by_name=True))
        for number in (1000, 2000, 3000)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert table.read(where="id >= 1000").count() == 150


def test_transactions(lake: Lake, spark: SparkSession) -> None:
    table = lake.table("t")
    with lake.transaction():
        table.append(spark.range(500, 520).select("id"), by_name=True)
        table.delete("id < 505")
        table.update({"name": "'own'"}, where="id >= 510")
        assert table.read().count() == 15
    assert sorted(row.id for row in table.read(where="name = 'own'").collect()) == list(range(510, 520))


def started(writer: DataStreamWriter) -> StreamingQuery:
    """The query, begun again where a busy machine took longer to start Python than the ten seconds that Spark waits.

    Python that comes too late goes on importing, so the next has to wait for it.
    """
    for _ in range(5):
        try:
            return writer.start()
        except PySparkException as error:
            if "waiting for the Python worker" not in str(error):
                raise
            time.sleep(10)
    return writer.start()


def test_batches_of_a_stream_are_written_once(spark: SparkSession, tmp_path: Path) -> None:
    """The way that write_stream names: the function runs in a process of the server's."""
    uri = f"ducklake:sqlite:{tmp_path}/stream.sqlite"
    with penstock.attach(uri, data_path=f"{tmp_path}/stream", spark=spark) as lake:
        lake.create_table("t", "id BIGINT")
    (tmp_path / "source").mkdir()
    duckdb.execute(f"COPY (SELECT i AS id FROM range(30) r(i)) TO '{tmp_path}/source/a.parquet'")

    def write(batch: DataFrame, number: int) -> None:
        import penstock

        with penstock.attach(uri, spark=batch.sparkSession) as lake:
            for _ in range(2):  # as after a crash
                with lake.write_once(stream="orders", batch=number) as once:
                    if once.is_new:
                        lake.table("t").append(batch)

    def run() -> None:
        source = spark.readStream.schema("id long").parquet(f"{tmp_path}/source")
        writer = source.writeStream.foreachBatch(write).option("checkpointLocation", f"{tmp_path}/checkpoint")
        query = started(writer.trigger(availableNow=True))
        assert query.awaitTermination(120)
        assert query.exception() is None

    run()
    duckdb.execute(f"COPY (SELECT i AS id FROM range(30, 60) r(i)) TO '{tmp_path}/source/b.parquet'")
    run()
    with penstock.attach(uri, spark=spark) as lake:
        assert sorted(row.id for row in lake.table("t").read().collect()) == list(range(60))
        assert [row.stream for row in lake.streams().collect()] == ["orders"]


@pytest.fixture
def odd(file_catalog: Catalog, spark: SparkSession) -> Iterator[Lake]:
    """Tables of two files of one row each, with names that mean something else elsewhere."""
    tables = {
        'e (id INTEGER, start INTEGER, "end" INTEGER, forever BOOLEAN)': ["1, 0, 5, false", "2, 100, 200, true"],
        "g (x INTEGER, target STRUCT(x INTEGER), y INTEGER)": ["5, {'x': 1}, 1", "1, {'x': 5}, 2"],
        "s (s VARCHAR)": ["'abc'", "'zzz'"],
        'q (a INTEGER, "a--b" INTEGER, "a " INTEGER)': ["1, 2, 3", "2, 1, 4"],
        "z (ts TIMESTAMPTZ)": ["'2024-01-01 03:00:00Z'", "'2025-01-01 00:00:00Z'"],
    }
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        for table, rows in tables.items():
            inserts = (f"INSERT INTO {table.split()[0]} VALUES ({row})" for row in rows)
            reference.execute(f"CREATE TABLE {table}", *inserts)
    with attached(file_catalog, spark) as lake:
        lake.set_option("data_inlining_row_limit", 0)
        yield lake


@pytest.mark.parametrize(
    ("table", "where"),
    [
        ("e", "start <= 5 AND end = 5 OR forever = true"),
        ("e", "end > 50 OR (id = 7 AND start = 0 AND id = 9)"),
        ("e", "CASE WHEN id = 1 AND start = 0 THEN false ELSE true END OR id = 9"),
        ("g", "target.x = 5"), ("s", "s = '${penstock.tests}'"), ("s", "s <> '${penstock.tests}'"),
        ("q", ""), ("z", "ts < '2024-01-01 00:00:00'"),
    ],
)  # fmt: skip
def test_names_that_mean_something_else(table: str, where: str, odd: Lake, spark: SparkSession) -> None:
    spark.conf.set("penstock.tests", "abc")
    rows = odd.table(table)
    conditions = [F.col("a--b") == 2, F.col("a ") == 4, F.col("`a--b`") == 1] if table == "q" else [where]
    for condition in conditions:
        pruned = rows.read(where=condition)
        spark.conf.set("spark.sql.session.timeZone", "America/New_York")
        try:
            assert rows_of(pruned) == rows_of(rows.read().where(condition)) != []
        finally:
            spark.conf.unset("spark.sql.session.timeZone")


def test_statements_call_their_rows_target(odd: Lake, spark: SparkSession) -> None:
    rows = odd.table("g")
    source = spark.sql("SELECT 5 AS x, 77 AS y")
    merge = rows.merge(source, on="x").when_matched_update({"y": "source.y"})
    merge.when_not_matched_insert({"x": "source.x", "y": "source.y"}).execute()
    assert sorted((row.x, row.y) for row in rows.read().collect()) == [(1, 2), (5, 77)]
    rows.delete("target.x = 5")
    assert [row.x for row in rows.read().collect()] == [1]
    ends = odd.table("e")
    twice = spark.sql("SELECT 1 AS id, 5 AS end, 0 AS x UNION ALL SELECT 9, 9, 100")
    on = "target.id = source.id AND target.end = source.end OR target.start = source.x"
    ends.merge(twice.where("id = 9"), on=on).when_matched_delete().execute()
    assert [row.id for row in ends.read().collect()] == [1]


def test_columns_of_the_source_in_a_merge(odd: Lake, spark: SparkSession) -> None:
    rows = odd.table("e")
    source = spark.sql("SELECT 1 AS id, 5 AS start UNION ALL SELECT 3, 6").withColumn("more", F.lit(1))
    merge = rows.merge(source, on=F.col("target.id") == source["id"])
    merge = merge.when_matched_update({"start": source["start"] + source.more})
    merge.when_not_matched_insert({"id": source["id"], "start": source.start}).execute()
    assert sorted((row.id, row.start) for row in rows.read().collect()) == [(1, 6), (2, 100), (3, 6)]


def test_a_file_that_was_added_twice(file_catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    added = tmp_path / "x.parquet"
    duckdb.execute(f"COPY (SELECT i::INTEGER AS id, 'a' AS s FROM range(3) r(i)) TO '{added}'")
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t (id INTEGER, s VARCHAR)")
        for _ in range(2):
            reference.execute(f"CALL ducklake_add_data_files('lk', 't', '{added}')")
    with attached(file_catalog, spark) as lake:
        table = lake.table("t")
        assert table.read().count() == 6
        assert table.read(row_ids=True).select("rowid").distinct().count() == 6
        table.update({"s": "'b'"}, where="id = 1")
        table.delete("id = 2")
        assert sorted((row.id, row.s) for row in table.read().collect()) == [(0, "a"), (0, "a"), (1, "b"), (1, "b")]


def test_types_are_read_by_the_sessions_own_settings(file_catalog: Catalog, spark: SparkSession) -> None:
    builder: Any = type(spark).builder
    other = builder.remote(os.environ["PENSTOCK_TESTS_CONNECT"]).create()
    other.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    try:
        with attached(file_catalog, other) as lake:
            table = lake.create_table("t", "a TIMESTAMP, b TIMESTAMP_LTZ, c INT DEFAULT IF(1 < 2, 3, 4)")
            assert [field.dataType.simpleString() for field in table.schema] == ["timestamp_ntz", "timestamp", "int"]
            with pytest.raises(PenstockError):
                lake.create_table("u", "a TIMESTAMP, b TIMESTAMP DEFAULT `now`(), c INT")
    finally:
        other.stop()


def test_writes_that_fail_in_a_task_leave_no_file(lake: Lake, file_catalog: Catalog) -> None:
    """The other task is at its file when one fails; nobody tells a client when Spark has killed it."""
    before = stored_files(file_catalog)
    for last in (4999, 2600, 4000):
        sql = f"SELECT id, IF(id = {last}, raise_error('broken'), 'x') AS x FROM range(0, 5000, 1, 2)"
        with pytest.raises(PySparkException, match="broken"):
            lake.create_table("broken", lake.spark.sql(sql))
    time.sleep(1)  # for what comes late
    assert stored_files(file_catalog) == before
