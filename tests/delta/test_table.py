"""Delta tables written by Spark, read by deltalake and DuckDB: the feature, deletes, pruning, time travel."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import penstock
import penstock.delta
from support.delta_judges import by_deltalake, by_duckdb, data_files, in_order

SCHEMA = (
    "id BIGINT NOT NULL, region STRING, day DATE, amount DECIMAL(38,2), ts TIMESTAMP, f DOUBLE,"
    " s STRUCT<a: INT, b: ARRAY<STRING>>, m MAP<STRING, INT>"
)
HOSTILE = (
    "EU",
    "",
    None,
    "a/b=c$d%e:f",
    "é😀 x",
    'it\'s "q"',
    "__HIVE_DEFAULT_PARTITION__",
    "tab\there",
    "..",
    "a\x1fb\x1e",
    "\\_\x01",
)


def sales(spark: SparkSession, rows: int = 60, first: int = 0) -> DataFrame:
    texts = ", ".join(
        "null" if one is None else "'" + one.replace("\\", "\\\\").replace("'", "\\'") + "'" for one in HOSTILE
    )
    days = "array(date'1969-12-31', date'2025-12-10', null, date'9999-12-31')"
    return spark.range(first, first + rows).select(
        "id",
        F.expr(f"element_at(array({texts}), 1 + cast(id % {len(HOSTILE)} as int))").alias("region"),
        F.expr(f"element_at({days}, 1 + cast(id % 4 as int))").alias("day"),
        F.expr("cast('123456789012345678901234567890123456.78' as decimal(38,2)) - id").alias("amount"),
        F.expr("timestamp_micros(1765360800123456 + id * 3600000000)").alias("ts"),
        F.expr("element_at(array(double('NaN'), -0.0D, 1.5D, null), 1 + cast(id % 4 as int))").alias("f"),
        F.expr("if(id % 5 = 0, null, named_struct('a', cast(id as int), 'b', array('x', null)))").alias("s"),
        F.expr("if(id % 3 = 0, null, map('k', cast(id as int)))").alias("m"),
    )


def stored(frame: DataFrame) -> DataFrame:
    """The rows as Delta keeps them: an empty partition value is NULL."""
    return frame.withColumn("region", F.expr("nullif(region, '')"))


def make(spark: SparkSession, path: Path, **options: Any) -> penstock.delta.DeltaTable:
    return penstock.delta.create(str(path), SCHEMA, partitioned_by=["region", "day"], spark=spark, **options)


PLAIN = "id, region, day, amount"


@pytest.mark.parametrize("materialized", [True, False])
def test_what_spark_writes_all_others_read(spark: SparkSession, tmp_path: Path, materialized: bool) -> None:
    table = make(spark, tmp_path / "t", materialize_partition_columns=materialized)
    table.append(sales(spark, 40))
    table.append(sales(spark, 20, first=40))
    expected = stored(sales(spark))
    assert in_order(table.read().collect()) == in_order(expected.collect())
    plain = in_order(expected.selectExpr(*PLAIN.split(", ")).collect())
    assert in_order(by_deltalake(table.path, PLAIN)) == plain
    assert in_order(by_duckdb(table.path, PLAIN)) == plain
    assert in_order(by_duckdb(table.path, "id, s.a, epoch_us(ts), f")) == in_order(
        expected.selectExpr("id", "s.a", "unix_micros(ts)", "f").collect()
    )
    for file in data_files(tmp_path / "t"):
        names = pq.read_schema(tmp_path / "t" / file).names
        assert names == ["id", "amount", "ts", "f", "s", "m", *(["region", "day"] if materialized else [])]
    assert table.verify().ok == materialized
    assert table.materializes_partition_columns == materialized


def test_the_log(spark: SparkSession, tmp_path: Path) -> None:
    table = make(spark, tmp_path / "t", materialize_partition_columns=True)
    table.append(sales(spark, 1, first=3), txn=("job", 7))
    commits = [
        [json.loads(line) for line in (tmp_path / "t" / "_delta_log" / f"{version:020}.json").read_text().splitlines()]
        for version in (0, 1)
    ]
    protocol = next(line["protocol"] for line in commits[0] if "protocol" in line)
    assert protocol == {
        "minReaderVersion": 1,
        "minWriterVersion": 7,
        "writerFeatures": ["appendOnly", "invariants", "materializePartitionColumns"],
    }
    add = next(line["add"] for line in commits[1] if "add" in line)
    assert add["partitionValues"] == {"region": "a/b=c$d%e:f", "day": "9999-12-31"}
    assert add["path"].startswith("region=a%252Fb%253Dc%24d%2525e%253Af/day=9999-12-31/part-")
    statistics = json.loads(add["stats"])
    assert statistics["numRecords"] == 1
    assert statistics["minValues"]["id"] == statistics["maxValues"]["id"] == 3
    assert statistics["nullCount"]["f"] == 1
    assert statistics["minValues"]["ts"] == "2025-12-10T13:00:00.123456Z"
    assert "region" not in statistics["nullCount"]
    assert next(line["txn"] for line in commits[1] if "txn" in line)["version"] == 7
    assert table.append(sales(spark, 5), txn=("job", 7)) == 1
    assert table.append(sales(spark, 5), txn=("job", 8)) == 2
    assert table.read().count() == 6


@pytest.mark.slow
def test_pruning_and_reading_one_partition(spark: SparkSession, tmp_path: Path) -> None:
    table = make(spark, tmp_path / "t")
    for first in (0, 100, 200):
        table.append(sales(spark, 30, first=first))
    expected = stored(sales(spark, 30).union(sales(spark, 30, first=100)).union(sales(spark, 30, first=200)))
    for where in (
        "region = 'EU'", "region IS NULL", "region > 'a' AND day = date'2025-12-10'", "id > 210", "s.a = 101",
        "ts >= timestamp'2025-12-14 00:00:00'", "amount < 0", "f = 0.0", "f > 500", "isnan(f)",
        "day < date'1970-01-01' OR id = 7",
        "region = 'tab\\there'", "region LIKE 'é%'",
    ):  # fmt: skip
        assert in_order(table.read().where(where).collect()) == in_order(expected.where(where).collect()), where
    assert _files_read(table.read().where("id > 210")) < _files_read(table.read())
    assert _files_read(table.read().where("region = 'EU' AND day = date'1969-12-31'")) == 2  # of the ids 0 and 220
    assert _files_read(table.read().where("amount < 0")) == 0


def _files_read(query: DataFrame) -> int:
    plan: Any = query._jdf.queryExecution().executedPlan()  # type: ignore[operator]
    return int(plan.collectLeaves().apply(0).selectedPartitions().totalNumberOfFiles())


def test_versions(spark: SparkSession, tmp_path: Path) -> None:
    table = make(spark, tmp_path / "t", materialize_partition_columns=True)
    one = table.append(sales(spark, 20))
    two = table.delete("region = 'EU'")
    three = table.delete("id % 5 = 1")
    four = table.overwrite(sales(spark, 5, first=100).where("region = 'EU'"), where="region = 'EU'")
    five = table.overwrite(sales(spark, 3, first=50))
    assert (one, two, three, four, five) == (1, 2, 3, 4, 5)
    everything = stored(sales(spark, 20))
    without = everything.where("NOT region <=> 'EU'")
    expected = {
        0: everything.limit(0),
        one: everything,
        two: without,
        three: without.where("id % 5 <> 1"),
        four: without.where("id % 5 <> 1").union(stored(sales(spark, 5, first=100)).where("region = 'EU'")),
        five: stored(sales(spark, 3, first=50)),
    }
    for version, rows in expected.items():
        assert in_order(table.read(version=version).collect()) == in_order(rows.collect()), version
        ids = [(row.id,) for row in rows.select("id").collect()]
        assert in_order(by_deltalake(table.path, "id", version)) == in_order(ids)
    assert table.verify().ok
    told = table.history().collect()
    assert [row.version for row in told] == [5, 4, 3, 2, 1, 0]
    assert [row.operation for row in told] == ["WRITE", "WRITE", "DELETE", "DELETE", "WRITE", "CREATE TABLE"]
    assert table.files().count() == len(_live(table))
    assert table.read(timestamp=told[-1].timestamp.replace(tzinfo=dt.UTC)).count() == 0
    table.checkpoint()
    for version in range(5):
        (tmp_path / "t" / "_delta_log" / f"{version:020}.json").unlink()
    reopened = penstock.delta.open(str(tmp_path / "t"), spark=spark)
    assert in_order(reopened.read().collect()) == in_order(expected[five].collect())
    with pytest.raises(penstock.NotFoundError, match="version 2"):
        reopened.read(version=2)
    reopened.append(sales(spark, 1))
    assert len(by_duckdb(table.path, "id")) == 4


def _live(table: penstock.delta.DeltaTable) -> list[str]:
    return [row.path for row in table.files().collect()]


def test_deletes_read_only_what_they_must(spark: SparkSession, tmp_path: Path) -> None:
    table = make(spark, tmp_path / "t")
    table.append(sales(spark, 60))
    before = set(_live(table))
    table.delete("day = date'2025-12-10'")
    assert set(_live(table)) < before  # nothing was rewritten
    assert data_files(tmp_path / "t") == before
    assert table.delete("id = 12345") == table.version
    spark.range(3, 6).createOrReplaceTempView("gone")
    table.delete("id IN (SELECT id FROM gone)")
    expected = stored(sales(spark)).where("coalesce(day <> date'2025-12-10', true) AND id NOT IN (3, 4, 5)")
    assert in_order(table.read().collect()) == in_order(expected.collect())
    table.delete()
    assert table.read().count() == 0
    assert by_duckdb(table.path, "id") == []


def test_upgrade_verify_backfill_and_drop(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    rows = sales(spark, 30).selectExpr("id", "region", "day", "amount")
    # For which deltalake writes NULL, and '' as it is, which others read as NULL.
    rows = rows.where("coalesce(region NOT IN ('__HIVE_DEFAULT_PARTITION__', ''), true)")
    write_deltalake(str(path), rows.toArrow(), partition_by=["region", "day"])
    table = penstock.delta.open(str(path), spark=spark)
    expected = in_order(table.read().collect())
    assert expected == in_order(stored(rows).collect())
    assert not table.verify().ok
    assert {finding.kind for finding in table.verify().findings} == {"missing"}
    version = table.enable_materialized_partition_columns()
    assert table.enable_materialized_partition_columns() == version
    assert table.protocol.writer_features is not None
    assert {"appendOnly", "invariants", "materializePartitionColumns"} <= set(table.protocol.writer_features)
    table.append(rows.limit(1))
    assert len(table.verify().findings) == 2 * (table.files().count() - 1)
    table.backfill()
    assert table.verify().ok
    assert table.backfill() == table.version
    changes = [row for row in table.history().collect() if row.operation == "REORG"]
    assert len(changes) == 1
    lines = (path / "_delta_log" / f"{changes[0].version:020}.json").read_text().splitlines()
    assert {json.loads(line)["add"]["dataChange"] for line in lines if "add" in json.loads(line)} == {False}
    assert in_order(by_duckdb(path)) == in_order(by_deltalake(path)) == in_order(table.read().collect())
    assert table.read().count() == len(expected) + 1
    table.drop_materialized_partition_columns()
    table.append(rows.limit(1))
    assert not table.materializes_partition_columns
    assert {finding.kind for finding in table.verify().findings} == {"missing"}
    write_deltalake(str(path), rows.limit(1).toArrow(), mode="append")  # which it refuses with the feature
    assert table.read().count() == len(expected) + 3


def test_partition_values_of_every_type(spark: SparkSession, tmp_path: Path) -> None:
    schema = (
        "id INT, a BYTE, b SHORT, c INT, d BIGINT, e FLOAT, f DOUBLE, g DECIMAL(38,10), h BOOLEAN, i DATE,"
        " j TIMESTAMP, k TIMESTAMP_NTZ, l STRING, m BINARY"
    )
    names = [part.split()[0] for part in schema.split(", ")]
    frame = spark.sql(
        f"""SELECT * FROM VALUES
        (1, -128Y, -32768S, -2147483648, -9223372036854775808L, 1.5F, -0.0D,
         cast('-1234567890123456789012345678.0000000001' as decimal(38,10)), true, date'1600-02-29',
         timestamp'2026-01-02 03:04:05.123456', timestamp_ntz'1969-12-31 23:59:59.999999', 'a:b', x'FF00'),
        (2, 127Y, 32767S, 2147483647, 9223372036854775807L, float('Infinity'), 1e300D, 0.0000000001, false,
         date'9999-12-31', timestamp'1900-01-01 00:00:00', timestamp_ntz'9999-12-31 00:00:00', repeat('é', 300), x'7A'),
        (3, null, null, null, null, null, null, null, null, null, null, null, null, null)
        AS t({", ".join(names)})"""
    )
    table = penstock.delta.create(
        str(tmp_path / "t"), schema, partitioned_by=names[1:], materialize_partition_columns=True, spark=spark
    )
    table.append(frame)
    assert in_order(table.read().collect()) == in_order(frame.collect())
    assert table.verify().ok, str(table.verify())
    for name in names[1:]:
        assert table.read().where(f"{name} IS NULL").count() == 1, name
    assert table.read().where("j = timestamp'2026-01-02 03:04:05.123456'").count() == 1
    assert table.read().where("g < 0").select("id").collect() == [(1,)]
    assert table.read().where("m = x'FF00'").select("id").collect() == [(1,)]
    assert {row[0] for row in by_duckdb(table.path, "g")} == {row.g for row in frame.collect()}
    columns = "id, a, b, c, d, h, i, l"
    plain = in_order(frame.selectExpr(*columns.split(", ")).collect())
    assert in_order(by_deltalake(table.path, columns)) == plain
    assert in_order(by_duckdb(table.path, columns)) == plain
    assert in_order(by_duckdb(table.path, "id, epoch_us(j), epoch_us(k)")) == in_order(
        frame.selectExpr("id", "unix_micros(j)", "unix_micros(cast(k as timestamp))").collect()
    )


def test_timestamps_in_another_zone(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.session.timeZone", "America/St_Johns")
    try:
        table = penstock.delta.create(
            str(tmp_path / "t"), "id INT, ts TIMESTAMP", partitioned_by=["ts"], materialize_partition_columns=True,
            spark=spark,
        )  # fmt: skip
        table.append(spark.sql("SELECT 1 AS id, timestamp'2025-12-10 23:15:00' AS ts"))
        assert [row.partition for row in table.files().collect()] == [{"ts": "2025-12-11T02:45:00.000000Z"}]
        assert table.read().where("ts = timestamp'2025-12-10 23:15:00'").count() == 1
        assert table.verify().ok
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_errors_change_nothing(spark: SparkSession, tmp_path: Path) -> None:
    table = make(spark, tmp_path / "t")
    table.append(sales(spark, 4))
    files, version = data_files(tmp_path / "t"), table.version
    for frame, error in (
        (sales(spark, 4).withColumn("more", F.lit(1)), "no column 'more'"),
        (sales(spark, 4).drop("id"), "'id' takes no NULL"),
        (sales(spark, 4).withColumn("id", F.expr("nullif(id, 2)")), "id"),
        (sales(spark, 4).withColumn("amount", F.array("id")), "column amount"),
    ):
        with pytest.raises(penstock.InvalidError, match=error):
            table.append(frame)
    with pytest.raises(penstock.InvalidError, match="does not satisfy region = 'EU', which it is to replace; nothing"):
        table.overwrite(sales(spark, 4), where="region = 'EU'")
    assert (data_files(tmp_path / "t"), table.version) == (files, version)
    with pytest.raises(penstock.InvalidError, match=r"a Delta table at .* already"):
        make(spark, tmp_path / "t")
    with pytest.raises(penstock.NotFoundError, match="no Delta table at"):
        penstock.delta.open(str(tmp_path / "nowhere"), spark=spark)
