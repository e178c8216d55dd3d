"""A namespace of 100 leaves, beside pylance alone: one dataset, and the same leaves: python benchmarks/lance.py

A million rows with a vector of 16 floats each. Times are medians over alternating runs in one process; pylance runs in
this process, without Spark, on all cores; it writes the leaves in as many threads as Spark has tasks, each the rows of
all leaves in its half of the source, as Spark's tasks do, and knows nothing of a namespace. Bytes are those that
Spark's Python workers have asked the operating system for.
"""

from __future__ import annotations

import sys

sys.path.append(sys.path.pop(0))  # this directory comes last: `import lance` would find this file

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lance
import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from lance.fragment import write_fragments
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


def compare(name: str, rows: int, ours: Callable[[], object], runs: int, **others: Callable[[], object]) -> None:
    mine, *theirs = medians({"ours": ours, **others}, runs).values()
    said = "".join(
        f"  {other.replace('_', ' ')} {taken:5.2f} s (ratio {mine / taken:5.2f})"
        for other, taken in zip(others, theirs, strict=True)
    )
    print(f"{name:12} penstock {mine:5.2f} s ({rows / mine / 1000:.0f} thousand rows a second){said}", flush=True)


def leaves_of_file(file: Path) -> Iterator[tuple[int, pa.Table]]:
    rows = pq.read_table(file).cast(SCHEMA).sort_by("part").combine_chunks()
    first = 0
    for leaf in pc.value_counts(rows["part"]):
        count = leaf["counts"].as_py()
        yield leaf["values"].as_py(), rows.slice(first, count)
        first += count


def write_leaves(source: str, root: Path) -> None:
    """What Spark's tasks and the driver do of a write, but with pylance alone."""
    files = sorted(Path(source).glob("*.parquet"))
    with ThreadPoolExecutor(len(files)) as pool:
        fragments: dict[int, list[lance.FragmentMetadata]] = {}
        for written in pool.map(lambda file: written_leaves(file, root), files):
            for leaf, found in written:
                fragments.setdefault(leaf, []).extend(found)

        def commit(leaf: int) -> None:
            made = lance.LanceOperation.Overwrite(SCHEMA, fragments[leaf])
            lance.LanceDataset.commit(str(root / f"{leaf}.lance"), made)

        list(pool.map(commit, fragments))


def written_leaves(file: Path, root: Path) -> list[tuple[int, list[lance.FragmentMetadata]]]:
    return [
        (leaf, write_fragments(rows, str(root / f"{leaf}.lance"), schema=SCHEMA)) for leaf, rows in leaves_of_file(file)
    ]


def measure(spark: SparkSession, source: str, scratch: Path, rows: int, runs: int) -> None:
    root, single, leaves = str(scratch / "root"), str(scratch / "single.lance"), scratch / "leaves"
    frame = spark.read.parquet(source)

    def write_namespace() -> None:
        shutil.rmtree(root, ignore_errors=True)
        penstock.lance.create(root, "vectors", SCHEMA, partitioned_by=["part"], spark=spark).append(frame)

    def write_dataset() -> None:
        shutil.rmtree(single, ignore_errors=True)
        scanner = ds.dataset(source, format="parquet").scanner()
        batches = (batch.cast(SCHEMA) for batch in scanner.to_batches())
        lance.write_dataset(pa.RecordBatchReader.from_batches(SCHEMA, batches), single)

    def write_same_leaves() -> None:
        shutil.rmtree(leaves, ignore_errors=True)
        write_leaves(source, leaves)

    compare("write", rows, write_namespace, runs, one_dataset=write_dataset, the_same_leaves=write_same_leaves)
    namespace = penstock.lance.open(root, "vectors", spark=spark)
    sums = "sum(id), sum(price), max(ts), max(length(name)), sum(vector[3])"

    def read_namespace() -> None:
        namespace.read().selectExpr(*sums.split(", ")).collect()

    def count(path: Path | str) -> int:
        return sum(batch.num_rows for batch in lance.dataset(str(path)).scanner().to_batches())

    def read_dataset() -> None:
        assert count(single) == rows

    def read_leaves() -> None:
        with ThreadPoolExecutor(spark.sparkContext.defaultParallelism) as pool:
            assert sum(pool.map(count, leaves.iterdir())) == rows

    compare("full scan", rows, read_namespace, runs, one_dataset=read_dataset, the_same_leaves=read_leaves)
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
        runs,
        one_dataset=lambda: lance.dataset(single).scanner(filter="part = 42").to_table(),
        the_same_leaves=lambda: lance.dataset(str(leaves / "42.lance")).scanner().to_table(),
    )


def main() -> None:
    with setting(__doc__, rows={"type": int, "default": 1_000_000}) as given:
        rows = given.options.rows
        measure(
            given.spark, source_parquet(given.spark, given.directory, rows), given.scratch, rows, given.options.runs
        )


if __name__ == "__main__":
    main()
