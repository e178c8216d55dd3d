"""The code of the document about Spark Connect, on a server."""

from __future__ import annotations

import os
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import penstock
from support.documents import Document


class Patient(Document):
    """A document whose streams begin again where a busy machine took longer to start Python than Spark waits."""

    def run_python(self, code: str) -> None:
        for _ in range(3):
            try:
                return super().run_python(code)
            except PySparkException as error:
                if "waiting for the Python worker" not in str(error):
                    raise
        return super().run_python(code)


def test_connect(spark: SparkSession, tmp_path: Path) -> None:
    lake, other = (f"ducklake:sqlite:{tmp_path}/{name}.sqlite" for name in ("lake", "other"))
    words = {
        "sc://spark.example.com:15002": os.environ["PENSTOCK_TESTS_CONNECT"],
        "ducklake:postgres:dbname=lake host=db.example.com": lake,
        "s3://bucket/lake/": str(tmp_path / "files"),
        "ducklake:postgres:dbname=lake": other,
        "s3://bucket/checkpoints/orders": str(tmp_path / "checkpoint"),
    }
    with penstock.attach(lake, data_path=str(tmp_path / "files"), spark=spark) as made:
        made.create_table("orders", "id BIGINT, state STRING, day DATE, city STRING")
    with penstock.attach(other, data_path=str(tmp_path / "others"), spark=spark) as made:
        made.create_table("orders", "id BIGINT")
    (tmp_path / "arrivals").mkdir()
    spark.range(5).write.parquet(str(tmp_path / "arrivals"), mode="append")
    events = spark.readStream.schema("id BIGINT").parquet(str(tmp_path / "arrivals"))
    document = Patient("docs/connect.md", words, events=events)
    document.run()
    for query in spark.streams.active:
        query.processAllAvailable()
        query.stop()
    document.names["lake"].close()
    with penstock.attach(other, spark=spark) as made:
        assert made.table("orders").read().count() == 5
    with penstock.attach(lake, spark=spark) as made:
        assert [row.state for row in made.table("orders").read().collect()] == []
