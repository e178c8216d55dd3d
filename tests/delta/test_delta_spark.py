"""delta-spark itself reads and writes what Penstock writes, and the other way round."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import penstock
import penstock.delta
from penstock.delta import DeltaTable
from support.delta_spark import DeltaSpark, in_order, table
from support.small_sessions import SMALL

pytestmark = pytest.mark.slow  # another PySpark is fetched (500 MB), and runs in a JVM of its own

FEATURE = "materializePartitionColumns"
ENABLED = "delta.enableMaterializePartitionColumnsFeature"
SCHEMA = (
    "id BIGINT NOT NULL, region STRING, day DATE, price DECIMAL(38,18), at TIMESTAMP, f DOUBLE, b BINARY,"
    " born DATE, seen TIMESTAMP_NTZ, s STRUCT<a: INT, l: ARRAY<STRUCT<x: STRING>>>, m MAP<STRING, DECIMAL(38,0)>"
)
PARTITIONED_BY = ["region", "day", "price", "at"]
REGIONS = (
    None, "", "a/b", "x=y", "100%", "%2F", "$p:q", "two words", " ", "😀 ❤️", "it's \"q\"", "tab\tnew\nline",
    "back\\slash", "..", "__HIVE_DEFAULT_PARTITION__", "null", "#?&+;",
)  # fmt: skip
DAYS = (None, dt.date(1969, 12, 31), dt.date(1, 1, 1), dt.date(9999, 12, 31))
PRICES = (None, Decimal(0), Decimal("-0.000000000000000001"), Decimal("99999999999999999999.999999999999999999"))
TIMES = (
    None,
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
    dt.datetime(2026, 1, 2, 3, 4, 5),
    dt.datetime(9999, 12, 31, 23, 59, 59, 123456),
)
Row = tuple[Any, ...]


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeltaSpark]:
    session = DeltaSpark(
        tmp_path_factory.mktemp("delta-spark") / "log", **SMALL, **{"spark.databricks.delta.snapshotPartitions": "1"}
    )
    yield session
    session.close()


def hostile_rows() -> list[Row]:
    """A row for each region, each in a partition of its own."""
    return [
        (
            number,
            region,
            DAYS[number % 4],
            PRICES[number // 2 % 4],
            TIMES[number // 3 % 4],
            (float("nan"), -0.0, 1e308, None)[number % 4],
            (b"", b"\x00\xff", None)[number % 3],
            DAYS[-1 - number % 4],
            TIMES[-1 - number % 4],
            None if number % 4 == 1 else (number, [("",), None, (region,)]),
            {"": Decimal(10**38 - 1), "k": None} if number % 2 else None,
        )
        for number, region in enumerate(REGIONS)
    ]


def ours(read: DeltaTable, version: int | None = None) -> list[str]:
    return in_order(read.read(version=version).collect())


def check_same(judge: DeltaSpark, read: DeltaTable, *versions: int) -> None:
    for version in versions:
        assert ours(read, version) == judge.rows(read.path, version), version


@pytest.mark.parametrize("materialized", [True, False])
def test_delta_spark_reads_and_continues_what_penstock_writes(
    spark: SparkSession, judge: DeltaSpark, tmp_path: Path, materialized: bool
) -> None:
    made = penstock.delta.create(
        str(tmp_path / "t"),
        SCHEMA,
        partitioned_by=PARTITIONED_BY,
        materialize_partition_columns=materialized,
        spark=spark,
    )
    rows = spark.createDataFrame(hostile_rows(), made.schema)
    made.append(rows.coalesce(1))
    expected = in_order(rows.selectExpr("id", "nullif(region, '')", *rows.columns[2:]).collect())
    assert judge.rows(made.path) == expected

    made.overwrite(rows.where("region = 'x=y'").coalesce(1), where="region = 'x=y'")
    made.append(rows.selectExpr("id + 100 AS id", "'many' AS region", *rows.columns[5:]).coalesce(1))
    made.delete("region = 'many' AND id > 110 OR region = '100%'")
    made.checkpoint()
    if not materialized:
        assert FEATURE not in judge.sql(f"DESCRIBE DETAIL {table(made.path)}")[0].tableFeatures
        made.enable_materialized_partition_columns()
        made.backfill()
    check_same(judge, made, 2, made.version)

    detail = judge.sql(f"DESCRIBE DETAIL {table(made.path)}")[0]
    assert FEATURE in detail.tableFeatures
    assert detail.properties[ENABLED] == "true"
    assert (detail.partitionColumns, detail.numFiles) == (PARTITIONED_BY, made.files().count())
    told = [(row.version, row.operation) for row in judge.sql(f"DESCRIBE HISTORY {table(made.path)}")]
    assert told == [(row.version, row.operation) for row in made.history().collect()]

    before = made.files().count()
    judge.sql(
        f"INSERT INTO {table(made.path)} SELECT id + 1000, concat(region, 'ä'), day, price, at, f, b, born, seen, s, m"
        f" FROM {table(made.path)} WHERE id < 100"
    )
    assert made.files().count() > before
    assert made.verify().ok
    judge.sql(f"ALTER TABLE {table(made.path)} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    judge.sql(f"DELETE FROM {table(made.path)} WHERE region = 'many' AND id < 105 OR region = 'x=yä'")
    assert made.files().where("deleted > 0").count() == 1
    check_same(judge, made, made.version - 2, made.version)
    for where in (
        "day < date'1970-01-01'",
        "region IS NULL",
        "region = '%2F'",
        "price < 0",
        "at IS NOT NULL",
        "id > 9",
    ):
        found = in_order(judge.sql(f"SELECT * FROM {table(made.path)} WHERE {where}"))
        assert in_order(made.read().where(where).collect()) == found, where


@pytest.mark.parametrize("materialized", [True, False])
def test_delta_spark_reads_what_penstock_compacts(
    spark: SparkSession, judge: DeltaSpark, tmp_path: Path, materialized: bool
) -> None:
    made = penstock.delta.create(
        str(tmp_path / "t"),
        SCHEMA,
        partitioned_by=PARTITIONED_BY,
        materialize_partition_columns=materialized,
        spark=spark,
    )
    rows = spark.createDataFrame(hostile_rows(), made.schema)
    for _ in range(3):
        made.append(rows.coalesce(1))
    judge.sql(f"ALTER TABLE {table(made.path)} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    judge.sql(f"INSERT INTO {table(made.path)} SELECT * FROM {table(made.path)} WHERE id < 9")
    judge.sql(f"DELETE FROM {table(made.path)} WHERE id IN (2, 5) AND f IS NOT NULL")
    before, newest, files = judge.rows(made.path), made.version, made.files().count()
    assert made.compact() == newest + 1
    assert made.files().count() < files
    assert judge.rows(made.path) == before
    check_same(judge, made, 1, newest, newest + 1)
    judge.sql(f"DELETE FROM {table(made.path)} WHERE id = 7")
    judge.sql(f"OPTIMIZE {table(made.path)}")
    check_same(judge, made, newest + 1, made.version)


@pytest.mark.parametrize(("mapping", "vectors", "policy"), [("name", True, "v2"), ("id", False, "classic")])
def test_penstock_reads_and_continues_what_delta_spark_writes(
    spark: SparkSession, judge: DeltaSpark, tmp_path: Path, mapping: str, vectors: bool, policy: str
) -> None:
    path = tmp_path / "t"
    name = table(path)
    properties = {
        ENABLED: "true",
        "delta.columnMapping.mode": mapping,
        "delta.enableDeletionVectors": str(vectors).lower(),
        "delta.checkpointPolicy": policy,
        "delta.checkpointInterval": "3",
    }
    settings = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    judge.sql(
        f"CREATE TABLE {name} (id BIGINT, region STRING, n INT, at TIMESTAMP, local TIMESTAMP_NTZ,"
        f" s STRUCT<a: INT, l: ARRAY<STRUCT<x: STRING>>>, m MAP<STRING, INT>) USING delta"
        f" PARTITIONED BY (region, local) TBLPROPERTIES ({settings})"
    )
    insert = (
        "INSERT INTO {name} SELECT id, element_at(array(null, 'a/b=c %', '😀'), 1 + int(id % 3)), int(id % 5),"
        " timestamp_micros(id % 2 * 1765360800123456 - 1),"
        " if(id % 2 = 0, null, timestamp_ntz'1582-10-14 01:02:03.000004'),"
        " if(id % 4 = 0, null, struct(int(id), array(struct(string(id)), null))), map('k', int(id))"
        " FROM range({first}, {first} + 24, 1, 1)"
    )
    judge.sql(insert.format(name=name, first=0))
    judge.sql(f"DELETE FROM {name} WHERE id % 7 = 3")
    judge.sql(f"UPDATE {name} SET n = -id WHERE id % 7 = 4")
    judge.sql(f"ALTER TABLE {name} RENAME COLUMN n TO number")
    judge.sql(f"ALTER TABLE {name} RENAME COLUMN region TO `the region`")
    judge.sql(f"ALTER TABLE {name} ADD COLUMN (late STRING)")
    judge.sql(f"ALTER TABLE {name} DROP COLUMN m")
    judge.sql(insert.replace("map('k', int(id))", "string(id)").format(name=name, first=100))

    opened = penstock.delta.open(str(path), spark=spark)
    assert len(list((path / "_delta_log").glob("0*.checkpoint.*"))) == 2
    assert opened.materializes_partition_columns
    assert (opened.files().where("deleted > 0").count() > 0) == vectors
    assert opened.verify().ok
    check_same(judge, opened, 2, 3, opened.version)

    rows = opened.read().where("id < 20").selectExpr("id + 1000 AS id", *[f"`{n}`" for n in opened.schema.names[1:]])
    before = {row.path for row in opened.files().collect()}
    opened.append(rows)
    physical = [opened.schema[name].metadata["delta.columnMapping.physicalName"] for name in opened.partition_columns]
    for row in opened.files().collect():
        if row.path not in before:
            assert pq.read_schema(path / row.path).names[-2:] == physical
    opened.delete("id % 11 = 0")
    opened.overwrite(rows.where("id % 4 = 3"), where="id > 100 AND id % 4 = 3")
    replaced = opened.version
    judge.sql(f"OPTIMIZE {name}")
    assert opened.verify().ok
    check_same(judge, opened, replaced, opened.version)


def test_features_that_are_not_understood_are_refused_by_name(
    spark: SparkSession, judge: DeltaSpark, tmp_path: Path
) -> None:
    def made(feature: str) -> DeltaTable:
        path = tmp_path / feature
        layout = (
            "CLUSTER BY (p)"
            if feature == "clustering"
            else f"PARTITIONED BY (p) TBLPROPERTIES ('delta.feature.{feature}' = 'supported', '{ENABLED}' = 'true')"
        )
        judge.sql(f"CREATE TABLE {table(path)} (id BIGINT, p STRING) USING delta {layout}")
        judge.sql(f"INSERT INTO {table(path)} (id, p) VALUES (1, 'a')")
        return penstock.delta.open(str(path), spark=spark)

    for feature in ("typeWidening", "variantType"):
        with pytest.raises(penstock.UnsupportedError, match=feature):
            made(feature).read()
    row = spark.createDataFrame([(2, "b")], "id BIGINT, p STRING")
    for feature in ("rowTracking", "clustering"):
        opened = made(feature)
        assert ours(opened) == ["(1, 'a')"]
        with pytest.raises(penstock.UnsupportedError, match=feature):
            opened.append(row)


def test_both_append_in_turns_and_at_once(spark: SparkSession, judge: DeltaSpark, tmp_path: Path) -> None:
    made = penstock.delta.create(
        str(tmp_path / "t"),
        "id BIGINT, p STRING",
        partitioned_by=["p"],
        materialize_partition_columns=True,
        spark=spark,
    )

    def ours_adds(number: int) -> int:
        return made.append(spark.range(number, number + 1).selectExpr("id", "'ours' AS p"))

    def theirs_adds(number: int) -> None:
        judge.sql(f"INSERT INTO {table(made.path)} VALUES ({number}, 'theirs')")

    for number in range(3):
        assert ours_adds(number) == 2 * number + 1
        theirs_adds(100 + number)
        assert made.version == 2 * number + 2
    with ThreadPoolExecutor(2) as pool:
        mine = pool.submit(lambda: [ours_adds(number) for number in range(3, 9)])
        other = pool.submit(lambda: [theirs_adds(100 + number) for number in range(3, 9)])
        mine.result()
        other.result()
    assert made.version == 18
    expected = [(number, "ours") for number in range(9)] + [(100 + number, "theirs") for number in range(9)]
    assert ours(made) == judge.rows(made.path) == in_order(expected)
    assert [row.version for row in judge.sql(f"DESCRIBE HISTORY {table(made.path)}")] == list(range(18, -1, -1))
    assert made.verify().ok
