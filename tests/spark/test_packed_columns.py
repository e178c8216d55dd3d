"""Rows that Spark hands to Python as columns in bytes are those that it hands over one by one, to the last bit."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from penstock.spark import packed_columns as module
from penstock.spark.arrow_transfer import with_decimals_as_longs
from penstock.spark.packed_columns import PackedColumns, packed_columns
from penstock.spark.workers import map_in_workers
from support.catalogs import Catalog
from support.effort import tries
from support.reference import Reference
from support.session_settings import configured
from support.writing import attached

DAY, MOMENT = dt.date(1969, 12, 31), dt.datetime(1583, 1, 1, 0, 0, 0, 1)
VALUES: dict[pa.DataType, list[Any]] = {
    pa.bool_(): [True, False],
    pa.int8(): [0, -128, 127],
    pa.int16(): [0, -(2**15), 2**15 - 1],
    pa.int32(): [0, -(2**31), 2**31 - 1],
    pa.int64(): [0, -(2**63), 2**63 - 1],
    pa.float32(): [0.0, -0.0, math.nan, math.inf, -math.inf, 1.5],
    pa.float64(): [0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324],
    pa.decimal128(9, 2): [Decimal("0.00"), Decimal("-9999999.99"), Decimal("9999999.99")],
    pa.decimal128(18, 18): [Decimal("0"), Decimal("-0.999999999999999999"), Decimal("0.000000000000000001")],
    pa.decimal128(38, 0): [Decimal(0), Decimal("-" + "9" * 38), Decimal("9" * 38), Decimal(2**64), Decimal(-1)],
    pa.decimal128(38, 10): [Decimal("0E-10"), Decimal("-1.5"), Decimal("1" * 28)],
    pa.date32(): [DAY, dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    pa.timestamp("us"): [MOMENT, dt.datetime(9999, 12, 31, 23, 59, 59, 999999), dt.datetime(1970, 1, 1)],
    pa.timestamp("us", "UTC"): [MOMENT.replace(tzinfo=dt.UTC), dt.datetime(2026, 3, 29, 1, 30, tzinfo=dt.UTC)],
    pa.string(): ["", "a", "'\"%$=/\\", "😀 of many bytes", "x" * 300, "\0"],
    pa.binary(): [b"", b"\0\xff", b"'", b"y" * 300],
    pa.list_(pa.float32()): [[], [0.5] * 17, [math.nan, None, -0.0], [None]],
    pa.list_(pa.string()): [["", None, "😀"], [], ["a"] * 100],
    pa.list_(pa.bool_()): [[True, None, False] * 3, [], [None] * 9],
    pa.list_(pa.decimal128(38, 2)): [[Decimal("9" * 36), None], []],
    pa.list_(pa.timestamp("us", "UTC")): [[MOMENT.replace(tzinfo=dt.UTC), None]],
}


def told(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a job is given, as streams of Arrow's."""
    for batch in batches:
        batch.validate(full=True)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        yield pa.RecordBatch.from_pydict({"rows": [bytes(sink.getvalue())]})


def gathered(results: DataFrame, schema: pa.Schema) -> pa.Table:
    pieces = [pa.ipc.open_stream(row.rows).read_all() for row in results.collect()]
    return pa.concat_tables(pieces) if pieces else schema.empty_table()


def in_order(rows: pa.Table) -> list[str]:
    return sorted(repr(tuple(row.values())) for row in rows.to_pylist())


def assert_same(frame: DataFrame) -> None:
    packed = packed_columns(frame)
    assert packed is not None
    found = gathered(map_in_workers(packed.frame, packed.unpacking(told), "rows binary"), packed.schema)
    wanted = gathered(map_in_workers(frame, told, "rows binary"), packed.schema)
    assert found.schema.types == wanted.schema.types
    assert in_order(found) == in_order(wanted)


