"""Rows that statements change are found by few columns, and read by their places: it makes no difference to anyone."""

from __future__ import annotations

import re
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from interop import test_row_changes as statements
from penstock import Lake, Table
from penstock.ducklake.changing import completed_rows, delete_job, merges, placed_rows, row_places, updates
from penstock.ducklake.changing.row_places import RowPlaces, pack, unpack
from support.catalogs import Catalog
from support.compare import assert_same_tables
from support.writing import attached, leaving_nothing

NUMBERS = st.lists(st.integers(0, 2**61 + 10) | st.integers(0, 300_000), max_size=200)


@given(NUMBERS, NUMBERS)
def test_positions_survive_their_packing(first: list[int], second: list[int]) -> None:
    parts = [np.array(numbers, np.int64) for numbers in (first, second)]
    assert unpack(map(pack, parts)).tolist() == sorted({*first, *second})
    places = RowPlaces(Any, [(7, pack(part)) for part in parts])  # type: ignore[arg-type]
    assert places.repeats == bool({*first} & {*second})


def test_positions_at_hand_take_little_room() -> None:
    """To count them, and to look for rows that come twice, nobody takes them out: those of many rows take much."""
    places = RowPlaces(Any, [(7, pack(np.arange(0, 2**22, 2)))] * 2)  # type: ignore[arg-type]
    tracemalloc.start()
    try:
        assert (places.repeats, [len(found) for found in (places.by_file or {}).values()]) == (True, [2**21])
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


