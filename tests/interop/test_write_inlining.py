"""Small inserts kept in the catalog: how many rows, of which tables, and where a catalog cannot hold them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from penstock import Snapshot
from penstock.ducklake.changing import change_job
from penstock.spark import write_job
from penstock.spark.write_job import Written, collect_written
from support.catalogs import Catalog
from support.compare import assert_same_tables, query
from support.reference import METADATA
from support.writing import attached

ODD_NAMES = "id INT, `emoji 😀` STRING, ctid STRING, `a.b` STRING, `q\"u'o` STRING, `ba``ck` STRING"
INLINED, FILED = "inlined_insert", "inserted_into_table"


def kinds(*made: Snapshot | None) -> list[str]:
    return [str(snapshot and snapshot.changes_made).split(":")[0] for snapshot in made]


def test_the_limit_counts_the_rows_of_all_tasks(catalog: Catalog, spark: SparkSession) -> None:
    rows = spark.range(0, 40, 1, 4).selectExpr("CAST(id AS INT) AS id", "concat('it''s ', id) AS t")

    def some(count: int, tasks: int) -> DataFrame:
        return rows.where(f"id % 10 < {count // tasks} AND id < {10 * tasks}")

    with attached(catalog, spark) as lake:
        table = lake.create_table("t", "id INT, t STRING")
        made = [
            table.append(some(count, tasks), distribution="none")
            for count, tasks in ((8, 4), (10, 2), (12, 4), (10, 1), (20, 2))
        ]
        assert kinds(*made) == [INLINED, INLINED, FILED, INLINED, FILED]
        assert table.files().count() == 2  # a few rows of every task make one file
        with lake.transaction():
            table.append(some(3, 1))
            table.append(some(8, 4), distribution="none")
            assert table.read().count() == 60 + 11
        table.add_column("d DOUBLE DEFAULT 1.5")
        table.append(some(1, 1), by_name=True)
    with catalog.reference() as reference:
        assert reference.value("SELECT count(*) FROM t") == 72
        if catalog.kind != "mysql":
            reference.execute(
                "UPDATE t SET t = 'new' WHERE id = 0",
                "DELETE FROM t WHERE id = 1",
                "CALL ducklake_flush_inlined_data('lk')",
                "INSERT INTO t VALUES (1000, 'x', 2)",
            )
    assert_same_tables(catalog, spark, "t")


def test_rows_beyond_the_limit_never_visit_the_driver(
    file_catalog: Catalog, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of eight tasks has few enough rows for the catalog, all of them have not."""
    visited: list[int] = []

    def noted(rows: Iterable[Row]) -> Written:
        told = list(rows)
        blobs = [row.rows for row in told if row.rows is not None]
        visited.append(sum(batch.num_rows for blob in blobs for batch in pa.ipc.open_stream(blob)))
        return collect_written(told)

    for module in (write_job, change_job):
        monkeypatch.setattr(module, "collect_written", noted)
    rows = spark.range(0, 80, 1, 8).selectExpr("CAST(id AS INT) AS id", "id % 3 AS p")
    with attached(file_catalog, spark, data_inlining_row_limit=60) as lake:
        table = lake.create_table("t", "id INT, p BIGINT", partitioned_by=["p"])
        made = [
            table.append(rows, distribution="none"),
            table.append(rows.where("id < 60"), distribution="none"),
        ]
        assert kinds(*made) == [FILED, INLINED]
        assert visited == [0, 60]
        assert table.files().count() == 3  # the rows of all tasks together, a file for each partition
        table.update({"p": "p + 10"}, "id % 2 = 1")
        assert sum(visited) == 60
        table.update({"p": "p + 10"}, "id = 8")
        assert sum(visited) == 62
    assert_same_tables(file_catalog, spark, "t")


