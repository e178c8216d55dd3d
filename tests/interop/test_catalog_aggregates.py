"""Aggregates from the catalog: whatever wrote the files, they are what the rows give, to Spark and to DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock
from penstock import Lake
from penstock.errors import StaleReadError
from support.aggregates import answered, answered_query, without_rule
from support.catalogs import Catalog
from support.lake_samples import PRIMITIVES, create_table, insert_rows
from support.plans import files_read
from support.writing import attached

COUNTS = "count(*), count(id), count(day), count(name)"
BOUNDS = "min(id), max(id), min(day), max(day)"
ALL = f"{COUNTS}, {BOUNDS}"
TABLE = "CREATE TABLE t (id INTEGER, day DATE, name VARCHAR)"


def insert(first: int, last: int) -> str:
    """Rows by their number; every fifth has no name, every seventh no day."""
    return (
        "INSERT INTO t SELECT i, CASE WHEN i % 7 > 0 THEN DATE '2024-01-01' + i::INTEGER END,"
        f" CASE WHEN i % 5 > 0 THEN 'n' || i END FROM range({first}, {last}) r(i)"
    )


def agree(catalog: Catalog, spark: SparkSession, expected: int, where: str = "") -> None:
    """Spark, with the catalog and without, and DuckDB say the same; so many files are read."""
    with catalog.reference() as reference:
        [judged] = reference.rows(f"SELECT {ALL} FROM t {where}")
    with penstock.attach(catalog.uri, read_only=True, spark=spark, name="agg"):
        row, read = answered_query(spark, lambda: spark.sql(f"SELECT {ALL} FROM agg.t {where}"))
    assert row == judged
    assert read == expected


@contextmanager
def reading(catalog: Catalog, spark: SparkSession) -> Iterator[Lake]:
    with penstock.attach(catalog.uri, read_only=True, spark=spark) as lake:
        yield lake


@pytest.mark.one_catalog
def test_files_that_the_extension_writes(catalog: Catalog, spark: SparkSession) -> None:
    """Inserted, updated, merged, rewritten: statistics stay exact, and only files with deletes are read."""

    def then(expected: int, *statements: str) -> None:
        with catalog.build(data_inlining_row_limit=0) as reference:
            reference.execute(*statements)
        agree(catalog, spark, expected)

    then(0, TABLE)
    then(0, *(insert(first, first + 10) for first in range(0, 40, 10)))
    then(1, "UPDATE t SET day = NULL WHERE id = 12")
    then(2, "DELETE FROM t WHERE id IN (30, 31)")
    then(0, "CALL ducklake_rewrite_data_files('lk', delete_threshold => 0)")
    then(0, insert(40, 45), insert(45, 50), "CALL ducklake_merge_adjacent_files('lk')")
    then(0, "INSERT INTO t SELECT NULL, NULL, NULL FROM range(3)")
    then(
        1,
        "MERGE INTO t USING (SELECT 48 AS id UNION ALL SELECT 1000) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET name = 'm' WHEN NOT MATCHED THEN INSERT VALUES (s.id, NULL, 'new')",
    )
    then(0, "CREATE TABLE u AS FROM t", "DROP TABLE t", "ALTER TABLE u RENAME TO t")
    then(0, "ALTER TABLE t SET PARTITIONED BY (month(day), id)", insert(50, 90))
    then(0, "DELETE FROM t")


def test_rows_of_the_catalog(catalog: Catalog, spark: SparkSession) -> None:
    """Inlined rows are counted by the driver, and after a flush by the catalog."""
    with catalog.build(data_inlining_row_limit=100) as reference:
        reference.execute(TABLE, insert(0, 10), insert(200, 203), "INSERT INTO t VALUES (7, NULL, NULL)")
    agree(catalog, spark, 0)
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(insert(20, 30))
    agree(catalog, spark, 0)
    with catalog.build(data_inlining_row_limit=100) as reference:
        reference.execute("DELETE FROM t WHERE id IN (1, 22)")
    agree(catalog, spark, 1)
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute("CALL ducklake_flush_inlined_data('lk')", insert(40, 50))
    agree(catalog, spark, 2)


@pytest.mark.parametrize("partitioning", [None, "id", "month(day)", "bucket(3, id)"])
def test_filters_that_whole_files_pass(file_catalog: Catalog, spark: SparkSession, partitioning: str | None) -> None:
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(TABLE, *([f"ALTER TABLE t SET PARTITIONED BY ({partitioning})"] if partitioning else []))
        for first in range(1, 61, 20):
            reference.execute(insert(first, first + 20))
    expected = {None: (1, 1, 3, 1, 0), "id": (0, 0, 0, 0, 0), "month(day)": None, "bucket(3, id)": None}[partitioning]
    filters = (
        "id >= 30",
        "id BETWEEN 21 AND 50",
        "name IS NOT NULL",
        "id < 21 OR id = 55",
        "id IS NOT NULL AND id > 0",
    )
    for place, condition in enumerate(filters):
        with file_catalog.reference() as reference:
            [judged] = reference.rows(f"SELECT {ALL} FROM t WHERE {condition}")
        with reading(file_catalog, spark) as lake:
            rows = lake.table("t").read().where(condition)
            row, read = answered(rows, ALL)
        assert row == judged
        assert expected is None or read == expected[place], condition


@pytest.mark.one_catalog
def test_every_type(catalog: Catalog, spark: SparkSession) -> None:
    """Counts of every type; bounds of those whose texts are the values, and never of the others."""
    samples = PRIMITIVES
    exact = {"boolean", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "decimal4",
             "decimal9", "date", "timestamp", "timestamp_s", "timestamp_ms", "timestamptz"}  # fmt: skip
    if catalog.kind != "sqlite":
        exact |= {"decimal18", "decimal38", "decimal38_0"}
    uncounted = {"int128", "uint128", "timetz", "interval"}
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(create_table("t", samples), insert_rows("t", samples), "INSERT INTO t (c_int8) VALUES (5)")
    with reading(catalog, spark) as lake:
        rows = lake.table("t").read(nanoseconds="truncate")
        counts = [f"count({s.column})" for s in samples]
        assert answered(rows, ", ".join(counts))[1] == 2
        told = [f"count({s.column})" for s in samples if s.name not in uncounted]
        assert answered(rows, ", ".join(told))[1] == 0
        for sample in samples:
            if sample.name == "interval":
                continue
            read = answered(rows, f"min({sample.column}), max({sample.column})")[1]
            assert read == (0 if sample.name in exact else 2), sample.name


def test_times_that_spark_has_not(file_catalog: Catalog, spark: SparkSession) -> None:
    """Infinite times and years before 1 and after 9999 are read from the rows."""
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE TABLE t (d DATE, s TIMESTAMP, z TIMESTAMPTZ)",
            "INSERT INTO t VALUES ('2024-01-01', '2024-01-01 00:00:00.5', '2024-01-01 00:00:00.25+00')",
            "INSERT INTO t VALUES ('0044-03-15 (BC)', '0044-03-15 (BC) 00:00:00', '0044-03-15 (BC) 00:00:00+00')",
            "INSERT INTO t VALUES ('12024-01-01', '12024-01-01 00:00:00', '12024-01-01 00:00:00+00')",
            "INSERT INTO t VALUES ('infinity', 'infinity', 'infinity'), ('-infinity', '-infinity', '-infinity')",
        )
    with reading(file_catalog, spark) as lake:
        for column in "dsz":
            rows = lake.table("t").read()
            bounds = f"CAST(min({column}) AS STRING), CAST(max({column}) AS STRING), count({column})"
            assert answered(rows, bounds)[1] == 3
            assert answered(rows.where(f"year({column}) = 2024"), "count(*)")[0] == (1,)


def test_columns_that_were_changed(file_catalog: Catalog, spark: SparkSession) -> None:
    """Defaults of older files, promoted types and names that came back are read from the rows."""
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE TABLE t (id INTEGER, a INTEGER, n DECIMAL(6,2))", "INSERT INTO t SELECT i, i, i FROM range(5) r(i)",
            "ALTER TABLE t ADD COLUMN b INTEGER DEFAULT 42", "INSERT INTO t SELECT i, i, i, i FROM range(5) r(i)",
            "ALTER TABLE t ALTER id TYPE BIGINT", "INSERT INTO t VALUES (3000000000, 1, 1, NULL)",
            "ALTER TABLE t DROP COLUMN a", "ALTER TABLE t ADD COLUMN a INTEGER", "INSERT INTO t VALUES (5, 5, 5, 5)",
            "ALTER TABLE t ALTER n TYPE DECIMAL(10,4)", "INSERT INTO t VALUES (5, 5.5555, 5, NULL)",
            "ALTER TABLE t RENAME COLUMN b TO c",
        )  # fmt: skip
    for query in ("count(*)", "count(id)", "min(id), max(id)", "count(c)", "min(c), max(c)", "count(a)", "max(a)",
                  "count(n)", "min(n), max(n)", "count(*), count(n) + 1, max(c) - min(c)"):  # fmt: skip
        with file_catalog.reference() as reference:
            [judged] = reference.rows(f"SELECT {query} FROM t")
        with reading(file_catalog, spark) as lake:
            row, read = answered(lake.table("t").read(), query)
        assert row == judged
        assert (read == 0) is (query in ("count(*)", "count(id)", "count(n)")), (query, read)


def test_files_of_others_are_read(file_catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "others.parquet"
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            TABLE, insert(0, 10), f"COPY (SELECT * FROM t) TO '{path}' (FORMAT parquet)",
            f"CALL ducklake_add_data_files('lk', 't', '{path}')",
        )  # fmt: skip
    agree(file_catalog, spark, 1)


def test_statistics_that_do_not_fit(file_catalog: Catalog, spark: SparkSession) -> None:
    """Whatever a foreign writer left out or put twice, the rows of that file are read."""
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(TABLE, *(insert(first, first + 10) for first in range(0, 70, 10)))
        ids = [row[0] for row in reference.rows(
            "SELECT data_file_id FROM __ducklake_metadata_lk.ducklake_data_file ORDER BY 1"
        )]  # fmt: skip
    statistics = "UPDATE ducklake_file_column_stats SET"
    file_catalog.tamper(
        f"{statistics} value_count = 11 WHERE column_id = 1 AND data_file_id = {ids[0]}",
        f"{statistics} null_count = NULL WHERE column_id = 1 AND data_file_id = {ids[1]}",
        f"DELETE FROM ducklake_file_column_stats WHERE column_id = 1 AND data_file_id = {ids[2]}",
        f"{statistics} min_value = 'abc' WHERE column_id = 1 AND data_file_id = {ids[3]}",
        f"{statistics} max_value = NULL WHERE column_id = 1 AND data_file_id = {ids[4]}",
        "INSERT INTO ducklake_file_column_stats SELECT * FROM ducklake_file_column_stats"
        f" WHERE column_id = 1 AND data_file_id = {ids[5]}",
    )
    with reading(file_catalog, spark) as lake:
        rows = lake.table("t").read()
        assert answered(rows, ALL)[1] == 6
        assert answered(rows, "count(*), max(day)")[1] == 0
        assert answered(rows, "count(id)")[1] == 4


QUERIES: dict[str, tuple[str, int | None]] = {
    "a join with itself": ("SELECT count(*) FROM s.t x JOIN s.t y ON x.id = y.id", None),
    "a subquery": ("SELECT count(*) FROM s.t WHERE id = (SELECT max(id) FROM s.t)", None),
    "groups": ("SELECT count(*) FROM (SELECT id % 2 FROM s.t GROUP BY 1)", None),
    "distinct": ("SELECT count(DISTINCT id) FROM s.t", None),
    "a filter of the function": ("SELECT count(*) FILTER (WHERE id > 3) FROM s.t", None),
    "expressions": ("SELECT max(id + 1), count(id * 2) FROM s.t", None),
    "a limit": ("SELECT count(*) FROM (SELECT * FROM s.t LIMIT 3)", None),
    "aliases": ("SELECT max(b) - min(b) AS d, count(1) c FROM (SELECT id AS b FROM s.t) WHERE b < 100", 0),
    "a union of two": ("SELECT count(*), max(id) FROM (SELECT id FROM s.t UNION ALL SELECT id FROM s.t)", 0),
    "a union with others": ("SELECT count(id) FROM (SELECT id FROM s.t UNION ALL SELECT 1 AS id FROM range(5))", 0),
    "a union with wider others": ("SELECT count(id) FROM (SELECT id FROM s.t UNION ALL SELECT id FROM range(5))", None),
    "all that there is": ("SELECT count(*) FROM s.t HAVING count(*) > 100", None),
    "nothing": ("SELECT count(*), min(id) FROM s.t WHERE id > 1000", 0),
    "a window": ("SELECT max(c) FROM (SELECT count(*) OVER () AS c FROM s.t)", None),
    "other functions beside": ("SELECT count(*), sum(id) FROM s.t", None),
    "a constant": ("SELECT count(1), count(NULL), count('x'), 7 FROM s.t", 0),
}


@pytest.fixture
def named(file_catalog: Catalog, spark: SparkSession) -> Iterator[Lake]:
    with file_catalog.build(data_inlining_row_limit=3) as reference:
        reference.execute(TABLE, insert(0, 10), insert(10, 20), "INSERT INTO t VALUES (3, NULL, 'x')")
    with attached(file_catalog, spark, name="s") as lake:
        yield lake


def test_queries_by_name(named: Lake, spark: SparkSession) -> None:
    for name, (query, expected) in QUERIES.items():
        frame = spark.sql(query)
        found, read = frame.collect(), sum(files_read(frame).values())
        with without_rule(spark):
            assert spark.sql(query).collect() == found, name
        assert expected is None or read == expected, name


def test_explain_shows_a_row_of_the_driver(named: Lake, spark: SparkSession) -> None:
    [[plan]] = spark.sql("EXPLAIN SELECT count(*) FROM s.t").collect()
    assert "LocalTableScan" in plan
    assert "FileScan" not in plan
    named.table("t").delete("id = 12")
    [[plan]] = spark.sql("EXPLAIN SELECT count(*) FROM s.t").collect()
    assert "1 files before pruning, 1 after it" in plan


def test_planning_twice_changes_nothing(named: Lake, spark: SparkSession) -> None:
    rules = spark._jsparkSession.experimental().extraOptimizations()
    [rule] = [rules.apply(i) for i in range(rules.size()) if rules.apply(i).ruleName().endswith("CatalogAggregates")]
    named.table("t").delete("id = 12")
    for query in ("count(*)", "sum(id)", "min(name)"):
        plan = named.table("t").read().selectExpr(query)._jdf.queryExecution().optimizedPlan()
        assert rule.apply(plan).fastEquals(plan)


def test_transactions_see_what_they_staged(named: Lake, spark: SparkSession) -> None:
    table = named.table("t")
    more = spark.range(100, 200).selectExpr("CAST(id AS INT) AS id", "CAST(NULL AS DATE) AS day", "'n' AS name")
    with named.transaction():
        table.append(more)
        assert answered(table.read(), "count(*), max(id)") == ((121, 199), 0)
        before = table.read()
        table.delete("id < 5 OR id = 150")
        assert answered(table.read(), "count(*), max(id)")[0] == (114, 199)
        assert answered(before, "count(*), max(id)")[0] == (121, 199)
    assert answered(table.read(), "count(*), max(id)")[0] == (114, 199)


def test_time_travel(file_catalog: Catalog, spark: SparkSession) -> None:
    """At every snapshot, also inside files that hold rows of several."""
    judged: dict[int, Any] = {}
    with file_catalog.build(data_inlining_row_limit=100) as reference:
        for statement in (
            TABLE, *(insert(first, first + 5) for first in (0, 10, 20)), "DELETE FROM t WHERE id = 11",
            "CALL ducklake_flush_inlined_data('lk')", insert(30, 35), insert(40, 45), "DELETE FROM t WHERE id = 31",
            "CALL ducklake_flush_inlined_data('lk')", "CALL ducklake_merge_adjacent_files('lk')",
        ):  # fmt: skip
            reference.execute(statement)
            newest = reference.value("SELECT max(snapshot_id) FROM ducklake_snapshots('lk')")
            [judged[newest]] = reference.rows(f"SELECT {ALL} FROM t")
    with reading(file_catalog, spark) as lake:
        for version, expected in judged.items():
            rows = lake.table("t").read(version=version)
            assert answered(rows, ALL)[0] == expected


def test_stale_reads_say_so(named: Lake) -> None:
    table = named.table("t")
    old = table.read()
    counted = old.selectExpr("count(*)")
    assert counted.collect()[0][0] == 21
    table.append(named.spark.sql("SELECT 1000 AS id, CAST(NULL AS DATE) AS day, 'x' AS name"))
    assert old.count() == 21
    named.merge_adjacent_files()
    with pytest.raises(StaleReadError):
        old.count()
    assert counted.collect()[0][0] == 21


def test_changes_between_planning_and_running(named: Lake, spark: SparkSession) -> None:
    """What the catalog answered while Spark planned is left out when it runs, whatever the table has become."""
    query = "SELECT count(*), min(id), max(id) FROM {} WHERE id < 15"
    named.table("t").read().createOrReplaceTempView("planned_rows")
    planned = [spark.sql(query.format(name)) for name in ("s.t", "planned_rows")]
    for frame in planned:
        assert "Relation" in frame._jdf.queryExecution().optimizedPlan().toString()
    named.table("t").set_type("id", "bigint")
    for frame in planned:
        assert frame.collect() == [(16, 0, 14)]


def test_files_that_are_to_be_ignored(named: Lake, spark: SparkSession) -> None:
    """Who tells Spark to skip missing files counts the rows that are there."""
    table = named.table("t")
    for setting in ("spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles"):
        spark.conf.set(setting, "true")
        try:
            assert sum(files_read(table.read().selectExpr("count(*)")).values()) == 2
        finally:
            spark.conf.unset(setting)
    assert sum(files_read(table.read().selectExpr("count(*)")).values()) == 0


def test_cached_rows_are_counted(named: Lake, spark: SparkSession) -> None:
    spark.sql("CACHE TABLE s.t")
    try:
        assert spark.sql("SELECT count(*), max(id) FROM s.t").collect() == [(21, 19)]
        named.table("t").append(spark.sql("SELECT 1000 AS id, CAST(NULL AS DATE) AS day, 'x' AS name"))
        assert spark.sql("SELECT count(*), max(id) FROM s.t").collect() == [(22, 1000)]
    finally:
        spark.sql("UNCACHE TABLE s.t")


def test_row_ids_and_changes(named: Lake, spark: SparkSession) -> None:
    table = named.table("t")
    assert answered(table.read(row_ids=True), "count(*)") == ((21,), 0)
    assert answered(table.read(row_ids=True), "max(rowid)")[0] == (20,)
    newest = named.current_snapshot().id
    assert answered(table.changes(0, newest), "count(*), max(id)")[0] == (21, 19)


def test_questions_to_the_catalog(named: Lake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """One query for each kind of file, however many columns are asked for."""
    database = type(named._attachment.catalog.database)
    asked: list[str] = []
    query = database.query

    def noted(self: Any, sql: str, parameters: Any = ()) -> Any:
        asked.append(sql)
        return query(self, sql, parameters)

    rows = named.table("t").read()
    monkeypatch.setattr(database, "query", noted)
    rows.selectExpr(*ALL.split(", ")).collect()
    assert len([sql for sql in asked if "ducklake_data_file" in sql]) == 1
