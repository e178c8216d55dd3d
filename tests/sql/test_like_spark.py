"""Each statement on a lake and on Spark's own Parquet tables: the same rows, the same errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock import Lake
from penstock.errors import UnsupportedError
from penstock.spark.releases import has_views_of_catalogs

HOSTILE = (
    "(1, 'a\\'b\"c/=%$ 🦆', double('NaN'), DATE'1969-12-31', 12345678901234567890123456789012345678BD),"
    " (2, '', -0.0D, DATE'9999-12-31', -1BD), (3, NULL, NULL, NULL, NULL), (4, 'é😀', double('-Infinity'),"
    " DATE'0001-01-01', 0BD)"
)
COLUMNS = "id BIGINT, name STRING, f DOUBLE, day DATE, d DECIMAL(38,0)"
# Of each script the last statement's rows are compared; {t} and {u} are tables, {v} a view.
SCRIPTS = {
    "insert and read": [f"CREATE TABLE {{t}} ({COLUMNS})", f"INSERT INTO {{t}} VALUES {HOSTILE}", "SELECT * FROM {t}"],
    "column list": [
        "CREATE TABLE {t} (a INT, b STRING, c DOUBLE)",
        "INSERT INTO {t} (c, a) VALUES (1.5, 2)",
        "SELECT * FROM {t}",
    ],
    "by name": [
        "CREATE TABLE {t} (a INT, b STRING)",
        "INSERT INTO {t} BY NAME SELECT 'x' AS b, 1 AS a",
        "SELECT * FROM {t}",
    ],
    "defaults": [
        "CREATE TABLE {t} (a INT, b STRING DEFAULT 'it\\'s', c DATE DEFAULT DATE'1969-12-31')",
        "INSERT INTO {t} (a) VALUES (1)",
        "INSERT INTO {t} VALUES (2, DEFAULT, NULL)",
        "INSERT INTO {t} VALUES (3, NULL, DEFAULT)",
        "SELECT * FROM {t}",
    ],
    "insert from itself": [
        "CREATE TABLE {t} AS SELECT id FROM range(5)",
        "INSERT INTO {t} SELECT id + 10 FROM {t} WHERE id > (SELECT avg(id) FROM {t})",
        "SELECT * FROM {t}",
    ],
    "common tables": [
        "CREATE TABLE {t} (a BIGINT)",
        "WITH x AS (SELECT id FROM range(3)) INSERT INTO {t} SELECT id FROM x",
        "WITH y AS (SELECT max(a) AS m FROM {t}) SELECT a, m FROM {t} CROSS JOIN y",
    ],
    "static partition": [
        "CREATE TABLE {t} (a INT, p STRING) PARTITIONED BY (p)",
        "INSERT INTO {t} VALUES (1, 'x'), (2, 'y'), (3, NULL), (4, '')",
        "INSERT OVERWRITE {t} PARTITION (p = 'x') SELECT 9",
        "SELECT * FROM {t} WHERE p IN ('x', 'y')",
    ],
    "overwrite": [
        "CREATE TABLE {t} AS SELECT id FROM range(5)",
        "INSERT OVERWRITE {t} SELECT id FROM range(2)",
        "SELECT * FROM {t}",
    ],
    "no rows": ["CREATE TABLE {t} (a INT, b STRUCT<c: ARRAY<MAP<STRING, INT>>>)", "SELECT * FROM {t}"],
    "nested": [
        "CREATE TABLE {t} (s STRUCT<`a b`: INT, l: ARRAY<STRUCT<x: STRING>>>, m MAP<STRING, DECIMAL(38,10)>)",
        "INSERT INTO {t} VALUES (named_struct('a b', 1, 'l', array(named_struct('x', NULL), NULL)), map('', 1.5BD)),"
        " (NULL, NULL)",
        "SELECT *, s.`a b`, s.l[0].x, m[''] FROM {t}",
    ],
    "joins": [
        "CREATE TABLE {t} AS SELECT id, id % 3 AS k FROM range(20)",
        "CREATE TABLE {u} AS SELECT id AS k, id * 2 AS v FROM range(2)",
        "SELECT a.id, b.v, c.id FROM {t} a LEFT JOIN {u} b USING (k) JOIN {t} c ON c.id = a.id + 1"
        " WHERE NOT EXISTS (SELECT 1 FROM {u} u WHERE u.v = a.id)",
    ],
    "windows and sets": [
        "CREATE TABLE {t} AS SELECT id, id % 3 AS k FROM range(20)",
        "SELECT k, sum(id) OVER (PARTITION BY k ORDER BY id ROWS 2 PRECEDING) FROM {t} UNION ALL"
        " (SELECT k, id FROM {t} EXCEPT SELECT k, id FROM {t} WHERE id > 4)",
    ],
    "rollup": [
        "CREATE TABLE {t} AS SELECT id, id % 3 AS k, id % 2 AS m FROM range(20)",
        "SELECT k, m, count(*), grouping_id() FROM {t} GROUP BY ROLLUP (k, m)",
    ],
    "correlated": [
        "CREATE TABLE {t} AS SELECT id, id % 3 AS k FROM range(20)",
        "SELECT id FROM {t} a WHERE id = (SELECT max(id) FROM {t} b WHERE b.k = a.k)",
    ],
    "lateral and pivot": [
        "CREATE TABLE {t} AS SELECT id, array(id, id + 1) AS l FROM range(3)",
        "SELECT id, e FROM {t} LATERAL VIEW explode(l) AS e WHERE e > 1",
    ],
    "replaced": [
        "CREATE TABLE {t} AS SELECT 1 AS a",
        "DROP TABLE {t}",
        "CREATE TABLE {t} AS SELECT 'x' AS b",
        "SELECT * FROM {t}",
    ],
    "if exists": [
        "DROP TABLE IF EXISTS {t}",
        "CREATE TABLE IF NOT EXISTS {t} (a INT)",
        "CREATE TABLE IF NOT EXISTS {t} (b INT)",
        "SELECT * FROM {t}",
    ],
    "renamed": ["CREATE TABLE {t} AS SELECT 1 AS a", "ALTER TABLE {t} RENAME TO {u_name}", "SELECT * FROM {u}"],
    "added columns": [
        "CREATE TABLE {t} AS SELECT 1 AS a",
        "ALTER TABLE {t} ADD COLUMNS (b STRING, c STRUCT<d: INT>)",
        "INSERT INTO {t} VALUES (2, 'x', named_struct('d', 3))",
        "SELECT * FROM {t}",
    ],
    "truncated": ["CREATE TABLE {t} AS SELECT 1 AS a", "TRUNCATE TABLE {t}", "SELECT * FROM {t}"],
    "views": [
        "CREATE TABLE {t} AS SELECT id FROM range(9)",
        "CREATE VIEW {v} (n COMMENT 'number') AS SELECT id FROM {t} WHERE id > 5",
        "CREATE OR REPLACE VIEW {v} AS SELECT id + 1 AS n FROM {t} WHERE id > 5",
        "INSERT INTO {t} VALUES (100)",
        "SELECT * FROM {v}",
    ],
    "shown columns": ["CREATE TABLE {t} (a INT COMMENT 'x', `b c` STRING)", "SHOW COLUMNS IN {t}"],
    "described": ["CREATE TABLE {t} (a INT COMMENT 'it\\'s', `b c` STRING)", "DESCRIBE {t}"],
    "described query": ["CREATE TABLE {t} (a INT)", "DESCRIBE QUERY SELECT a, a + 1L AS b FROM {t}"],
}
ERRORS = {
    "no table": ["SELECT * FROM {t}"],
    "no column": ["CREATE TABLE {t} (a INT)", "SELECT b FROM {t}"],
    "exists": ["CREATE TABLE {t} (a INT)", "CREATE TABLE {t} (a INT)"],
    "dropped twice": ["DROP TABLE {t}"],
    "too few": ["CREATE TABLE {t} (a INT, b INT)", "INSERT INTO {t} VALUES (1)"],
    "too many": ["CREATE TABLE {t} (a INT)", "INSERT INTO {t} VALUES (1, 2)"],
    "no such in list": ["CREATE TABLE {t} (a INT)", "INSERT INTO {t} (b) VALUES (1)"],
    "unsafe": ["CREATE TABLE {t} (a INT)", "INSERT INTO {t} VALUES (DATE'2020-01-01')"],
    "overflow": ["CREATE TABLE {t} (a TINYINT)", "INSERT INTO {t} SELECT id * 1000 FROM range(3)"],
    "no function": ["CREATE TABLE {t} (a INT)", "SELECT nope(a) FROM {t}"],
    "syntax": ["SELEC 1"],
    "fails at run time": ["CREATE TABLE {t} AS SELECT CAST(raise_error('oops') AS INT) AS a"],
}


@pytest.fixture
def places(lake: Lake, spark: SparkSession, tmp_path: Path) -> Iterator[list[dict[str, str]]]:
    """The names of tables in the lake, and in a schema of Spark's own catalog."""
    spark.sql(f"CREATE SCHEMA plain LOCATION '{tmp_path}/plain'")
    try:
        yield [
            {name: f"{prefix}.{name}" for name in "tuv"} | {"u_name": u_name}
            for prefix, u_name in (("sales.main", "main.u"), ("spark_catalog.plain", "plain.u"))
        ]
    finally:
        spark.sql("DROP SCHEMA plain CASCADE")


