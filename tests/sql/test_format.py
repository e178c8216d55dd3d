"""The format "ducklake": a lake's table by options, for reads, writes, temporary views and streams."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrameReader, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import penstock
from penstock.errors import AlreadyExistsError, InvalidError, NotFoundError
from support.catalogs import Catalog
from support.plans import files_read

TABLE = (
    "CREATE TABLE t (id INTEGER, name VARCHAR, day DATE)",
    "ALTER TABLE t SET PARTITIONED BY (day)",
    "INSERT INTO t SELECT i, 'n' || i, DATE '2024-01-01' + CAST(i % 5 AS INTEGER) FROM range(50) r(i)",
    "DELETE FROM t WHERE id % 7 = 0",
    """CREATE TABLE "odd table" AS SELECT 1 AS "a b", 'quo''te' AS "c.d" """,
)


@pytest.fixture
def place(sqlite_catalog: Catalog, spark: SparkSession) -> Catalog:
    with sqlite_catalog.build() as reference:
        reference.execute(*TABLE)
    return sqlite_catalog  # penstock.session has made the format known


def reader(spark: SparkSession, place: Catalog, table: str = "t") -> DataFrameReader:
    return spark.read.format("ducklake").option("lake", place.uri).option("table", table)


def duckdb_rows(place: Catalog, sql: str) -> list[tuple[Any, ...]]:
    with place.reference() as reference:
        return reference.rows(sql)


def test_a_read_is_the_native_scan(place: Catalog, spark: SparkSession) -> None:
    rows = reader(spark, place).load()
    assert rows.columns == ["id", "name", "day"]
    assert sorted(map(tuple, rows.collect())) == sorted(duckdb_rows(place, "FROM t"))
    one = rows.where("day = DATE '2024-01-03'")
    assert files_read(one) == {"ducklake main.t": 1}
    assert one.count() == duckdb_rows(place, "SELECT count(*) FROM t WHERE day = DATE '2024-01-03'")[0][0]
    assert rows.join(rows.select(F.col("id").alias("other")), F.col("id") == F.col("other")).count() == rows.count()
    assert reader(spark, place, '"odd table"').load().collect() == [(1, "quo'te")]
    assert sorted(row.rowid for row in rows.select("rowid").collect())[:2] == [1, 2]


def test_time_travel(place: Catalog, spark: SparkSession) -> None:
    counts = {v: duckdb_rows(place, f"SELECT count(*) FROM t AT (VERSION => {v})")[0][0] for v in (3, 4)}
    for version, count in counts.items():
        assert reader(spark, place).option("version", version).load().count() == count
        assert reader(spark, place).option("versionAsOf", version).load().count() == count
    [[time]] = duckdb_rows(place, "SELECT snapshot_time FROM lk.snapshots() WHERE snapshot_id = 3")
    assert reader(spark, place).option("timestamp", str(time)).load().count() == counts[3]
    for option in ("version 3", "versionAsOf '3'", f"timestamp '{time}'", f"timestampAsOf '{time}'"):
        spark.sql(f"CREATE TEMP VIEW then USING ducklake OPTIONS (lake '{place.uri}', table 't', {option})")
        try:
            assert spark.sql("SELECT count(*) FROM then").collect() == [(counts[3],)]
        finally:
            spark.catalog.dropTempView("then")
    for options, complaint in (
        ({"version": "99"}, "snapshot 99 does not exist"),
        ({"version": "x"}, "is no snapshot's number"),
        ({"version": "3", "timestamp": "2024-01-01"}, "a version or a timestamp, not both"),
        ({"version": "3", "versionAsOf": "4"}, "say the same"),
    ):
        with pytest.raises(penstock.PenstockError, match=complaint):
            reader(spark, place).options(**options).load()


def test_nanoseconds_as_for_other_reads(place: Catalog, spark: SparkSession) -> None:
    with place.reference() as reference:
        reference.execute(
            "CREATE TABLE moments (id INTEGER, moment TIMESTAMP_NS)",
            "INSERT INTO moments VALUES (1, TIMESTAMP_NS '2024-01-02 03:04:05.123456789'), (2, NULL)",
        )
        exact = reference.rows("SELECT epoch_ns(moment) FROM moments ORDER BY id")
    moments = reader(spark, place, "moments")
    with pytest.warns(UserWarning, match="lose their nanoseconds"):
        moments.load().collect()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cut = moments.option("nanoseconds", "truncate").load()
        assert [(row.moment and row.moment.microsecond) for row in cut.orderBy("id").collect()] == [123456, None]
        long = moments.option("nanoseconds", "long").load()
        assert dict(long.dtypes)["moment"] == "bigint"
        assert long.orderBy("id").select("moment").collect() == exact
        assert long.where(f"moment = {exact[0][0]}").count() == 1
        assert long.where("moment IS NULL").selectExpr("max(id)").collect() == [(2,)]
        assert long.selectExpr("max(moment)").collect() == [exact[0]]
        long.write.format("ducklake").option("lake", place.uri).option("table", "longs").mode("overwrite").save()
        assert reader(spark, place, "longs").load().orderBy("id").select("moment").collect() == exact
    with pytest.raises(InvalidError, match="it is truncate or long"):
        moments.option("nanoseconds", "some").load()


def test_a_temporary_view_shows_what_is_newest(place: Catalog, spark: SparkSession) -> None:
    spark.sql(f"CREATE TEMP VIEW by_format USING ducklake OPTIONS (lake '{place.uri}', table 'main.t')")
    try:
        assert spark.table("by_format").count() == 42
        with place.reference() as reference:
            reference.execute("INSERT INTO t VALUES (1000, NULL, NULL)")
        assert spark.sql("SELECT count(*) FROM by_format WHERE id = 1000").collect() == [(1,)]
    finally:
        spark.catalog.dropTempView("by_format")


def test_modes_of_a_write(place: Catalog, spark: SparkSession) -> None:
    rows = spark.sql("SELECT 'a' AS name, 1L AS id UNION ALL SELECT NULL, 2L")

    def write(mode: str | None, table: str = "made", **options: str) -> None:
        writer = rows.write.format("ducklake").option("lake", place.uri).option("table", table)
        (writer if mode is None else writer.mode(mode)).options(**options).save()

    write(None)
    assert duckdb_rows(place, "FROM made ORDER BY id") == [("a", 1), (None, 2)]
    with pytest.raises(AlreadyExistsError, match="made is there already"):
        write(None)
    write("ignore")
    write("append")
    assert duckdb_rows(place, "SELECT count(*), sum(id) FROM made") == [(4, 6)]
    write("overwrite")
    assert duckdb_rows(place, "SELECT count(*), sum(id) FROM made") == [(2, 3)]
    write("append", "t", distribution="none")  # by name, and what is not given is NULL
    assert duckdb_rows(place, "SELECT id, name, day FROM t WHERE day IS NULL ORDER BY 1") == [
        (1, "a", None),
        (2, None, None),
    ]
    partitioned = rows.write.format("ducklake").option("lake", place.uri).option("table", "parts").partitionBy("name")
    partitioned.save()
    assert len(duckdb_rows(place, "FROM ducklake_list_files('lk', 'parts')")) in (0, 2)
    with pytest.raises(InvalidError, match="partitionBy cannot change"):
        partitioned.mode("append").save()
    before = duckdb_rows(place, "SELECT max(snapshot_id) FROM lk.snapshots()")
    for table, options, complaint in (
        ("t", {"distribution": "wild"}, "is none of"),
        ("t", {"colour": "red"}, "a write by the format ducklake has no option colour"),
        ("nowhere.t", {}, "nowhere"),
    ):
        with pytest.raises(penstock.PenstockError, match=complaint):
            write("append", table, **options)
    assert duckdb_rows(place, "SELECT max(snapshot_id) FROM lk.snapshots()") == before


def test_a_table_is_written_from_itself(place: Catalog, spark: SparkSession) -> None:
    doubled = reader(spark, place).load().selectExpr("id + 1000 AS id", "name", "day")
    doubled.write.format("ducklake").option("lake", place.uri).option("table", "t").mode("append").save()
    assert duckdb_rows(place, "SELECT count(*), count(DISTINCT id) FROM t") == [(84, 84)]


def test_a_password_stands_in_no_plan(place: Catalog, spark: SparkSession) -> None:
    secret = "ducklake:postgres:dbname=none host=/none password=geheim"
    with pytest.raises(InvalidError, match="which Spark would show") as refused:
        spark.read.format("ducklake").option("lake", secret).option("table", "t").load()
    assert "geheim" not in str(refused.value)
    with pytest.raises(penstock.AttachError) as failed:
        spark.read.format("ducklake").option("url", secret).option("table", "t").load()
    assert "geheim" not in str(failed.value)
    hidden = spark.read.format("ducklake").option("url", place.uri).option("table", "t").load()
    assert hidden.count() == 42
    assert place.uri not in hidden._jdf.queryExecution().toString()
    writer = spark.range(1).write.format("ducklake").option("url", place.uri).option("table", "u")
    writer.save()
    with pytest.raises(InvalidError, match="say the same"):
        writer.option("lake", place.uri).save()


def test_lakes_by_name_and_lakes_that_are_not_there(place: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    with penstock.attach(place.uri, data_path=place.data_path, name="named", spark=spark):
        named = spark.read.format("ducklake").option("table", "t")
        assert named.option("lake", "named").load().count() == 42
        with pytest.raises(InvalidError, match="is attached already, and takes no option"):
            named.option("lake", "named").option("data_path", "x").load()
    for options, kind, complaint in (
        ({"lake": "named"}, NotFoundError, "neither a lake of this session nor a location"),
        ({}, InvalidError, "needs the option lake"),
        ({"lake": f"ducklake:sqlite:{tmp_path}/none.sqlite"}, penstock.AttachError, "none.sqlite"),
        ({"lake": place.uri, "table": "none"}, NotFoundError, "table main.none does not exist"),
        ({"lake": place.uri, "read_only": "maybe"}, InvalidError, "is true or false"),
    ):
        with pytest.raises(kind, match=complaint):
            spark.read.format("ducklake").options(**{"table": "t", **options}).load()
    assert not (tmp_path / "none.sqlite").exists()
    with pytest.raises(Exception, match=r"schema|SCHEMA"):
        reader(spark, place).schema("id INT").load()
