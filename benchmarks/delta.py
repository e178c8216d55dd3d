"""Appending lineitem by ship month to a Delta table, beside delta-spark's own write: python benchmarks/delta.py

With and without the partition columns in the files. Two Sparks, each of the version that its side is made for (see
tests/delta_spark.py), write the same rows turn by turn; every number is a ratio of medians.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import lakes
from pyspark.sql import SparkSession
from runs import medians, setting

import penstock
import penstock.delta

sys.path.append(str(Path(__file__).parent.parent / "tests"))

from support.delta_spark import DeltaSpark, table

MONTH = "date_format(l_shipdate, 'yyyy-MM')"
SETTINGS = {"spark.driver.memory": "4g", "spark.sql.shuffle.partitions": "4"}  # as penstock.session() has them
FEATURE = "'delta.enableMaterializePartitionColumnsFeature' = 'true'"


def by_penstock(spark: SparkSession, source: Path, path: Path, materialized: bool) -> None:
    shutil.rmtree(path, ignore_errors=True)
    rows = spark.read.parquet(str(source)).selectExpr("*", f"{MONTH} AS l_shipmonth")
    made = penstock.delta.create(
        str(path), rows.schema, partitioned_by=["l_shipmonth"], materialize_partition_columns=materialized, spark=spark
    )
    made.append(rows)


def by_delta_spark(other: DeltaSpark, source: Path, path: Path, materialized: bool) -> None:
    shutil.rmtree(path, ignore_errors=True)
    properties = f"TBLPROPERTIES ({FEATURE})" if materialized else ""
    other.sql(
        f"CREATE TABLE {table(path)} USING delta PARTITIONED BY (l_shipmonth) {properties}"
        f" AS SELECT *, {MONTH} AS l_shipmonth FROM parquet.`{source}`"
    )


def measure(spark: SparkSession, other: DeltaSpark, source: Path, scratch: Path, runs: int) -> None:
    ways = {
        "penstock, materialized": lambda: by_penstock(spark, source, scratch / "p1", True),
        "penstock, not": lambda: by_penstock(spark, source, scratch / "p2", False),
        "delta-spark, materialized": lambda: by_delta_spark(other, source, scratch / "d1", True),
        "delta-spark, not": lambda: by_delta_spark(other, source, scratch / "d2", False),
    }
    taken = medians(ways, runs)
    for name, median in taken.items():
        print(f"{name:28} {median:6.2f} s", flush=True)
    for kind in ("materialized", "not"):
        ratio = taken[f"penstock, {kind}"] / taken[f"delta-spark, {kind}"]
        print(f"penstock / delta-spark, {kind:14} {ratio:5.2f}", flush=True)
    for side in ("penstock", "delta-spark"):
        ratio = taken[f"{side}, materialized"] / taken[f"{side}, not"]
        print(f"{side}: materialized / not      {ratio:5.2f}", flush=True)


def main() -> None:
    with setting(__doc__, scale={"type": float, "default": 1}) as given:
        source = lakes.lineitem_parquet(given.directory, given.options.scale)
        other = DeltaSpark(given.scratch / "delta-spark.log", **SETTINGS)
        measure(given.spark, other, source, given.scratch, given.options.runs)
        other.close()


if __name__ == "__main__":
    main()
