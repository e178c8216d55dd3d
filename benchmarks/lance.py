"""A namespace of 100 leaves, beside one dataset of the same rows written by pylance: python benchmarks/lance.py

A million rows with a vector of 16 floats each. Times are medians over alternating runs in one process; pylance runs in
this process, on all cores. Bytes are those that Spark's Python workers have asked the operating system for.
"""

from __future__ import annotations

import sys

sys.path.append(sys.path.pop(0))  # this directory comes last: `import lance` would find this file

import shutil
from collections.abc import Callable
from pathlib import Path

import lance
import psutil
import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import SparkSession
from runs import medians, setting

import penstock
import penstock.lance

LEAVES = 100
VECTOR = 16
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("part", pa.int32()),
        ("ts", pa.timestamp("us", "UTC")),
        ("price", pa.float64()),
        ("name", pa.string()),
        ("vector", pa.list_(pa.float32(), VECTOR)),
    ]
)


def source_parquet(spark: SparkSession, directory: Path, rows: int) -> str:
    """The rows, in an order that knows nothing of the leaves; made once."""
    path = directory / f"vectors-{rows}.parquet"
    if not path.exists():
        vector = ", ".join(f"cast(rand({i}) as float)" for i in range(VECTOR))
        spark.range(rows).selectExpr(
            "id",
            f"cast(pmod(hash(id), {LEAVES}) as int) AS part",
            "timestamp_micros(1700000000000000 + id * 1000000) AS ts",
            "rand(99) * 1000 AS price",
            "concat('name of ', id) AS name",
            f"array({vector}) AS vector",
        ).coalesce(2).write.parquet(str(path))
    return str(path)


def worker_bytes(spark: SparkSession) -> int:
    """What the Python workers of this session have read so far."""
    jvm = psutil.Process(spark._jvm.java.lang.ProcessHandle.current().pid())
    return sum(process.io_counters().read_chars for process in jvm.children(recursive=True))


def compare(name: str, rows: int, ours: Callable[[], object], theirs: Callable[[], object], runs: int) -> None:
    mine, other = medians({"ours": ours, "theirs": theirs}, runs).values()
    speeds = f"{rows / mine / 1000:6.0f} and {rows / other / 1000:6.0f} thousand rows a second"
    print(f"{name:12} penstock {mine:6.2f} s  pylance {other:6.2f} s  ratio {mine / other:5.2f}  {speeds}", flush=True)


def measure(spark: SparkSession, source: str, scratch: Path, rows: int, runs: int) -> None:
    root, single = str(scratch / "root"), str(scratch / "single.lance")
    frame = spark.read.parquet(source)

    def write_namespace() -> None:
        shutil.rmtree(root, ignore_errors=True)
        penstock.lance.create(root, "vectors", SCHEMA, partitioned_by=["part"], spark=spark).append(frame)

    def write_dataset() -> None:
        shutil.rmtree(single, ignore_errors=True)
        scanner = ds.dataset(source, format="parquet").scanner()
        batches = (batch.cast(SCHEMA) for batch in scanner.to_batches())
        lance.write_dataset(pa.RecordBatchReader.from_batches(SCHEMA, batches), single)

    compare("write", rows, write_namespace, write_dataset, runs)
    namespace = penstock.lance.open(root, "vectors", spark=spark)
    sums = "sum(id), sum(price), max(ts), max(length(name)), sum(vector[3])"

    def read_namespace() -> None:
        namespace.read().selectExpr(*sums.split(", ")).collect()

    def read_dataset() -> None:
        total = sum(batch.num_rows for batch in lance.dataset(single).scanner().to_batches())
        assert total == rows

    compare("full scan", rows, read_namespace, read_dataset, runs)
    one = namespace.read().where("part = 42")
    bytes_of = {}
    for name, query in {"all leaves": namespace.read(), "one leaf": one}.items():
        before = worker_bytes(spark)
        query.selectExpr(*sums.split(", ")).collect()
        bytes_of[name] = worker_bytes(spark) - before
    ratio = bytes_of["all leaves"] / bytes_of["one leaf"]
    print(f"bytes read: {bytes_of} ratio {ratio:.0f} (goal 20)", flush=True)
    print(namespace.explain("part = 42"))
    compare(
        "one leaf",
        rows // LEAVES,
        lambda: one.selectExpr(*sums.split(", ")).collect(),
        lambda: lance.dataset(single).scanner(filter="part = 42").to_table(),
        runs,
    )


def main() -> None:
    with setting(__doc__, rows={"type": int, "default": 1_000_000}) as given:
        rows = given.options.rows
        measure(
            given.spark, source_parquet(given.spark, given.directory, rows), given.scratch, rows, given.options.runs
        )


if __name__ == "__main__":
    main()
