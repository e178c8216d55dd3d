"""Writing, side by side with `DataFrame.write.parquet` of the same rows: python benchmarks/write.py [--only plain]

Every number is a ratio of medians over alternating runs in one process, of wall time and of the CPU time of the driver,
the JVM and the Python workers. Ours includes statistics and the commit.
"""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable
from itertools import count
from pathlib import Path

import lakes
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from runs import measured, setting

import penstock

YEAR_AND_MONTH = ["year(l_shipdate)", "month(l_shipdate)"]
_numbers = count()


def compare(name: str, ours: Callable[[], object], theirs: Callable[[], object], repeat: int) -> None:
    """Both warmed once, then turn by turn; the ratio of the medians."""
    ours(), theirs()
    runs = [(measured(ours), measured(theirs)) for _ in range(repeat)]
    for index, unit in enumerate(("wall", "CPU")):
        mine = statistics.median(run[0][index] for run in runs)
        other = statistics.median(run[1][index] for run in runs)
        print(f"{name:40} {unit:4} penstock {mine:6.2f} s  other {other:6.2f} s  ratio {mine / other:5.2f}", flush=True)


def written(lake: penstock.Lake, rows: DataFrame, partitioned_by: list[str], distribution: str) -> int:
    """Write the rows to a new table; the number of files."""
    table = lake.create_table(f"t{next(_numbers)}", rows.schema, partitioned_by=partitioned_by)
    table.append(rows, distribution=distribution)
    files = [row.data_file for row in table.files().collect()]
    for file in files:
        Path(file).unlink()
    return len(files)


def plain(spark: SparkSession, lake: penstock.Lake, source: Path, scratch: Path, repeat: int) -> None:
    rows = spark.read.parquet(str(source))
    compare(
        "unpartitioned",
        lambda: written(lake, rows, [], "auto"),
        lambda: rows.write.mode("overwrite").parquet(f"{scratch}/plain"),
        repeat,
    )
    shutil.rmtree(scratch / "plain")


def partitioned(
    spark: SparkSession, lake: penstock.Lake, source: Path, scratch: Path, distribution: str, repeat: int
) -> None:
    rows = spark.read.parquet(str(source))
    keyed = rows.withColumns({"year": F.year("l_shipdate"), "month": F.month("l_shipdate")})
    target = scratch / "partitioned"
    compare(
        f"by year and month, {distribution}",
        lambda: written(lake, rows, YEAR_AND_MONTH, distribution),
        lambda: keyed.write.mode("overwrite").partitionBy("year", "month").parquet(str(target)),
        repeat,
    )
    files = written(lake, rows, YEAR_AND_MONTH, distribution)
    print(f"  files: penstock {files}, other {len(list(target.rglob('*.parquet')))}", flush=True)
    shutil.rmtree(target)


def main() -> None:
    ways = {"nargs": "*", "default": ["auto"]}
    scale, only = {"type": float, "default": 1}, {"choices": ["plain", "partitioned"]}
    with setting(__doc__, scale=scale, only=only, distributions=ways) as given:
        spark, scratch, options = given.spark, given.scratch, given.options
        source = lakes.lineitem_parquet(given.directory, options.scale)
        with penstock.attach(
            f"ducklake:sqlite:{scratch}/lake.sqlite", data_path=f"{scratch}/data/", spark=spark
        ) as lake:
            if options.only != "partitioned":
                plain(spark, lake, source, scratch, options.runs)
            if options.only != "plain":
                for distribution in options.distributions:
                    partitioned(spark, lake, source, scratch, distribution, options.runs)


if __name__ == "__main__":
    main()
