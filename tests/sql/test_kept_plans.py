"""The plan of a table's rows is kept from one query to the next: only while nothing has changed that it was made by."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock import Lake
from penstock.errors import NotFoundError
from penstock.spark import stores
from penstock.sql.table_rows import TableRows
from support.catalogs import Catalog, SQLiteCatalog
from support.writing import attached

from .conftest import Sql

ZONE, IGNORED = "spark.sql.session.timeZone", "spark.sql.files.ignoreMissingFiles"
# Each reads t more than once, with other filters or none.
QUERIES = [
    "SELECT x.id, y.id FROM {t} x JOIN {t} y ON x.id = y.p WHERE x.p = 1 AND y.id > 2",
    "SELECT x.id, z.s FROM {t} x JOIN {t} y ON x.id = y.id JOIN {t} z ON y.p = z.id WHERE z.id < 3",
    "SELECT id FROM {t} WHERE id > 3 UNION ALL SELECT p FROM {t} WHERE id <= 3 UNION ALL SELECT id FROM {t}",
    "SELECT id FROM {t} x WHERE NOT EXISTS (SELECT 1 FROM {t} y WHERE y.p = x.id AND y.id > 1)",
    "SELECT id, (SELECT max(y.id) FROM {t} y WHERE y.p = x.p) FROM {t} x",
    "WITH few AS (SELECT * FROM {t} WHERE p = 0) SELECT a.id, b.id FROM few a JOIN few b ON a.p = b.p",
    "SELECT (SELECT count(*) FROM {t}), (SELECT count(s) FROM {t} WHERE p = 1), (SELECT max(id) FROM {t})",
]


@pytest.fixture(autouse=True)  # before a lake is attached, which takes the methods that are there
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The pins that Python was asked for rows at."""
    pins: list[str] = []
    rows = TableRows.rows

    def noting(self: TableRows, handle: str, pin: str, row_ids: bool) -> object:
        pins.append(pin)
        return rows(self, handle, pin, row_ids)

    monkeypatch.setattr(TableRows, "rows", noting)
    # Where a process knows stores, from other tests here, each scan has their keys and is not kept.
    monkeypatch.setattr(stores, "known_stores", dict)
    return pins


@pytest.fixture
def table(lake: Lake, spark: SparkSession, sql: Sql) -> str:
    """Three files by partition, rows of which are deleted in one."""
    lake.set_option("data_inlining_row_limit", 0)
    sql("CREATE TABLE sales.t (id BIGINT, p BIGINT, s STRING) PARTITIONED BY (p)")
    sql("INSERT INTO sales.t SELECT id, id % 3, IF(id % 2 = 0, NULL, 'odd ' || id) FROM range(12)")
    sql("DELETE FROM sales.t WHERE id = 4")
    return "sales.t"


@pytest.mark.slow
def test_queries_that_read_a_table_more_than_once(table: str, spark: SparkSession, sql: Sql, asked: list[str]) -> None:
    rows = [tuple(row) for row in spark.table(table).collect()]
    assert len(rows) == 11
    spark.createDataFrame(rows, "id BIGINT, p BIGINT, s STRING").createOrReplaceTempView("plain")
    for text in QUERIES:
        wanted = sql(text.format(t="plain"))
        assert sql(text.format(t=table)) == sql(text.format(t=table)) == wanted, text
    assert len(asked) == 1


def test_new_snapshots_have_new_plans(table: str, sql: Sql, asked: list[str]) -> None:
    count = f"SELECT count(*), sum(id) FROM {table}"
    assert sql(count) == sql(count) == [(11, 62)]
    sql(f"INSERT INTO {table} VALUES (100, 1, 'x')")
    assert sql(count) == sql(count) == [(12, 162)]
    sql(f"DELETE FROM {table} WHERE id = 100")
    assert sql(count) == [(11, 62)]
    sql(f"ALTER TABLE {table} RENAME COLUMN s TO text")
    assert sql(f"SELECT text FROM {table} WHERE id = 1") == [("odd 1",)]
    sql(f"DROP TABLE {table}")
    sql(f"CREATE TABLE {table} AS SELECT 1 AS id")
    assert sql(f"SELECT * FROM {table}") == [(1,)]
    assert len(asked) == len(set(asked))


