"""TPC-H's 22 queries over a lake, beside `spark.read.parquet` of the same files: python benchmarks/tpch.py --by names

The lake's tables by name in `spark.sql`, or as views of `Table.read()` (`--by views`). The texts are those of DuckDB's
extension. Both sides run turn by turn in one session and have to give the same rows; ratios of medians.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping

import lakes
from pyspark.sql import DataFrame, Row, SparkSession
from runs import measured, setting

import penstock

Views = Mapping[str, DataFrame]
Times = list[tuple[float, float]]


def queries() -> dict[int, str]:
    """The queries by their numbers. Spark takes them as they are, without the semicolon."""
    with lakes.duck() as connection:
        found = connection.execute("SELECT query_nr, query FROM tpch_queries()").fetchall()
    return {number: text.strip().removesuffix(";") for number, text in found}


def show(spark: SparkSession, views: Views) -> None:
    """Let the names of the tables be these views; without a view, a name is the lake's own."""
    for name in lakes.TPCH:
        if name in views:
            views[name].createOrReplaceTempView(name)
        else:
            spark.catalog.dropTempView(name)


def in_order(rows: list[Row]) -> list[str]:
    return sorted(map(repr, rows))


def compare(spark: SparkSession, text: str, sides: tuple[Views, Views], runs: int) -> list[Times]:
    """The times of both sides: each first once without, and then each first in turn."""
    times: list[Times] = [[], []]
    for run in range(runs + 1):
        answers: dict[int, list[str]] = {}
        for side in (0, 1) if run % 2 else (1, 0):
            show(spark, sides[side])
            rows: list[Row] = []
            taken = measured(lambda found=rows: found.extend(spark.sql(text).collect()))
            answers[side] = in_order(rows)
            if run:
                times[side].append(taken)
        if answers[0] != answers[1]:
            raise AssertionError(f"the lake and the files give different rows: {answers[0][:3]}, {answers[1][:3]}")
    return times


def medians(times: Times) -> tuple[float, float]:
    wall, cpu = zip(*times, strict=True)
    return statistics.median(wall), statistics.median(cpu)


def report(name: str, mine: tuple[float, float], other: tuple[float, float]) -> None:
    parts = [
        f"{unit} penstock {ours:7.2f} s  other {theirs:7.2f} s  ratio {ours / theirs:5.2f}"
        for unit, ours, theirs in zip(("wall", "CPU"), mine, other, strict=True)
    ]
    print(f"{name:6}", "   ".join(parts), flush=True)


def main() -> None:
    by = {"choices": ["names", "views"], "default": "names"}
    only = {"nargs": "*", "type": int, "default": range(1, 23), "help": "numbers of queries"}
    with setting(__doc__, scale={"type": float, "default": 1}, by=by, only=only) as given:
        spark, options = given.spark, given.options
        uri = lakes.tpch_lake(given.directory, options.scale)
        with penstock.attach(uri, name="tpch", read_only=True, spark=spark) as lake:
            spark.sql("USE tpch.main")
            tables = {name: lake.table(name) for name in lakes.TPCH}
            files = {name: [row.data_file for row in table.files().collect()] for name, table in tables.items()}
            plain = {name: spark.read.parquet(*paths) for name, paths in files.items()}
            ours = {name: table.read() for name, table in tables.items()} if options.by == "views" else {}
            totals = ([0.0, 0.0], [0.0, 0.0])
            for number, text in queries().items():
                if number not in options.only:
                    continue
                both = [medians(times) for times in compare(spark, text, (ours, plain), options.runs)]
                for total, times in zip(totals, both, strict=True):
                    total[:] = [sum(pair) for pair in zip(total, times, strict=True)]
                report(f"Q{number}", *both)
            report("total", (totals[0][0], totals[0][1]), (totals[1][0], totals[1][1]))
            spark.sql("USE spark_catalog.default")


if __name__ == "__main__":
    main()
