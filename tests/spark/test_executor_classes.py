"""Classes of ours on executors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.spark.executor_classes import add_to_executors
from penstock.spark.stores import KNOWN_FILES
from support.processes import environment
from support.published import PublishedCatalog
from support.web_server import WebServer


def jars(spark: SparkSession) -> list[str]:
    context: Any = spark.sparkContext._jsc
    return [jar for jar in context.sc().listJars().mkString("\n").splitlines() if "/jars/penstock-" in jar]


def test_they_are_sent_once(spark: SparkSession) -> None:
    add_to_executors(spark, *KNOWN_FILES)
    sent = jars(spark)
    add_to_executors(spark, *KNOWN_FILES)
    assert jars(spark) == sent
    assert len(sent) >= 1


def test_hadoop_finds_them(spark: SparkSession) -> None:
    add_to_executors(spark, *KNOWN_FILES)
    hadoop: Any = spark.sparkContext._jsc
    found = hadoop.hadoopConfiguration().getClassByName("penstock.RangeFileSystem")
    assert found.getName() == "penstock.RangeFileSystem"


ISOLATED = """
import sys, penstock
setting = "spark.sql.artifact.isolation"
isolated = {f"{setting}.enabled": "true", f"{setting}.alwaysApplyClassloader": "true"}
spark = penstock.session("local-cluster[1,1,1024]", **isolated)
for session in (spark, spark.newSession()):
    print("rows", len(penstock.attach(sys.argv[1], spark=session).table("t").read().where("id > 0").collect()))
"""


@pytest.mark.slow
def test_sessions_that_see_their_own_alone(web: WebServer, tmp_path: Path) -> None:
    """Executors load for a task of such a session no JAR of another's, nor the context's."""
    published = PublishedCatalog(web)
    with published.build(data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t (id BIGINT)", "INSERT INTO t FROM range(6)", "DELETE FROM t WHERE id = 3")
    program = tmp_path / "isolated.py"
    program.write_text(ISOLATED)
    run = subprocess.run(
        [sys.executable, program, published.uri], env=environment(), capture_output=True, text=True, timeout=240
    )
    assert run.stdout.split() == ["rows", "4"] * 2, run.stderr[-3000:]