@pytest.fixture
def two_passes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Table]]:
    """Every update and merge that can, reads what it needs first, however few rows there are. The test has some."""
    found: list[Any] = []

    def counted(read: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            result = read(*arguments)
            found.extend([] if result is None else [result])
            return result

        return call

    monkeypatch.setattr(placed_rows, "FEW_VALUES", -1)
    monkeypatch.setattr(placed_rows, "MOST_SHARE", 1e9)
    monkeypatch.setattr(updates, "completion_of", counted(completed_rows.completion_of))
    monkeypatch.setattr(merges, "matched_rows", counted(placed_rows.matched_rows))
    yield found
    assert found, "nothing was read by its place"


ALIKE = [
    statements.test_merges_of_one_kind,
    statements.test_rows_of_every_type_are_written_again,
    *(
        pytest.param(test, marks=pytest.mark.slow)
        for test in (
            statements.test_updates,
            statements.test_row_ids_survive_the_extensions_merge,
            statements.test_deletion_vectors_and_encryption,
            statements.test_conditions_and_values_with_subqueries,
            statements.test_nanoseconds_and_odd_names_survive,
            statements.test_what_goes_wrong_changes_nothing,
            statements.test_keys_of_many_types,
            statements.test_row_ids_in_conditions,
            statements.test_nested_keys,
        )
    ),
]


@pytest.mark.usefixtures("two_passes")
@pytest.mark.parametrize("test", ALIKE, ids=lambda test: test.__name__.removeprefix("test_"))
@pytest.mark.slow
def test_in_two_passes(test: Callable[..., None], file_catalog: Catalog, spark: SparkSession) -> None:
    """What is said elsewhere of statements is true of these."""
    test(file_catalog, spark)


def change(lake: Lake, spark: SparkSession) -> list[Any]:
    """Statements of every kind on files and rows of the catalog, also on rows that were changed before."""
    table = statements.table_of(lake, "t", spark)
    table.delete("id % 9 = 4 OR id = 203")
    table.update({"name": "concat(name, '!')", "s.a": "s.a + 1"}, where="id % 7 = 3 OR id > 202")
    source = statements.some(spark, 60, 90).union(statements.some(spark, 200, 210)).where("id % 4 = 1")
    upsert = (
        table.merge(source, "id").when_matched_delete("target.f = 'NaN'").when_matched_update({"name": "source.name"})
    )
    upsert.when_not_matched_insert({"id": "source.id", "name": "'new'"}).execute()
    table.delete("name LIKE '%!'")
    shown = table.read(row_ids=True).withColumn("rowid", F.expr("CASE WHEN name <> 'new' THEN rowid END"))
    return sorted(map(str, shown.collect()))


WAYS: dict[str, list[tuple[Any, str, float]]] = {
    "here": [],
    "by tasks": [(delete_job, "FEW_FILES", 0)],
    "kept": [(row_places, "MOST_ROWS_AT_HAND", -1)],
    "two passes": [(placed_rows, "FEW_VALUES", -1), (placed_rows, "MOST_SHARE", 1e9)],
    "two passes, kept": [
        (placed_rows, "FEW_VALUES", -1), (placed_rows, "MOST_SHARE", 1e9), (row_places, "MOST_ROWS_AT_HAND", -1),
    ],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.compiled
def test_all_ways_come_to_the_same(
    sqlite_catalog: Catalog, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delete files that are written here or by tasks, positions at hand or kept, one pass or two."""
    expected: list[Any] = []
    for number, settings in enumerate(WAYS.values()):
        with monkeypatch.context() as patched, attached(sqlite_catalog, spark) as lake:
            for place, name, value in settings:
                patched.setattr(place, name, value)
            found = change(lake, spark)
            expected = expected or found
            assert found == expected, list(WAYS)[number]
            assert_same_tables(sqlite_catalog, spark, "t")
            lake.drop_table("t")


def test_a_delete_file_that_cannot_be_written(
    file_catalog: Catalog, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others go again."""
    real, written = delete_job.write_delete_file, []

    def failing(*arguments: Any, **options: Any) -> Any:
        written.append(real(*arguments, **options))
        if len(written) > 1:
            raise OSError("no space left")
        return written[-1]

    with attached(file_catalog, spark, data_inlining_row_limit=0) as lake:
        table = statements.table_of(lake, "t", spark)
        monkeypatch.setattr(delete_job, "write_delete_file", failing)
        with leaving_nothing(file_catalog, lake, "no space left", OSError):
            table.delete("id % 2 = 0")
    assert len(written) > 1


def _executions(spark: SparkSession) -> list[Any]:
    """The newest queries that have run; older ones Spark forgets."""
    store: Any = spark._jsparkSession.sharedState().statusStore()
    found = store.executionsList()
    return [found.apply(place) for place in range(found.size())]


@contextmanager
def effort(spark: SparkSession) -> Iterator[dict[str, Any]]:
    """The jobs that run meanwhile, and the columns that scans of Parquet files read."""
    context: Any = spark.sparkContext._jsc.sc()
    known, jobs = {run.executionId() for run in _executions(spark)}, context.dagScheduler().numTotalJobs()
    told: dict[str, Any] = {}
    yield told
    context.listenerBus().waitUntilEmpty()
    told["jobs"] = context.dagScheduler().numTotalJobs() - jobs
    plans = [run.physicalPlanDescription() for run in _executions(spark) if run.executionId() not in known]
    schemas = [schema for plan in plans for schema in re.findall(r"ReadSchema: struct<(.*)>", plan)]
    told["read"] = [set(re.findall(r"(\w+):", schema)) for schema in schemas]


ROW_INDEX, ROW_ID = "_tmp_metadata_row_index", "_ducklake_internal_row_id"


@pytest.mark.compiled
@pytest.mark.usefixtures("two_passes")
def test_scans_read_what_conditions_need(file_catalog: Catalog, spark: SparkSession) -> None:
    """The other columns are read of the rows that were found, and of no others."""
    columns = ", ".join(f"c{i} STRING" for i in range(5))
    with attached(file_catalog, spark, data_inlining_row_limit=0) as lake:
        table = lake.create_table("t", f"id BIGINT, day INT, v INT, {columns}")
        rows = spark.range(0, 1000, 1, 2).selectExpr(
            "id", "int(id % 7)", "0", *(f"concat('c{i}', id)" for i in range(5))
        )
        table.append(rows)
        with effort(spark) as told:
            table.delete("id % 10 = 3")
        assert told == {"jobs": 1, "read": [{"id", ROW_INDEX}]}
        fresh = lake.create_table("fresh", f"id BIGINT, day INT, v INT, {columns}")
        fresh.append(rows)
        with effort(spark) as told:
            fresh.update({"v": "v + 1", "c0": "upper(c0)"}, where="day = 3 AND id % 10 = 4")
        assert told == {"jobs": 1, "read": [{"id", "day", "v", "c0", ROW_INDEX, ROW_ID}]}
        last = lake.create_table("last", f"id BIGINT, day INT, v INT, {columns}")
        last.append(rows)
        source = spark.range(0, 2000, 17, 1).selectExpr("id", "int(id % 7) AS day", "9 AS w")
        merge = last.merge(source, "target.id = source.id AND target.v < 5")
        with effort(spark) as told:
            merge.when_matched_update({"v": "target.v + source.w"}).execute()
        assert told["read"] == [{"id", "v", ROW_INDEX}]
        with effort(spark) as told:
            last.merge(source, "id").when_matched_delete().execute()
        assert {"id", ROW_INDEX} in told["read"]
        assert last.read().where("v = 9").count() == 0
        assert fresh.read().where("v = 1 AND c0 = concat('C0', id) AND c4 = concat('c4', id)").count() == len(
            [id for id in range(1000) if id % 7 == 3 and id % 10 == 4]
        )
    assert_same_tables(file_catalog, spark, "t", "fresh", "last")


def test_what_is_told_of_files_is_told_where_they_are_read(
    file_catalog: Catalog, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placed_rows, "FEW_VALUES", -1)
    monkeypatch.setattr(placed_rows, "MOST_SHARE", 1e9)
    with attached(file_catalog, spark, data_inlining_row_limit=0) as lake:
        table = lake.create_table("t", "id BIGINT, a STRING, b STRING, c STRING")
        table.append(spark.range(0, 20, 1, 1).selectExpr("id", "'a'", "'b'", "'c'"))
        table.update({"a": "input_file_name()"}, where="id % 4 = 0")
        source = spark.range(0, 20, 3, 1).selectExpr("id")
        table.merge(source, "id").when_matched_update({"b": "input_file_name()"}).execute()
        assert table.read().where("a LIKE '%.parquet'").count() == 5
        assert table.read().where("b LIKE '%.parquet'").count() == 7


def test_functions_of_a_users_own_take_and_double_no_row(file_catalog: Catalog, spark: SparkSession) -> None:
    """They stand before Spark's in a session that wants it so, and in Spark 4.1 in each."""
    own = spark.newSession()
    own.conf.set("spark.sql.functionResolution.sessionOrder", "first")
    own.udf.register("coalesce", lambda *_: None, "boolean")
    own.udf.register("explode", lambda *_: None, "bigint")
    with attached(file_catalog, own, data_inlining_row_limit=0) as lake:
        table = lake.create_table("t", "id BIGINT, v BIGINT")
        table.append(own.range(0, 5, 1, 1).selectExpr("id", "id"))
        source = own.range(3, 8, 4, 1).selectExpr("id", "-1L AS v")
        table.merge(source, "id").when_matched_update({"v": "source.v"}).when_not_matched_insert().execute()
        assert sorted(map(tuple, table.read().collect())) == [(0, 0), (1, 1), (2, 2), (3, -1), (4, 4), (7, -1)]


@pytest.mark.compiled
@pytest.mark.slow
def test_values_of_the_source_alone(file_catalog: Catalog, spark: SparkSession) -> None:
    """A merge that sets all columns reads none of the table's but for the keys."""
    with attached(file_catalog, spark, data_inlining_row_limit=0) as lake:
        table = lake.create_table("t", "id BIGINT, a STRING, b STRING")
        table.append(spark.range(0, 1000, 1, 2).selectExpr("id", "'a'", "'b'"))
        source = spark.range(990, 1010, 1, 1).selectExpr("id", "'A' AS a", "'B' AS b")
        with effort(spark) as told:
            table.merge(source, "id").when_matched_update().when_not_matched_insert().execute()
        assert told["read"] == [{"id", ROW_INDEX, ROW_ID}]
        assert table.read().where("a = 'A' AND b = 'B'").count() == 20
        with leaving_nothing(file_catalog, lake, "2 rows of the source match the same row of main.t .target.id = 99"):
            table.merge(source.union(source), "id").when_matched_update().when_not_matched_insert().execute()
    assert_same_tables(file_catalog, spark, "t")


@pytest.mark.usefixtures("two_passes")
@pytest.mark.slow
def test_columns_by_the_name_of_what_sql_calls_an_item(file_catalog: Catalog, spark: SparkSession) -> None:
    with file_catalog.reference() as reference:
        reference.execute(
            "CREATE TABLE t (id BIGINT, v INT, e STRUCT(key VARCHAR, value UUID), m MAP(VARCHAR, UUID), l UTINYINT[])",
            "INSERT INTO t SELECT i, 0, {'key': 'K', 'value': '00000000-0000-0000-0000-000000000000'::UUID},"
            " MAP {'a': '11111111-1111-1111-1111-111111111111'::UUID, 'b': NULL}, [1, NULL, 255] FROM range(20) s(i)",
        )
    with attached(file_catalog, spark) as lake:
        lake.table("t").update({"v": "1"}, where="id > 3")
        source = spark.range(0, 9, 2, 1).selectExpr("id", "7 AS w")
        lake.table("t").merge(source, "id").when_matched_update({"v": "source.w"}).execute()
        rows = lake.table("t").read().select("v", "m", "l").collect()
        assert {row.v for row in rows} == {0, 1, 7}
        assert {(str(row.m), str(row.l)) for row in rows} == {
            ("{'a': '11111111-1111-1111-1111-111111111111', 'b': None}", "[1, None, 255]")
        }
    assert_same_tables(file_catalog, spark, "t")


@pytest.mark.usefixtures("two_passes")
def test_columns_that_were_added_where_the_table_was_made(file_catalog: Catalog, spark: SparkSession) -> None:
    """The file of the same snapshot lacks them, and fields of structs too."""
    with file_catalog.reference() as reference:
        reference.execute(
            "BEGIN",
            "CREATE TABLE t (id BIGINT, v INT, s STRUCT(a INT))",
            "INSERT INTO t SELECT i, 0, {'a': i} FROM range(20) s(i)",
            "ALTER TABLE t ADD COLUMN c INT DEFAULT 5",
            "ALTER TABLE t ADD COLUMN s.b INT",
            "COMMIT",
        )
    with attached(file_catalog, spark, data_inlining_row_limit=0) as lake:
        lake.table("t").update({"v": "1"}, where="id > 3")
        source = spark.range(0, 9, 2, 1).selectExpr("id", "7 AS w")
        lake.table("t").merge(source, "id").when_matched_update({"v": "source.w"}).execute()
        assert lake.table("t").read().where("c = 5 AND s.a = id AND s.b IS NULL").count() == 20
    assert_same_tables(file_catalog, spark, "t")


@pytest.mark.slow
def test_values_over_all_rows_at_once(
    file_catalog: Catalog, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of files and of the catalog, that are moved, and that a condition on the time chooses: in one query."""
    monkeypatch.setattr(placed_rows, "FEW_VALUES", -1)
    with attached(file_catalog, spark) as lake:
        table = lake.create_table("t", "id BIGINT, v BIGINT, due TIMESTAMP, other STRING")
        past, soon = "TIMESTAMP'2020-01-01' AS due", "current_timestamp() + INTERVAL '2' SECOND AS due"
        table.append(spark.range(0, 100, 1, 1).selectExpr("id", "0L", past, "concat('o', id)"))
        table.append(spark.range(100, 105, 1, 1).selectExpr("id", "0L", past, "concat('o', id)"))
        table.update({"v": "row_number() OVER (ORDER BY id)"}, where="id >= 96")
        assert [row.v for row in table.read().where("id >= 96").orderBy("id").collect()] == list(range(1, 10))
        table.update({"v": "monotonically_increasing_id()"})
        assert table.read().select("v").distinct().count() == 105
        own = lake.create_table("own", "id BIGINT, v BIGINT, due TIMESTAMP, other STRING")
        for start in range(0, 60, 20):
            own.append(spark.range(start, start + 20, 1, 1).selectExpr("id", "0L", soon, "concat('o', id)"))
        deadline = time.monotonic() + 60
        while own.read().where("v = 0").count() and time.monotonic() < deadline:
            own.update({"v": "1"}, where="due <= current_timestamp() AND v = 0")
        few = spark.range(0, 60, 7, 4)
        few.createOrReplaceTempView("few_of_them")
        monkeypatch.setattr(placed_rows, "MOST_SHARE", 1e9)
        own.update({"v": "2"}, where="id IN (SELECT id FROM few_of_them)")
        assert own.read().where("other = concat('o', id)").groupBy("v").count().orderBy("v").collect() == [
            (1, 51), (2, 9),
        ]  # fmt: skip
    assert_same_tables(file_catalog, spark, "t", "own")
