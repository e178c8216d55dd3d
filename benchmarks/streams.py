"""Streams of a lake: python benchmarks/streams.py [--only source latency] [--directory DIRECTORY]

`source`: lineitem as a stream of the lake's table, beside `spark.readStream.parquet` of the same files, each to a sink
that drops the rows; turn by turn in one session, and the rows of both are counted. `latency`: how long a batch of ten
rows takes from its trigger to its end, beside Delta on the Spark that it is made for: each in a process of its own with
the same settings, turn by turn, medians of the later batches.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

BATCHES, LATER, ROWS = 60, 30, 10
SETTINGS = {"spark.driver.memory": "2g", "spark.sql.shuffle.partitions": "4", "spark.ui.enabled": "false"}
NOW = {"availableNow": True}


def sources(given: Any) -> None:
    """Rows a second of both sources."""
    import lakes
    from runs import medians

    import penstock

    with penstock.attach(lakes.lineitem_lake(given.directory, given.options.scale), read_only=True) as lake:
        table = lake.table("plain")
        files = [row.data_file for row in table.files().collect()]
        place = given.scratch / "files"
        place.mkdir()
        for number, file in enumerate(files):
            os.link(file, place / f"{number:04}.parquet") if _same_disk(file, place) else _copied(file, place, number)
        parquet = given.spark.readStream.schema(table.read().schema).parquet(str(place))
        ways = {
            "lake": lambda: drained(table.read_stream(), given.scratch),
            "files": lambda: drained(parquet, given.scratch),
        }
        rows = {name: way() for name, way in ways.items()}
        assert len(set(rows.values())) == 1, rows
        taken = medians(ways, given.options.runs)
    for name, seconds in taken.items():
        print(f"{name:8} {seconds:6.2f} s {rows[name] / seconds / 1000:8.0f} thousand rows a second", flush=True)
    print(f"ratio {taken['lake'] / taken['files']:.2f}", flush=True)


def _same_disk(file: str, place: Path) -> bool:
    return os.stat(file).st_dev == os.stat(place).st_dev


def _copied(file: str, place: Path, number: int) -> None:
    (place / f"{number:04}.parquet").write_bytes(Path(file).read_bytes())


def drained(stream: Any, scratch: Path) -> int:
    """Read all that a stream has now; how many rows that was."""
    with tempfile.TemporaryDirectory(dir=scratch) as checkpoint:
        writer = stream.writeStream.format("noop").option("checkpointLocation", checkpoint).trigger(**NOW)
        query = writer.start()
        query.awaitTermination()
        return sum(progress["numInputRows"] for progress in query.recentProgress)


def latencies(given: Any) -> None:
    """Milliseconds of a small batch of both systems."""
    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    from support import delta_spark
    from support.pysparks import environment_with

    own = {**os.environ, "TZ": "UTC", "LC_ALL": "C.UTF-8"}
    environments = {"penstock": own, "delta": environment_with(delta_spark.PYSPARK, {**own, "PYTHONPATH": ""})}
    more = {"penstock": {}, "delta": delta_spark.SETTINGS}
    taken: dict[str, list[float]] = {name: [] for name in environments}
    for turn in range(given.options.rounds):
        for name, environment in environments.items():
            place = given.scratch / f"{name}-{turn}"
            command = [sys.executable, __file__, "--peer", name, str(place), json.dumps(SETTINGS | more[name])]
            run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
            taken[name].append(float(run.stdout.splitlines()[-1]))
            print(f"{name:9} {taken[name][-1]:7.0f} ms a batch of {ROWS} rows", flush=True)
    found = {name: statistics.median(values) for name, values in taken.items()}
    print(
        f"ratio {found['penstock'] / found['delta']:.2f} ({found['penstock']:.0f} and {found['delta']:.0f} ms)",
        flush=True,
    )


def peer(name: str, place: Path, settings: dict[str, str]) -> None:
    """One system, in a process of its own: the median of its later batches, in milliseconds."""
    place.mkdir(parents=True)
    if name == "penstock":
        import penstock

        spark = penstock.session("local[2]", **settings)
        uri = f"ducklake:sqlite:{place}/lake.sqlite"
        with penstock.attach(uri, data_path=f"{place}/data/", spark=spark) as lake:
            lake.create_table("t", "value BIGINT, at TIMESTAMP")
    else:
        from pyspark.sql import SparkSession

        spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).load()
    writer = source.selectExpr("value", "timestamp AS at").writeStream.option(
        "checkpointLocation", f"{place}/checkpoint"
    )
    if name == "penstock":
        query = writer.format("ducklake").option("lake", uri).option("table", "t").start()
    else:
        query = writer.format("delta").start(f"{place}/table")
    while (query.lastProgress or {"batchId": -1})["batchId"] < BATCHES:
        assert query.isActive, query.exception()
        time.sleep(0.2)
    query.stop()
    done = [progress["durationMs"]["triggerExecution"] for progress in query.recentProgress if progress["numInputRows"]]
    print(statistics.median(done[-LATER:]))


def main() -> None:
    if sys.argv[1:2] == ["--peer"]:
        peer(sys.argv[2], Path(sys.argv[3]), json.loads(sys.argv[4]))
        return
    from runs import setting

    kinds = {"nargs": "*", "choices": ["source", "latency"], "default": ["source", "latency"]}
    numbers = {"scale": {"type": float, "default": 1}, "rounds": {"type": int, "default": 3}}
    with setting(__doc__, SETTINGS, only=kinds, **numbers) as given:
        if "source" in given.options.only:
            sources(given)
        if "latency" in given.options.only:
            given.spark.stop()
            latencies(given)


if __name__ == "__main__":
    main()