def outcome(spark: SparkSession, script: list[str], names: dict[str, str]) -> list[str]:
    *before, last = (statement.format(**names) for statement in script)
    for statement in before:
        # Spark's own catalog makes Hive tables otherwise.
        if statement.startswith("CREATE TABLE") and "spark_catalog" in statement:
            head, separator, query = statement.partition(
                " PARTITIONED" if " PARTITIONED" in statement else " AS SELECT"
            )
            statement = f"{head} USING parquet{separator}{query}"
        spark.sql(statement)
    found = spark.sql(last)
    return [str(found.dtypes), *sorted(repr(tuple(row)) for row in found.collect())]


@pytest.mark.parametrize("name", SCRIPTS)
def test_same_rows(spark: SparkSession, places: list[dict[str, str]], name: str) -> None:
    if name == "views" and not has_views_of_catalogs(spark.version):
        with pytest.raises(UnsupportedError, match=r"use lake\.create_view"):
            outcome(spark, SCRIPTS[name], places[0])
        return
    ours, sparks = (outcome(spark, SCRIPTS[name], names) for names in places)
    assert ours == sparks
    assert len(ours) > 1 or name in ("no rows", "if exists", "truncated")


@pytest.mark.parametrize("name", ERRORS)
def test_same_errors(spark: SparkSession, places: list[dict[str, str]], name: str) -> None:
    conditions = []
    for names in places:
        with pytest.raises(PySparkException) as caught:
            outcome(spark, ERRORS[name], names)
        conditions.append(caught.value.getCondition())
    assert conditions[0] == conditions[1]
    assert conditions[0] is not None