def hostile(rows: int, shift: int = 0) -> pa.Table:
    """A column of each type with its values, and beside it one with NULLs; and one that is NULL throughout."""
    columns: dict[str, pa.Array] = {"id": pa.array(range(shift, shift + rows), pa.int64())}
    for number, (kind, values) in enumerate(VALUES.items()):
        own = [values[(row + shift) % len(values)] for row in range(rows)]
        columns[f"c{number}"] = pa.array(own, kind)
        columns[f"n{number}"] = pa.array([None if row % 3 == 1 else v for row, v in enumerate(own)], kind)
        columns[f"z{number}"] = pa.nulls(rows, kind)
    return pa.table(columns)


@pytest.mark.classic
@pytest.mark.parametrize("dictionary", [True, False])
def test_every_type(spark: SparkSession, tmp_path: Path, dictionary: bool) -> None:
    for number, rows in enumerate((0, 1, 9, 130)):
        table = hostile(rows, 1000 * number)
        pq.write_table(table, tmp_path / f"{number}.parquet", use_dictionary=dictionary, row_group_size=50)
    frame = spark.read.parquet(str(tmp_path))
    assert_same(frame)
    assert_same(frame.select("n3", F.col("id").alias("b"), "id", "c14"))
    for zone in ("Asia/Kathmandu", "America/New_York"):
        with configured(spark, {"spark.sql.session.timeZone": zone}):
            assert_same(frame)
    with configured(spark, {"spark.sql.parquet.columnarReaderBatchSize": "7"}):
        assert_same(spark.read.parquet(str(tmp_path)))
    with configured(spark, {"spark.sql.columnVector.offheap.enabled": "true"}):
        assert_same(spark.read.parquet(str(tmp_path)))


@pytest.mark.classic
def test_digits_of_decimals(spark: SparkSession, tmp_path: Path) -> None:
    kinds = [kind for kind in VALUES if pa.types.is_decimal(kind)]
    data = {f"d{n}": pa.array([None, *(VALUES[k] * 2)[:5]], k) for n, k in enumerate(kinds)}
    pq.write_table(pa.table(data), tmp_path / "a.parquet")
    pq.write_table(pa.table(data), tmp_path / "b.parquet", store_decimal_as_integer=True)
    frame, decimals = with_decimals_as_longs(spark.read.parquet(str(tmp_path)))
    assert [position for position, _, _ in decimals] == [0, 1]
    assert_same(frame)


@pytest.mark.classic
def test_columns_that_files_do_not_have(spark: SparkSession, tmp_path: Path) -> None:
    """Values of directories, one of them NULL, and columns that came later."""
    rows = "SELECT id, id % 2 AS even, IF(id % 3 = 0, NULL, concat('p', id % 3)) AS part FROM range(40)"
    spark.sql(rows).write.partitionBy("part", "even").parquet(str(tmp_path / "t"))
    spark.sql("SELECT 7L AS id, 'more' AS more, 1.5D AS number").write.parquet(str(tmp_path / "t/part=p1/even=1/x"))
    schema = "id BIGINT, more STRING, number DOUBLE, part STRING, even INT"
    frame = spark.read.schema(schema).option("recursiveFileLookup", "false").parquet(str(tmp_path / "t"))
    assert_same(frame)
    assert_same(frame.drop("id"))
    twice = frame.union(frame)
    if packed_columns(twice) is not None:  # Spark 4.3 has columns of a union too
        assert_same(twice)


@pytest.mark.classic
def test_vectors_of_others(spark: SparkSession, tmp_path: Path) -> None:
    """Of ORC, whose vectors tell less than Spark's own."""
    pq.write_table(hostile(130), tmp_path / "t.parquet")
    spark.read.parquet(str(tmp_path / "t.parquet")).write.orc(str(tmp_path / "orc"))
    frame = spark.read.orc(str(tmp_path / "orc"))
    assert_same(frame)
    assert_same(with_decimals_as_longs(frame)[0])


