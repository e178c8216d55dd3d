"""The first rows of a small table in a new process, beside a session that only reads Parquet: see peers.py --cold."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

# Every way imports what it needs itself: that is part of what it takes.
ROWS = 1000


def by_parquet(settings: dict[str, str], place: dict[str, str]) -> int:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    return len(spark.read.parquet(place["file"]).collect())


def by_read(settings: dict[str, str], place: dict[str, str]) -> int:
    import penstock

    lake = penstock.attach(place["uri"], spark=penstock.session(**settings))
    return len(lake.table("small").read().collect())


def by_name(settings: dict[str, str], place: dict[str, str]) -> int:
    import penstock

    spark = penstock.session(**settings)
    penstock.attach(place["uri"], name="lake", spark=spark)
    return len(spark.sql("SELECT * FROM lake.small").collect())


WAYS = {"spark.read.parquet": by_parquet, "penstock, read()": by_read, "penstock, by name": by_name}


def made_lake(directory: Path) -> dict[str, str]:
    """A lake with one table in one file."""
    import lakes

    with lakes.duck() as connection:
        uri, data = f"ducklake:sqlite:{directory}/small.sqlite", directory / "small"
        connection.execute(f"ATTACH '{uri}' AS lake (DATA_PATH '{data}/', DATA_INLINING_ROW_LIMIT 0)")
        connection.execute(f"CREATE TABLE lake.small AS SELECT i AS id, 'row ' || i AS name FROM range({ROWS}) r(i)")
    (file,) = data.rglob("*.parquet")
    return {"uri": uri, "file": str(file)}


def first_rows(way: str, settings: dict[str, str], place: dict[str, str]) -> float:
    """The seconds of a way in a process of its own."""
    program = [sys.executable, __file__, way, json.dumps(settings), json.dumps(place)]
    run = subprocess.run(program, capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(f"{way}: {run.stderr[-3000:]}")
    rows, seconds = json.loads(run.stdout.splitlines()[-1])
    if rows != ROWS:
        raise AssertionError(f"{way} gave {rows} rows instead of {ROWS}")
    return float(seconds)


def compare(scratch: Path, settings: dict[str, str], rounds: int) -> None:
    """Turn by turn; before that once without, which fills the caches of the disk and of compiled classes."""
    place = made_lake(scratch)
    times = [{way: first_rows(way, settings, place) for way in WAYS} for _ in range(rounds + 1)][1:]
    medians = {way: statistics.median(turn[way] for turn in times) for way in WAYS}
    plain = medians["spark.read.parquet"]
    print("| from the import to the first rows | time | more |\n|---|---:|---:|")
    for way, taken in medians.items():
        print(f"| {way} | {taken:.2f} s | {taken - plain:+.2f} s |", flush=True)


def main() -> None:
    way, settings, place = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
    started = time.perf_counter()
    rows = WAYS[way](settings, place)
    print(json.dumps([rows, time.perf_counter() - started]), flush=True)


if __name__ == "__main__":
    main()
