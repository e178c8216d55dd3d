"""`penstock.register` on a session that Penstock did not make: it knows the format from then on, and no lake."""

from __future__ import annotations

import subprocess
import sys

import pytest

from support.catalogs import Catalog
from support.processes import environment

PROGRAM = """
import sys
import penstock
from pyspark.sql import SparkSession

place, checkpoint = sys.argv[1:]
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
reader = spark.read.format("ducklake").option("lake", place).option("table", "t")
try:
    reader.load()
except Exception as error:
    print("before:", "DATA_SOURCE_NOT_FOUND" in str(error))
for _ in range(2):
    penstock.register(spark)
print("lakes:", [row.catalog for row in spark.sql("SHOW CATALOGS").collect()])
rows = reader.load()
print("rows:", rows.where("id > 1").orderBy("id").collect())
rows.selectExpr("id + 10 AS id", "name").write.format("ducklake").option("lake", place).option("table", "t").mode(
    "append"
).save()
spark.sql(f"CREATE TEMP VIEW v USING ducklake OPTIONS (lake '{place}', table 't', version 2)")
print("then:", spark.sql("SELECT count(*) FROM v").collect())
stream = spark.readStream.format("ducklake").option("lake", place).option("table", "t").load()
writer = stream.writeStream.format("ducklake").option("lake", place).option("table", "copy")
query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
print("stream:", query.awaitTermination(300), query.exception())
other = spark.newSession()
penstock.register(other)
print("other:", other.read.format("ducklake").option("lake", place).option("table", "copy").load().count())
spark.stop()
"""


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.takes(40)
def test_a_plain_session_learns_the_format(sqlite_catalog: Catalog) -> None:
    with sqlite_catalog.build() as reference:
        reference.execute(
            "CREATE TABLE t (id BIGINT, name VARCHAR)",
            "INSERT INTO t VALUES (1, 'one'), (2, NULL)",
            "CREATE TABLE copy (id BIGINT, name VARCHAR)",
        )
    checkpoint = f"{sqlite_catalog.data_path}/../checkpoint"
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, sqlite_catalog.uri, checkpoint],
        env=environment(), capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    assert run.stdout.splitlines() == [
        "before: True",
        "lakes: ['spark_catalog']",
        "rows: [Row(id=2, name=None)]",
        "then: [Row(count(1)=2)]",
        "stream: True None",
        "other: 4",
    ]
    with sqlite_catalog.reference() as reference:
        assert reference.rows("FROM copy ORDER BY id") == [(1, "one"), (2, None), (11, "one"), (12, None)]