def test_snapshots_of_others(tmp_path: Path, spark: SparkSession, sql: Sql) -> None:
    catalog = SQLiteCatalog(tmp_path)
    with attached(catalog, spark, name="shared"), catalog.reference() as duckdb:
        duckdb.execute("CREATE TABLE t AS SELECT range AS id FROM range(1000)")
        select = "SELECT count(*), max(x.id) FROM shared.t x JOIN shared.t y ON x.id = y.id"
        assert sql(select) == sql(select) == [(1000, 999)]
        duckdb.execute("DELETE FROM t WHERE id >= 500", "INSERT INTO t SELECT range FROM range(5000, 5900)")
        assert sql(select) == [(1400, 5899)]
        duckdb.execute("DROP TABLE t", "CREATE TABLE t AS SELECT 'a' AS id FROM range(3)")
        assert sql("SELECT * FROM shared.t") == [("a",)] * 3


def test_settings_and_times_have_plans_of_their_own(
    table: str, lake: Lake, spark: SparkSession, sql: Sql, asked: list[str]
) -> None:
    first = lake.current_snapshot().id
    select = f"SELECT count(*) FROM {table} WHERE p = 0"
    assert sql(select) == sql(select) == [(4,)]
    assert len(asked) == 1
    before = spark.conf.get(ZONE)
    spark.conf.set(ZONE, "Asia/Kathmandu")
    try:
        assert sql(select) == [(4,)]
        assert len(asked) == 2
    finally:
        spark.conf.set(ZONE, before)
    sql(f"INSERT INTO {table} VALUES (300, 0, NULL)")
    older = f"SELECT count(*) FROM {table} VERSION AS OF {first} WHERE p = 0"
    assert (sql(older), sql(select), sql(older), sql(select)) == ([(4,)], [(5,)], [(4,)], [(5,)])
    with lake.transaction():
        sql(f"DELETE FROM {table} WHERE p = 0")
        assert sql(select) == [(0,)]
    assert sql(select) == [(0,)]


def test_row_ids_beside_rows(table: str, sql: Sql) -> None:
    both = f"SELECT x.rowid, y.id FROM {table} x JOIN {table} y ON x.id = y.id WHERE y.id IN (3, 5)"
    assert sql(both) == sql(both) == sql(f"SELECT rowid, id FROM {table} WHERE id IN (3, 5)")


def test_threads_share_plans(table: str, sql: Sql) -> None:
    def found(number: int) -> list[tuple[object, ...]]:
        return sql(f"SELECT id FROM {table} WHERE id = {number}")

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(found, list(range(12)) * 2))
    assert answers == [[] if number == 4 else [(number,)] for number in list(range(12)) * 2]


def test_a_lake_that_is_attached_again(
    table: str, lake: Lake, spark: SparkSession, sql: Sql, file_catalog: Catalog, asked: list[str]
) -> None:
    assert sql(f"SELECT count(*) FROM {table}") == [(11,)]
    lake.close()
    with attached(file_catalog, spark, name="sales"):
        assert sql(f"SELECT count(*) FROM {table}") == [(11,)]
    assert len(asked) == 2


def test_a_lake_at_an_older_snapshot_whose_files_are_merged(tmp_path: Path, spark: SparkSession, sql: Sql) -> None:
    catalog = SQLiteCatalog(tmp_path)
    with catalog.build(data_inlining_row_limit=0) as duckdb:
        duckdb.execute("CREATE TABLE t AS SELECT 0 AS id", *(f"INSERT INTO t VALUES ({i})" for i in range(1, 4)))
    with attached(catalog, spark, name="older", snapshot_version=4):
        assert sql("SELECT * FROM older.t") == [(i,) for i in range(4)]
        with attached(catalog, spark, data_inlining_row_limit=0) as lake:
            lake.table("t").append([(9,)])
            lake.merge_adjacent_files()
        assert sql("SELECT * FROM older.t") == [(i,) for i in range(4)]
        assert sql("SELECT count(*) FROM older.t") == [(4,)]


def test_files_that_are_gone_between_two_queries(
    table: str, lake: Lake, spark: SparkSession, sql: Sql, tmp_path: Path
) -> None:
    [folder] = {Path(row.data_file).parents[1] for row in lake.table("t").files().collect()}
    select = f"SELECT id FROM {table} WHERE p = 0"
    before = sql(select)
    folder.rename(tmp_path / "elsewhere")
    for ignored in ("false", "true"):
        spark.conf.set(IGNORED, ignored)
        try:
            with pytest.raises(NotFoundError, match=r"the files of main\.t are gone: there is no folder"):
                sql(select)
        finally:
            spark.conf.unset(IGNORED)
    (tmp_path / "elsewhere").rename(folder)
    assert sql(select) == before
