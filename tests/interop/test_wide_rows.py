"""Rows of any width, with little memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

import penstock
from support.catalogs import Catalog
from support.processes import environment

ROWS, BYTES = 8_000, 155_000
WRITER = """
import sys
import penstock
from pyspark.sql import functions as F  # noqa: N812
from support.small_sessions import SMALL

uri, data_path, rows, size = *sys.argv[1:3], *map(int, sys.argv[3:])
spark = penstock.session("local[2]", **{**SMALL, "spark.driver.memory": "1g"})
columns = [F.col("id"), F.col("id") % 2, F.concat(F.repeat(F.lit("x"), size), F.col("id"))]
with penstock.attach(uri, data_path=data_path, spark=spark) as lake:
    table = lake.create_table("t", "id BIGINT, p BIGINT, s STRING", partitioned_by=["p"])
    table.append(spark.range(rows).select(*columns).toDF("id", "p", "s"))
"""


@pytest.mark.slow
@pytest.mark.spark
def test_wide_rows_in_a_small_jvm(file_catalog: Catalog) -> None:
    """All of them in the batches of 10,000 rows that Spark makes would be 1.2 GB."""
    command = [sys.executable, "-c", WRITER, file_catalog.uri, file_catalog.data_path, str(ROWS), str(BYTES)]
    run = subprocess.run(command, capture_output=True, text=True, env=environment())
    assert run.returncode == 0, run.stderr[-3000:]
    with file_catalog.reference() as reference:
        [told] = reference.rows(f"SELECT count(*), sum(id), sum(s[{BYTES} + 1:]::INT), min(length(s)) FROM t")
        assert told == (ROWS, sum(range(ROWS)), sum(range(ROWS)), BYTES + 1)
        files = list(Path(file_catalog.directory).rglob("*.parquet"))
        assert len(files) == reference.value("SELECT count(*) FROM ducklake_list_files('lk', 't')")


@pytest.mark.slow
def test_changes_of_a_table_of_many_columns(file_catalog: Catalog, spark: SparkSession) -> None:
    """Spark's checkpoints look for what holds for all rows, and doubled what they had found with every column."""
    columns, rows = [f"c{i}" for i in range(60)], spark.range(50)
    with penstock.attach(file_catalog.uri, data_path=file_catalog.data_path, spark=spark) as lake:
        table = lake.create_table("t", "id BIGINT, " + ", ".join(f"{name} STRING" for name in columns))
        table.append(rows.select("id", *(F.concat(F.lit(f"{name} "), "id").alias(name) for name in columns)))
        table.update({"c1": "concat(c0, c59)"}, where="id % 10 = 1")
        source = rows.where("id % 10 = 2").select("id", *(F.lit("merged").alias(name) for name in columns))
        table.merge(source, on="id").when_matched_update().when_not_matched_insert().execute()
    with file_catalog.reference() as reference:
        told = reference.rows(
            "SELECT count(*), count(*) FILTER (c1 = c0 || c59), count(*) FILTER (c59 = 'merged') FROM t"
        )
        assert told == [(50, 5, 5)]