def test_rows_that_the_catalog_cannot_hold_go_to_files(catalog: Catalog, spark: SparkSession) -> None:
    rows = spark.sql("SELECT 1 AS id, array(array(']')) AS nested, 'a' AS t")
    with attached(catalog, spark) as lake:
        nested = lake.create_table("brackets", rows.schema)
        shapes = lake.create_table("shapes", "id INT, g GEOMETRY")
        variants = lake.create_table("variants", "id INT, v VARIANT")
        odd = lake.create_table("odd", ODD_NAMES)
        made = [
            nested.append(rows),
            nested.append(rows.selectExpr("id", "array(array('fine')) AS nested", "t")),
            shapes.append(spark.sql("SELECT 1, st_geomfromwkb(X'0101000000000000000000F03F0000000000000040')")),
            variants.append(spark.sql("SELECT 1, parse_json('{\"a\": [1]}')")),
            odd.append(spark.sql("SELECT 1, 'x', 'y', 'z', '\"', '`'")),
        ]
        duckdb, sqlite = catalog.kind == "duckdb", catalog.kind == "sqlite"
        kept = [duckdb, True, False, duckdb, duckdb or sqlite]
        assert kinds(*made) == [INLINED if one else FILED for one in kept]
    assert_same_tables(catalog, spark, "brackets", "shapes", "variants", "odd")


def test_a_table_that_the_extension_made(catalog: Catalog, spark: SparkSession) -> None:
    """Its inlined table on MySQL has columns that lose digits and fractions: rows go to files there."""
    with catalog.reference() as reference:
        reference.execute(
            "CREATE TABLE plain (id INTEGER, \"Mixed Case\" VARCHAR)",
            "CREATE TABLE times (id INTEGER, moment TIMESTAMP, n DOUBLE)",
            "INSERT INTO plain VALUES (1, 'theirs')",
        )  # fmt: skip
    with attached(catalog, spark) as lake:
        made = [
            lake.table("plain").append(spark.sql("SELECT 2, 'ours 😀'")),
            lake.table("times").append(spark.sql("SELECT 1, timestamp_ntz'1969-12-31 23:59:59.999999', double('NaN')")),
        ]
        expected = FILED if catalog.kind == "mysql" else INLINED
        assert kinds(*made)[1] == expected
    assert_same_tables(catalog, spark, "plain", "times")


def test_all_rows_are_replaced(file_catalog: Catalog, spark: SparkSession) -> None:
    """By rows in files and in the catalog, also by such as are read from the table itself."""
    rows = spark.sql("SELECT id, concat('t', id) AS t FROM range(0, 30, 1, 1)")
    with attached(file_catalog, spark) as lake:
        table = lake.create_table("t", rows)
        table.append(rows.limit(2))
        table.overwrite(table.read().where("id % 2 = 0").selectExpr("t", "id + 100 AS id"), by_name=True)
        assert sorted(row.id for row in table.read().collect())[:2] == [100, 100]
        table.overwrite(rows.limit(3))
        table.append(table.read())
        assert table.read().count() == 6
        before = lake.current_snapshot()
        table.overwrite(rows.where("false"))
        assert table.read().count() == 0
        assert table.read(version=before.id).count() == 6
        table.append(rows.limit(1))
    with file_catalog.reference() as reference:
        reference.execute("INSERT INTO t VALUES (1, 'theirs')")
    assert_same_tables(file_catalog, spark, "t")


def test_statistics_of_inlined_rows(file_catalog: Catalog, spark: SparkSession) -> None:
    """The table's statistics grow as the extension's do, by rows in the catalog and in files."""
    values = "(1, 'b', 1.5), (NULL, 'a', NULL), (-7, NULL, 2.5)"
    with attached(file_catalog, spark) as lake:
        for name in ("ours", "theirs"):
            lake.create_table(name, "id INT, t STRING, f DOUBLE")
        lake.table("ours").append(spark.sql(f"SELECT * FROM VALUES {values}"))
        lake.table("ours").append(spark.range(30).selectExpr("CAST(id AS INT)", "'zz'", "id / 2"))
    with file_catalog.reference() as reference:
        reference.execute(
            f"INSERT INTO theirs VALUES {values}", "INSERT INTO theirs SELECT i, 'zz', i / 2 FROM range(30) r(i)"
        )

        def statistics(table: str) -> Any:
            columns = query(
                reference,
                "SELECT column_id, contains_null, min_value, max_value, extra_stats"
                f" FROM {METADATA}.ducklake_table_column_stats JOIN {METADATA}.ducklake_table USING (table_id)"
                f" WHERE table_name = '{table}'",
            ).rows
            counts = reference.rows(
                f"SELECT record_count, next_row_id FROM {METADATA}.ducklake_table_stats"
                f" JOIN {METADATA}.ducklake_table USING (table_id) WHERE table_name = '{table}'"
            )
            return columns, counts

        assert statistics("ours") == statistics("theirs")
