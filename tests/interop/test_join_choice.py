"""What Spark is told of a table's size: of the files that remain, so that it picks the right join."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import penstock
from support.calls import statements_counted
from support.catalogs import Catalog, SQLiteCatalog

FILES, ROWS = (
    8,
    2000,
)  # each file is 2000 random texts of 64 letters, about 64 kB: six of them are more than the threshold
THRESHOLD = "200000"


@pytest.fixture
def threshold(spark: SparkSession) -> Iterator[None]:
    old = spark.conf.get("spark.sql.autoBroadcastJoinThreshold")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", THRESHOLD)
    yield
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", str(old))


@pytest.fixture
def shared(tmp_path: Path) -> Catalog:
    catalog = SQLiteCatalog(tmp_path)
    with catalog.build(data_inlining_row_limit=0) as lake:
        for table in ("left_side", "right_side"):
            lake.execute(f"CREATE TABLE {table} (part INTEGER, id INTEGER, k UUID, note VARCHAR)")
            for part in range(FILES):
                lake.execute(
                    f"INSERT INTO {table} SELECT {part}, i, uuid(), md5(random()::VARCHAR) || md5(random()::VARCHAR)"
                    f" FROM range({ROWS}) r(i)"
                )
    return catalog


def _join(frame: DataFrame) -> str:
    """The kind of the only join of a query, and which side it keeps whole where it broadcasts one."""
    plan: str = frame._jdf.queryExecution().executedPlan().toString()
    broadcast = next((line for line in plan.splitlines() if "BroadcastHashJoin" in line), None)
    if broadcast is None:
        assert "SortMergeJoin" in plan
        return "none"
    return "left" if "BuildLeft" in broadcast else "right"


@pytest.mark.usefixtures("threshold")
@pytest.mark.parametrize("named", [False, True])
def test_what_a_filter_leaves_decides_the_join(shared: Catalog, spark: SparkSession, named: bool) -> None:
    with penstock.attach(shared.uri, read_only=True, spark=spark, name="choice") as lake:

        def rows(name: str) -> DataFrame:
            return spark.table(f"choice.main.{name}") if named else lake.table(name).read()

        left, right = rows("left_side"), rows("right_side")
        assert _join(left.join(right, "id")) == "none"
        assert _join(left.where("part = 3").join(right, "id")) == "left"
        assert _join(left.join(right.where("part = 3"), "id")) == "right"
        assert _join(left.where("part >= 0").join(right.where("part < 100"), "id")) == "none"
        few = left.where("part = 3 AND id < 5").join(right.where("part = 2"), "id")
        assert _join(few) in ("left", "right")
        assert sorted(row.id for row in few.collect()) == [0, 1, 2, 3, 4]
        assert left.where("part = 99").join(right, "id").collect() == []


@pytest.mark.usefixtures("threshold")
def test_filters_on_what_is_computed_count_too(shared: Catalog, spark: SparkSession) -> None:
    """A uuid is read as bytes: each file has its own range of them, in which most lie."""
    with penstock.attach(shared.uri, read_only=True, spark=spark) as lake:
        left, right = lake.table("left_side").read(), lake.table("right_side").read()
        no_such = left.where("k < '00000000-0000-0000-0000-000000000000'")
        assert _join(no_such.join(right, left.id == right.id)) == "left"


@pytest.mark.usefixtures("threshold")
def test_to_ask_for_the_size_is_no_second_question(shared: Catalog, spark: SparkSession) -> None:
    with penstock.attach(shared.uri, read_only=True, spark=spark) as lake:
        left, right = lake.table("left_side").read(), lake.table("right_side").read()
        joined = left.where("part = 3").join(right.where("part = 3 AND id < 10"), "id")
        _join(joined)  # planned: the sizes are known
        database: Any = lake._attachment.catalog.database
        with statements_counted(database._connection) as asked:
            assert joined.count() == 10
        files = [sql for sql in asked if "ducklake_file_column_stats" in sql]
        assert len(files) == 2, asked  # another plan, of the count: one question for each side
