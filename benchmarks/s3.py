"""S3 beside a local disk, each with Spark's own reader and writer of Parquet: python benchmarks/s3.py [--scale 1]

The server is that of the tests (`make s3`). Every number is a ratio of medians over alternating runs in one process; of
a query, also the requests that the server has counted.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lakes
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from runs import medians, setting

import penstock

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support.s3_server import KEY_ID, SECRET, S3Server, jars

HADOOP = {
    "spark.jars": ",".join(jars()),
    "spark.hadoop.fs.s3a.access.key": KEY_ID,
    "spark.hadoop.fs.s3a.secret.key": SECRET,
    "spark.hadoop.fs.s3a.path.style.access": "true",
    "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
    # What Penstock's scans use; for both, as Hadoop's default keeps what it has read for the next query.
    "spark.hadoop.fs.s3a.input.stream.type": "classic",
    "spark.hadoop.fs.s3a.committer.name": "directory",
}


def first_query(rows: DataFrame) -> DataFrame:
    """TPC-H's Q1."""
    price = F.col("l_extendedprice") * (1 - F.col("l_discount"))
    return (
        rows.where("l_shipdate <= DATE '1998-12-01' - INTERVAL 90 DAYS")
        .groupBy("l_returnflag", "l_linestatus")
        .agg(
            *(F.sum(name) for name in ("l_quantity", "l_extendedprice")),
            F.sum(price),
            F.sum(price * (1 + F.col("l_tax"))),
            *(F.avg(name) for name in ("l_quantity", "l_extendedprice", "l_discount")),
            F.count("*"),
        )
        .orderBy("l_returnflag", "l_linestatus")
    )


def compared(name: str, ours: Callable[[], object], theirs: Callable[[], object], runs: int) -> None:
    mine, other = medians({"ours": ours, "theirs": theirs}, runs).values()
    print(f"{name:24} penstock {mine:7.3f} s  spark {other:7.3f} s  ratio {mine / other:6.3f}", flush=True)


class Place:
    """A folder or a bucket, with a lake in it, and a folder for Spark's own writer."""

    def __init__(self, spark: SparkSession, name: str, root: str, scratch: Path, **options: str) -> None:
        self.spark, self.name, self.root = spark, name, root
        self.lake: Any = penstock.attach(
            f"ducklake:sqlite:{scratch}/{name}.sqlite",
            data_path=f"{root}/lake/",
            storage_options=options or None,
            spark=spark,
        )

    def append(self, source: DataFrame, runs: int) -> None:
        table = self.lake.create_table("lineitem", source.schema)
        plain = f"{self.root}/plain"
        compared(
            f"append, {self.name}",
            lambda: table.append(source),
            lambda: source.write.mode("append").parquet(plain),
            runs,
        )

    def query(self, source: DataFrame, runs: int) -> list[str]:
        table = self.lake.create_table("once", source.schema)
        table.append(source)
        files = [row.data_file for row in table.files().collect()]
        compared(
            f"Q1, {self.name}",
            lambda: first_query(table.read()).collect(),
            lambda: first_query(self.spark.read.parquet(*files)).collect(),
            runs,
        )
        return files


def count_requests(place: Place, files: list[str], server: S3Server, bucket: str) -> None:
    ways = {
        "penstock": lambda: first_query(place.lake.table("once").read()).collect(),
        "spark": lambda: first_query(place.spark.read.parquet(*files)).collect(),
    }
    for name, way in ways.items():
        before = len(server.requests(bucket))
        way()
        asked = Counter(request.split()[0] for request in server.requests(bucket)[before:])
        print(f"requests of Q1 over {len(files)} files, {name}: {dict(asked)}", flush=True)


def main() -> None:
    server = S3Server()
    settings = HADOOP | {"spark.hadoop.fs.s3a.endpoint": server.endpoint}
    try:
        with setting(__doc__, settings, scale={"type": float, "default": 1}) as given:
            spark, runs = given.spark, given.options.runs
            source = spark.read.parquet(str(lakes.lineitem_parquet(given.directory, given.options.scale))).repartition(
                8
            )
            source = source.persist()
            source.count()
            bucket = server.bucket()
            spark.sparkContext._jsc.hadoopConfiguration().set("fs.s3.impl", "org.apache.hadoop.fs.s3a.S3AFileSystem")
            disk = Place(spark, "disk", str(given.scratch / "data"), given.scratch)
            store = Place(spark, "S3", f"s3://{bucket}", given.scratch, **server.options())
            for place in (disk, store):
                place.append(source, runs)
            disk.query(source, runs)
            count_requests(store, store.query(source, runs), server, bucket)
    finally:
        server.stop()


if __name__ == "__main__":
    main()
