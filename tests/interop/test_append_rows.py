"""Rows that the driver holds: appended without a job, and without Spark where the catalog keeps them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Row, SparkSession

import penstock
from interop.test_write_inlining import FILED, INLINED, kinds
from penstock import Lake
from penstock.schema.columns import Column
from support.catalogs import Catalog, DuckDBCatalog
from support.compare import assert_same_tables, query
from support.counting import asked_of
from support.lake_samples import NESTED, PRIMITIVES, Sample, create_table, insert_rows
from support.reference import METADATA, Reference
from support.writing import attached, ddl, files_of, leaving_nothing

COLUMNS = "id BIGINT NOT NULL, name STRING, x DOUBLE, d DECIMAL(10,2), ts TIMESTAMP_NTZ"
ROWS = [
    (1, "it's 😀", -0.0, Decimal("1.50"), datetime(1969, 12, 31, 23, 59, 59, 999999)),
    (2, "", float("nan"), Decimal("-99999999.99"), datetime(1, 1, 1)),
    (3, None, None, None, None),
]
NAMES = ("id", "name", "x", "d", "ts")
SAMPLES = (
    Sample("id", "INTEGER", tuple(map(str, range(8)))),
    *(replace(s, literals=tuple(x for x in s.literals if x != "0.0")) for s in PRIMITIVES),
    *(replace(s, name=f"nested_{s.name}") for s in NESTED),
)


class Order(NamedTuple):
    id: int
    name: str | None
    x: float | None
    d: Decimal | None
    ts: datetime | None


@dataclass
class Item:
    name: str | None
    id: int


def arrow(rows: list[tuple[Any, ...]] = ROWS) -> pa.Table:
    return pa.Table.from_arrays([pa.array(items) for items in zip(*rows, strict=True)], names=list(NAMES))


def dicts() -> list[dict[str, Any]]:
    return [dict(reversed(list(zip(NAMES, row, strict=True)))) for row in ROWS]


OWN: dict[str, Callable[[], Any]] = {
    "tuples": lambda: ROWS,
    "lists": lambda: [list(row) for row in ROWS],
    "dicts": dicts,
    "named tuples": lambda: [Order(*row) for row in ROWS],
    "Rows": lambda: [Row(*NAMES)(*row) for row in ROWS],
    "a generator": lambda: (row for row in ROWS),
    "Arrow": arrow,
    "a batch": lambda: arrow().to_batches()[0],
    "a stream": lambda: pa.RecordBatchReader.from_batches(arrow().schema, arrow().to_batches()),
}


def test_rows_for_the_catalog_never_touch_spark(catalog: Catalog, spark: SparkSession) -> None:
    with attached(catalog, spark) as lake:
        table = lake.create_table("t", COLUMNS)
        given = [make() for make in OWN.values()]
        with asked_of(spark) as asked:
            made = [table.append(rows) for rows in given]
        assert (asked.commands, asked.jobs) == (0, 0)
        assert kinds(*made) == [INLINED] * len(OWN)
        table.append(spark.createDataFrame(ROWS, COLUMNS.replace(" NOT NULL", "")).coalesce(1))  # by a job
    with catalog.reference() as reference:
        assert reference.value("SELECT count(*) FROM t") == 3 * (len(OWN) + 1)
        assert reference.value("SELECT count(DISTINCT t::VARCHAR) FROM t") == 3
    assert_same_tables(catalog, spark, "t")


def local_frames(spark: SparkSession) -> list[DataFrame]:
    values = "VALUES (CAST(1 AS BIGINT), 'a', 1.5D), (2, NULL, NULL)"
    return [
        spark.createDataFrame([(1, "a", 1.5), (2, None, None)], "id BIGINT, name STRING, x DOUBLE"),
        spark.createDataFrame([(1, "a", 1.5), (2, None, None)], "id INT, name STRING, x FLOAT"),
        spark.createDataFrame(pa.table({"id": [1, 2], "name": ["a", None], "x": [1.5, None]})),
        spark.sql(values),
        spark.sql("SELECT 1 AS id, 'a' AS name, 1.5 AS x"),
        spark.createDataFrame([], "id BIGINT, name STRING, x DOUBLE"),
        spark.createDataFrame([(1, "a")], "id INT, name STRING").selectExpr("id + 1", "upper(name)", "id / 2"),
    ]


@pytest.mark.parametrize("limit", [0, 10])
def test_frames_of_rows_that_the_driver_has_take_no_job(file_catalog: Catalog, spark: SparkSession, limit: int) -> None:
    frames = local_frames(spark)
    with attached(file_catalog, spark, data_inlining_row_limit=limit) as lake:
        table = lake.create_table("t", "id BIGINT, name STRING, x DOUBLE", partitioned_by=["id"], sorted_by=["x"])
        with asked_of(spark) as asked:
            made = [table.append(frame) for frame in frames]
        assert asked.jobs == 0
        assert kinds(*made) == [INLINED if limit else FILED] * 5 + kinds(made[4]) + [INLINED if limit else FILED]
        assert table.read().count() == 10
        assert table.files().count() == (0 if limit else 10)
    assert_same_tables(file_catalog, spark, "t")


def test_statements_of_sql_with_values_take_no_job(duckdb_catalog: Catalog, spark: SparkSession) -> None:
    with attached(duckdb_catalog, spark, name="local_values") as lake:
        lake.create_table("t", "id INT, name STRING DEFAULT 'x', at TIMESTAMP")
        with asked_of(spark) as asked:
            spark.sql("INSERT INTO local_values.main.t VALUES (1, 'a', now()), (2, NULL, NULL)")
            spark.sql("INSERT INTO local_values.main.t (id) VALUES (3)")
            spark.sql("INSERT INTO local_values.main.t SELECT 4, 'd', TIMESTAMP'2024-01-01 00:00:00'")
        assert asked.jobs == 0
        rows = lake.table("t").read().select("id", "name").collect()
        assert sorted(map(tuple, rows)) == [(1, "a"), (2, None), (3, "x"), (4, "d")]


def test_rows_are_those_that_the_query_shows(duckdb_catalog: Catalog, spark: SparkSession) -> None:
    """Also with random values, and of what was cached when other values were the present ones."""
    listed = spark.createDataFrame([(n,) for n in range(5)], "id BIGINT")
    cached = [
        spark.sql("SELECT 1L, string(current_timestamp())").cache(),
        listed.selectExpr("id", "string(current_timestamp())").cache(),
    ]
    frames = [
        listed.selectExpr("id", "uuid()"), listed.selectExpr("id", "string(rand(7))"), spark.sql("SELECT 1L, uuid()"),
        spark.sql("VALUES (1L), (2L)").selectExpr("col1", "uuid()"),
    ]  # fmt: skip
    with attached(duckdb_catalog, spark) as lake:
        table = lake.create_table("t", "id BIGINT, v STRING")
        for frame in (*cached, *frames):
            shown = sorted(map(tuple, frame.collect()))
            table.overwrite(frame)
            assert sorted(map(tuple, table.read().collect())) == shown
    for frame in cached:
        frame.unpersist()


def test_what_is_not_the_drivers_goes_to_tasks(duckdb_catalog: Catalog, spark: SparkSession) -> None:
    listed = spark.createDataFrame([(1,), (2,)], "id BIGINT")
    mapped = spark.sparkContext.parallelize([(5,)]).toDF("id BIGINT")
    frames = [listed.repartition(2), listed.limit(1), spark.range(3), mapped, listed.union(listed).distinct()]
    with attached(duckdb_catalog, spark) as lake:
        table = lake.create_table("t", "id BIGINT")
        for frame in frames:
            with asked_of(spark) as asked:
                table.append(frame)
            assert asked.jobs > 0
        assert table.read().count() == 2 + 1 + 3 + 1 + 2
        with asked_of(spark) as asked:
            table.append(listed, distribution="none")
        assert asked.jobs > 0


def test_more_rows_than_the_driver_takes_go_to_tasks(duckdb_catalog: Catalog, spark: SparkSession) -> None:
    few, many = [(n,) for n in range(4096)], [(n,) for n in range(4097)]
    with attached(duckdb_catalog, spark) as lake:
        table = lake.create_table("t", "id BIGINT")
        for rows, jobs in ((few, False), (many, True)):
            for given in (rows, pa.table({"id": [n for (n,) in rows]}), spark.createDataFrame(rows, "id BIGINT")):
                with asked_of(spark) as asked:
                    table.append(given)
                assert (asked.jobs > 0) is jobs
        assert table.read().count() == 3 * (4096 + 4097)
    assert_same_tables(duckdb_catalog, spark, "t")


@dataclass(frozen=True)
class Originals:
    """A table of every type, by the extension, as a DataFrame whose rows take a job."""

    lake: Lake
    columns: tuple[Column, ...]

    @property
    def frame(self) -> DataFrame:
        return self.lake.table("t").read(nanoseconds="long").coalesce(1)


@pytest.fixture(scope="module")
def originals(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Originals]:
    catalog = DuckDBCatalog(tmp_path_factory.mktemp("originals"))
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(create_table("t", SAMPLES), insert_rows("t", SAMPLES))
    with penstock.attach(catalog.uri, read_only=True, spark=spark) as lake:
        yield Originals(lake, lake.table("t").columns)


def told(reference: Reference, table: str, kind: str) -> list[tuple[object, ...]]:
    """All that the catalog says of the columns of a table, or of its files, but for sizes and ids."""
    names = "min_value, max_value, contains_nan, extra_stats"
    counts = ", value_count, null_count" if kind == "file" else ", contains_null"
    return reference.rows(
        f"SELECT column_id, {names}{counts} FROM {METADATA}.ducklake_{kind}_column_stats"
        f" JOIN {METADATA}.ducklake_table USING (table_id) WHERE table_name = '{table}' ORDER BY ALL"
    )


@pytest.mark.compiled
@pytest.mark.parametrize("limit", [0, 100])
def test_every_way_leaves_the_same(catalog: Catalog, spark: SparkSession, originals: Originals, limit: int) -> None:
    """By tasks, from Arrow, and from a DataFrame of what the driver has: rows and statistics of every type."""
    frame = originals.frame
    held = frame.toArrow()
    ways = {"tasks": frame, "arrow": held, "local": spark.createDataFrame(held, frame.schema)}
    with attached(catalog, spark, data_inlining_row_limit=limit) as lake:
        for name, rows in ways.items():
            table = lake.create_table(name, ddl(originals.columns))
            with asked_of(spark) as asked:
                made = table.append(rows)
            assert kinds(made) == [INLINED if limit and catalog.inlines_every_value else kinds(made)[0]]
            assert (asked.jobs > 0) is (name == "tasks")
    with catalog.reference() as reference:
        expected = query(reference, "FROM tasks")
        for name in ("arrow", "local"):
            assert query(reference, f"FROM {name}") == expected
            for kind in ("file", "table"):
                assert told(reference, name, kind) == told(reference, "tasks", kind)


def test_other_rows_become_what_a_frame_of_them_would(duckdb_catalog: Catalog, spark: SparkSession) -> None:
    """What takes a conversion goes by Spark, and through its rules; defaults fill what is not given."""
    with attached(duckdb_catalog, spark) as lake:
        table = lake.create_table("t", "id INT, name STRING DEFAULT 'none', at TIMESTAMP, u UUID, dec DECIMAL(4,1)")
        table.append([Item(id=1, name=None), Item(id=2, name="b")])
        table.append([{"id": 3}])
        table.append([{"id": 4, "at": datetime(2024, 1, 1, tzinfo=UTC), "u": UUID(int=7), "dec": 1}])
        table.append([{"id": 5, "at": date(2024, 1, 1), "name": 5, "dec": Decimal("1.25")}])
        table.append([{"id": 6.0, "dec": 2.25}])
        rows = table.read().orderBy("id").selectExpr("id", "name", "unix_micros(at)", "u", "dec").collect()
    micros = 1704067200000000
    assert [tuple(row) for row in rows] == [
        (1, None, None, None, None),
        (2, "b", None, None, None),
        (3, "none", None, None, None),
        (4, "none", micros, "00000000-0000-0000-0000-000000000007", Decimal("1.0")),
        (5, "5", micros, None, Decimal("1.3")),
        (6, "none", None, None, Decimal("2.3")),
    ]


def test_rows_take_the_place_of_others(duckdb_catalog: Catalog, spark: SparkSession) -> None:
    with attached(duckdb_catalog, spark) as lake:
        table = lake.create_table("t", "id BIGINT, name STRING")
        table.append([(1, "a"), (2, "b")])
        table.overwrite([(2, "c"), (3, "d")], where="id = 2")
        with lake.transaction():
            table.append([])
            table.append(pa.table({"id": [9], "name": ["z"]}))
            assert table.read().count() == 4
        assert sorted(map(tuple, table.read().collect())) == [(1, "a"), (2, "c"), (3, "d"), (9, "z")]
        table.overwrite([{"id": 7}])
        before = lake.current_snapshot()
        assert table.append([]) == before
    with duckdb_catalog.reference() as reference:
        assert reference.rows("FROM t") == [(7, None)]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(1,)], "has 2 columns .id, tiny. and each row has 1"),
        ([(1, 2), (1,)], r"row 1 is \(1,\), and row 0 is \(1, 2\)"),
        ([{"id": 1, "nothing": 2}], "has no column 'nothing'"),
        ([{"id": 1}, {"tiny": 2}], "row 0 gives column 'id' and row 1 does not"),
        ([(1, 2), (None, 3)], "'id' is NOT NULL, but 1 of 2 rows"),
        ([(1, 2), (2, 300)], "column tiny: the value 300 does not fit tinyint"),
        ([(1, "x")], "column tiny has type int8, which takes tinyint, and the DataFrame gives string"),
        ([(1, 2), (2, "x")], "row 1, column tiny: 'x' is a str, and 2 before it is none"),
        ([(1, object())], "row 0, column tiny: <object object .* no column takes"),
        ([(10**39, 1)], "row 0, column id: 1000.* more than 38 digits"),
        ([("\ud800", 1)], "row 0, column id: .* is no text"),
        ("text", "rows cannot be a str"),
        (17, "rows cannot be a int"),
        (pa.table({"id": pa.array([1], pa.duration("s")), "tiny": [1]}), "column id is duration"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("limit", [0, 10])
def test_what_does_not_fit_leaves_nothing(
    duckdb_catalog: DuckDBCatalog, spark: SparkSession, rows: Any, message: str, limit: int
) -> None:
    with attached(duckdb_catalog, spark, data_inlining_row_limit=limit) as lake:
        table = lake.create_table("t", "id BIGINT NOT NULL, tiny TINYINT")
        with leaving_nothing(duckdb_catalog, lake, message):
            table.append(rows)


def test_few_rows_of_an_encrypted_table_are_written_by_the_driver(
    duckdb_catalog: DuckDBCatalog, spark: SparkSession
) -> None:
    with attached(duckdb_catalog, spark, encrypted=True, data_inlining_row_limit=0) as lake:
        table = lake.create_table("t", "id BIGINT, p STRING", partitioned_by=["p"])
        with asked_of(spark) as asked:
            table.append([(1, "a"), (2, "b"), (3, "a")])
        assert (asked.commands, asked.jobs) == (0, 0)
    assert len(files_of(duckdb_catalog)) == 2
    assert_same_tables(duckdb_catalog, spark, "t")
