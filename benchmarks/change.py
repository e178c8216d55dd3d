"""Changing 1% of a table, beside one full scan of it: python benchmarks/change.py [--only delete]

TPC-H lineitem, in eight files. Every number is the median of the statement's time over that of a scan
(the count of each column) of the same table in the same run, turn by turn. The 1% are spread over all files.
"""

from __future__ import annotations

import statistics
import tempfile
from functools import partial
from pathlib import Path

import lakes
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from runs import seconds, setting

import penstock
from penstock import Table

GOALS = {"delete": 2, "update": 3, "merge": 3}
_ONE_PERCENT = "l_orderkey % 100 = {}"


def scan(table: Table) -> None:
    rows = table.read()
    rows.agg(*(F.count(name) for name in rows.columns)).collect()


def delete(table: Table, run: int, _: DataFrame) -> None:
    table.delete(_ONE_PERCENT.format(run))


def update(table: Table, run: int, _: DataFrame) -> None:
    table.update({"l_quantity": "l_quantity + 1", "l_comment": "upper(l_comment)"}, where=_ONE_PERCENT.format(run))


def merge(table: Table, run: int, source: DataFrame) -> None:
    """A tenth of the source's rows is new."""
    chosen = source.where(_ONE_PERCENT.format(run)).withColumn(
        "l_orderkey", F.expr("IF(l_orderkey % 1000 < 100, -l_orderkey, l_orderkey)")
    )
    on = "target.l_orderkey = source.l_orderkey AND target.l_linenumber = source.l_linenumber"
    clauses = table.merge(chosen, on).when_matched_update({"l_comment": "source.l_shipmode"}).when_not_matched_insert()
    clauses.execute()


STATEMENTS = {"delete": delete, "update": update, "merge": merge}


def measure(spark: SparkSession, source: Path, name: str, runs: int) -> None:
    """Each statement on a table of its own; the first run warms both sides."""
    rows = spark.read.parquet(str(source))
    times = []
    with (
        tempfile.TemporaryDirectory(prefix="penstock-") as scratch,
        penstock.attach(f"ducklake:sqlite:{scratch}/l.sqlite", data_path=f"{scratch}/data/", spark=spark) as lake,
    ):
        table = lake.create_table("lineitem", rows.schema)
        table.append(rows.repartition(8), distribution="none")
        for run in range(runs + 1):
            scanned = seconds(lambda: scan(table))
            times.append((seconds(partial(STATEMENTS[name], table, run, rows)), scanned))
    changed, scanned = (statistics.median(column) for column in zip(*times[1:], strict=True))
    ratio = f"{changed / scanned:5.2f} (goal {GOALS[name]})"
    print(f"{name:8} 1% {changed:6.2f} s   full scan {scanned:6.2f} s   ratio {ratio}", flush=True)


def main() -> None:
    scale, only = {"type": float, "default": 1}, {"choices": list(STATEMENTS)}
    with setting(__doc__, scale=scale, only=only) as given:
        source = lakes.lineitem_parquet(given.directory, given.options.scale)
        for name in [given.options.only] if given.options.only else STATEMENTS:
            measure(given.spark, source, name, given.options.runs)


if __name__ == "__main__":
    main()