@pytest.mark.classic
def test_wide_arrays(spark: SparkSession, tmp_path: Path) -> None:
    """Of a few megabytes each, so that a piece has some of the rows that Spark has at once."""
    rows = [None if row % 5 == 3 else [float(row)] * (row % 3 * 500_000) for row in range(40)]
    even = [number % 2 == 0 for number in range(40)]
    table = pa.table({"id": range(40), "v": pa.array(rows, pa.list_(pa.float64())), "b": even})
    pq.write_table(table, tmp_path / "t.parquet")
    packed = packed_columns(spark.read.parquet(str(tmp_path)))
    assert packed is not None
    assert max(row[0] for row in packed.frame.select(F.octet_length("rows")).collect()) < 2**24 + 2**20

    def told_of(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            batch.validate(full=True)
            shown = [None if v is None else f"{len(v)} {set(v)}" for v in batch.column(1).to_pylist()]
            texts = pa.array(shown, pa.string())
            yield pa.RecordBatch.from_pydict({"id": batch.column(0), "v": texts, "b": batch.column(2)})

    found = map_in_workers(packed.frame, packed.unpacking(told_of), "id BIGINT, v STRING, b BOOLEAN").collect()
    wanted = [(n, None if v is None else f"{len(v)} {set(v)}", n % 2 == 0) for n, v in enumerate(rows)]
    assert sorted(map(tuple, found)) == wanted


@pytest.mark.classic
def test_few_tasks_and_none(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(100, numPartitions=10).write.parquet(str(tmp_path / "t"))
    frame = spark.read.parquet(str(tmp_path / "t"))
    for tasks in (1, 3):
        packed = packed_columns(frame.coalesce(tasks))
        assert packed is not None
        assert packed.frame.rdd.getNumPartitions() <= tasks
        assert_same(frame.coalesce(tasks))
    spark.range(0).write.parquet(str(tmp_path / "none"))
    assert_same(spark.read.parquet(str(tmp_path / "none")).coalesce(1))


@pytest.mark.classic
def test_what_is_computed_goes_row_by_row(spark: SparkSession, tmp_path: Path) -> None:
    query = "SELECT id, array(array(id)) AS a, named_struct('f', id) AS s, map(id, id) AS m FROM range(5)"
    spark.sql(query).write.parquet(str(tmp_path / "t"))
    frame = spark.read.parquet(str(tmp_path / "t"))
    longs = frame.select("id")
    computed = [
        frame.select("a"), frame.select("s"), frame.select("m"), frame.select("s.f"),
            longs.where("id > 1"), longs.selectExpr("id + 1 AS id"), longs.repartition(2),
        longs.sort("id"), longs.limit(3), longs.distinct(), longs.join(longs, "id"),
        longs.observe(Observation(), F.count("*").alias("n")), spark.range(3), spark.createDataFrame([(1,)], "a INT"),
        longs.select(), longs.select("id", F.col("_metadata.file_name")).where("id = 1"),
        longs.select(F.udf(lambda value: value, "bigint")("id")),
    ]  # fmt: skip
    for rows in computed:
        assert packed_columns(rows) is None, rows
    with configured(spark, {"spark.sql.parquet.enableVectorizedReader": "false"}):
        assert packed_columns(spark.read.parquet(str(tmp_path / "t")).select("id")) is None


@pytest.mark.classic
def test_pieces_are_of_few_bytes(spark: SparkSession, tmp_path: Path) -> None:
    """Where each row has a megabyte, of a dictionary, so that Spark has gigabytes in what it takes for 4,096 rows."""
    text = "é" * 2**19
    rows = pa.table({"id": range(300), "text": [text] * 300, "small": [f"row {n}" for n in range(300)]})
    pq.write_table(rows, tmp_path / "t.parquet")
    packed = packed_columns(spark.read.parquet(str(tmp_path)))
    assert packed is not None
    sizes = [row.size for row in packed.frame.select(F.octet_length("rows").alias("size")).collect()]
    assert max(sizes) < 2**24 + 2**20
    assert len(sizes) >= 5

    def told(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            same = set(batch.column(1).to_pylist()) == {text}
            yield pa.RecordBatch.from_pydict(
                {"id": batch.column(0), "small": batch.column(2), "same": [same] * len(batch)}
            )

    found = map_in_workers(packed.frame, packed.unpacking(told), "id BIGINT, small STRING, same BOOLEAN").collect()
    assert sorted(map(tuple, found)) == [(n, f"row {n}", True) for n in range(300)]


def columns() -> st.SearchStrategy[tuple[pa.DataType, list[Any]]]:
    def values(kind: pa.DataType) -> st.SearchStrategy[tuple[pa.DataType, list[Any]]]:
        own = st.sampled_from([None, *VALUES[kind]])
        more = st.text(max_size=40) if kind == pa.string() else st.integers(0, 9) if kind == pa.int64() else own
        return st.tuples(st.just(kind), st.lists(own | more, min_size=1, max_size=60))

    return st.sampled_from(list(VALUES)).flatmap(values)


@pytest.mark.classic
@given(
    drawn=st.lists(columns(), min_size=1, max_size=5),
    rows=st.integers(0, 200),
    group=st.integers(1, 90),
    dictionary=st.booleans(),
    page=st.sampled_from([1, 64, 2**20]),
    batch=st.sampled_from(["1", "3", "64", "4096"]),
)
@settings(
    max_examples=tries(8, 100),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_rows(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[pa.DataType, list[Any]]],
    rows: int, group: int, dictionary: bool, page: int, batch: str,
) -> None:  # fmt: skip
    place = tmp_path_factory.mktemp("rows")
    made = {f"c{n}": pa.array([v[row % len(v)] for row in range(rows)], k) for n, (k, v) in enumerate(drawn)}
    pq.write_table(
        pa.table(made), place / "t.parquet", row_group_size=group, use_dictionary=dictionary, data_page_size=page
    )
    with configured(spark, {"spark.sql.parquet.columnarReaderBatchSize": batch}):
        assert_same(spark.read.parquet(str(place)))


@pytest.mark.classic
def test_a_lake_takes_them(
    file_catalog: Catalog, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write to a partitioned table, from a folder and from a table of the lake: DuckDB reads what they have."""
    used: list[bool] = []
    own = module.packed_columns

    def noted(frame: DataFrame) -> PackedColumns | None:
        found = own(frame)
        used.append(found is not None)
        return found

    monkeypatch.setattr(module, "packed_columns", noted)
    spark.sql(
        """SELECT id, IF(id % 7 = 0, NULL, concat('n', id % 3)) AS name, CAST(id / 8 AS DECIMAL(12, 2)) AS price,
                  DATE'1969-12-30' + CAST(id % 5 AS INT) AS day, CAST(id AS DECIMAL(30, 3)) AS wide
           FROM range(5000)"""
    ).write.parquet(str(tmp_path / "t"))
    source = spark.read.parquet(str(tmp_path / "t"))
    kinds = "id BIGINT, name STRING, price DECIMAL(12, 2), day DATE, wide DECIMAL(30, 3)"
    with attached(file_catalog, spark) as lake:
        lake.create_table("a", kinds, partitioned_by=["year(day)", "bucket(3, id)"]).append(source)
        lake.create_table("b", kinds, sorted_by=["name DESC NULLS LAST"]).append(lake.table("a").read())
    assert used == [True, True]
    wanted = sorted(map(repr, map(tuple, source.collect())))
    with Reference().attach(file_catalog.uri) as reference:
        for table in ("a", "b"):
            assert sorted(map(repr, reference.rows(f"FROM {table}"))) == wanted


def test_types_are_those_of_spark() -> None:
    assert all(module._arrow_type(kind(), "UTC") is not None for kind in module._TYPES)
    assert module._arrow_type(T.ArrayType(T.StructType()), "UTC") is None
    assert module._arrow_type(T.TimestampType(), "Asia/Tokyo") == pa.timestamp("us", "Asia/Tokyo")
