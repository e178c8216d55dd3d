"""Partitioned namespaces on S3: Lance itself reads and writes there, with the options that are given once."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import penstock.lance
from support.s3_server import S3Server

pytestmark = pytest.mark.s3


def test_a_namespace(spark: SparkSession, s3: S3Server) -> None:
    options, root = s3.options(), f"s3://{s3.bucket()}/a namespace"
    made = penstock.lance.create(
        root, "db$events", "id BIGINT, p STRING", partitioned_by=["p"], storage_options=options, spark=spark
    )
    made.append(spark.sql("SELECT id, concat('é ', id % 3) AS p FROM range(30)"))
    made.append(spark.sql("SELECT id, 'é 1' AS p FROM range(30, 35)"))
    made.delete("id % 2 = 0")
    opened = penstock.lance.open(root, "db$events", storage_options=options, spark=spark)
    assert sorted(row.id for row in opened.read().collect()) == list(range(1, 35, 2))
    assert sorted(row.id for row in opened.read().where("p = 'é 1'").collect()) == [1, 7, 13, 19, 25, 31, 33]
    opened.compact()
    opened.clean_up(keep_last=1)
    assert opened.read().count() == 17
