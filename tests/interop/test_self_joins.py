"""The law of pruning for queries that use one table several times, with other filters each time, in every format."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import penstock
import penstock.delta
import penstock.lance
from support.catalogs import DuckDBCatalog
from support.effort import tries

ROWS = ((1, 10, "a"), (1, 0, "b"), (2, 20, "a"), (2, 20, None), (3, None, "b"), (4, 5, "c"), (None, 7, "a"))
GONE = (99, 99, "gone")  # the row that is deleted again, from the file of the first ones
# For each kind of table; Python reads encrypted files.
EXAMPLES = int(os.environ.get("PENSTOCK_SELF_JOINS", tries(12, 100)))
COLUMNS = "id INT, a INT, s STRING"
# What a query can do with the rows of {left} and {right}, both of them filtered rows of the same table.
SHAPES = {
    "inner": "SELECT x.id, x.a, y.a FROM {left} x JOIN {right} y ON x.{key} = y.{key}",
    "left outer": "SELECT x.id, x.a, y.a FROM {left} x LEFT JOIN {right} y ON x.{key} = y.{key}",
    "full outer": "SELECT x.id, x.a, y.a FROM {left} x FULL JOIN {right} y ON x.{key} = y.{key}",
    "cross": "SELECT x.id, y.a FROM {left} x CROSS JOIN {right} y",
    "left semi": "SELECT * FROM {left} x LEFT SEMI JOIN {right} y ON x.{key} = y.{key}",
    "left anti": "SELECT * FROM {left} x LEFT ANTI JOIN {right} y ON x.{key} = y.{key}",
    "anti of anti": "SELECT * FROM {left} x LEFT ANTI JOIN"
    " (SELECT * FROM {right} z LEFT ANTI JOIN {left} w ON z.s = w.s)"
    " y ON x.{key} = y.{key}",
    "not exists": "SELECT * FROM {left} x WHERE NOT EXISTS (SELECT 1 FROM {right} y WHERE y.{key} = x.{key})",
    "exists": "SELECT * FROM {left} x WHERE EXISTS (SELECT 1 FROM {right} y WHERE y.{key} <=> x.{key}) OR x.a > 15",
    "not in": "SELECT * FROM {left} x WHERE {key} NOT IN (SELECT {key} FROM {right} y)",
    "in": "SELECT * FROM {left} x WHERE {key} IN (SELECT {key} FROM {right} y)",
    "scalar": "SELECT id, (SELECT max(a) FROM {right} y WHERE y.{key} = x.{key}) FROM {left} x",
    "except": "SELECT * FROM {left} x EXCEPT SELECT * FROM {right} y",
    "except all": "SELECT s FROM {left} x EXCEPT ALL SELECT s FROM {right} y",
    "intersect": "SELECT {key}, s FROM {left} x INTERSECT SELECT {key}, s FROM {right} y",
    "union": "SELECT * FROM {left} x UNION ALL SELECT * FROM {right} y",
}
PREDICATES = (
    "a > 5", "a < 3", "id = 1", "id IN (2, 4)", "s = 'a'", "s IS NULL", "a IS NOT NULL", "id <> 2", "a >= 20 OR id = 4",
    "s LIKE 'b%'", "NOT (a = 10)", "true",
)  # fmt: skip


@dataclass(frozen=True)
class View:
    """A view of the table as Penstock reads it."""

    spark: SparkSession
    name: str

    def check(self, shape: str, left: str, right: str, key: str) -> None:
        """The rows are those that DuckDB finds in the table as a whole."""
        sides = {name: f"(SELECT * FROM {{view}} WHERE {where})" for name, where in (("left", left), ("right", right))}
        query = SHAPES[shape].format(key=key, **sides)
        found = [tuple(row) for row in self.spark.sql(query.format(view=self.name)).collect()]
        assert sorted(found, key=str) == expected(query), (shape, left, right, key)


def expected(query: str) -> list[tuple[object, ...]]:
    for spark, duckdb_s in (("LEFT SEMI", "SEMI"), ("LEFT ANTI", "ANTI"), ("<=>", "IS NOT DISTINCT FROM")):
        query = query.replace(spark, duckdb_s)
    return sorted(judge().execute(query.format(view="t")).fetchall(), key=str)


@cache
def judge() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (id INT, a INT, s VARCHAR)")
    connection.executemany("INSERT INTO t VALUES (?, ?, ?)", ROWS)
    return connection


COMPILED = [pytest.param(kind, marks=pytest.mark.compiled) for kind in ("ducklake", "ducklake deletes", "delta")]


@pytest.fixture(scope="module", params=[*COMPILED, "ducklake encrypted", "lance"])
def view(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[View]:
    kind: str = request.param
    name = kind.replace(" ", "_")
    place = Path(tmp_path_factory.mktemp(name))
    with ExitStack() as stack:
        match kind.split():
            case ["ducklake", *traits]:
                uri, encrypted = DuckDBCatalog(place).uri, "encrypted" in traits
                lake = penstock.attach(uri, spark=spark, encrypted=encrypted, data_inlining_row_limit=0)
                table: Any = stack.enter_context(lake).create_table("t", COLUMNS)
            case ["delta"]:
                table = penstock.delta.create(str(place / "t"), COLUMNS, partitioned_by=["s"], spark=spark)
            case _:
                table = penstock.lance.create(str(place), "t", COLUMNS, partitioned_by=["bucket(2, id)"], spark=spark)
        _fill(spark, table, deleting=kind != "ducklake")
        table.read().createOrReplaceTempView(name)
        yield View(spark, name)


def _fill(spark: SparkSession, table: Any, *, deleting: bool) -> None:
    """Three files, or more where the table is partitioned, whose statistics tell the filters apart."""
    for rows in ((ROWS[0], *([GONE] if deleting else [])), ROWS[1:2], ROWS[2:]):
        table.append(spark.createDataFrame(rows, COLUMNS).coalesce(1))
    if deleting:
        table.delete("id = 99")


def test_a_row_without_a_smaller_one(view: View) -> None:
    """The query by which the defect was found: the right side's own filter is not the left side's."""
    query = f"""SELECT id, a FROM {view.name} x WHERE a > 5 AND s = 'a' AND id IS NOT NULL
                AND NOT EXISTS (SELECT 1 FROM {view.name} y WHERE y.id = x.id AND y.a < 3)"""
    assert [tuple(row) for row in view.spark.sql(query).collect()] == [(2, 20)]
    left, right = (view.spark.table(view.name).where(where) for where in ("a > 5", "a < 3"))
    assert {row.id for row in left.select("id").subtract(right.select("id")).collect()} == {2, None}
    assert sorted(row.a for row in left.join(right, "id", "left_anti").collect()) == [7, 20, 20]


def test_any_filters_on_both_sides(view: View) -> None:
    sides = st.sampled_from(PREDICATES)
    examples = EXAMPLES // 4 if view.name == "ducklake_encrypted" else EXAMPLES

    @settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
    @given(st.sampled_from(sorted(SHAPES)), sides, sides, st.sampled_from(["id", "a", "s"]))
    def law(shape: str, left: str, right: str, key: str) -> None:
        view.check(shape, left, right, key)

    law()
