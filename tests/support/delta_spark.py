"""delta-spark as a judge: in a process of its own, on the Spark that it is made for.

The newest delta-spark, 4.4.0, is built for Spark 4.2 and fails on 4.3 with NoSuchMethodError. So that PySpark
stands beside the tests' own, and Spark fetches the packages of delta-spark, once.
"""

from __future__ import annotations

import base64
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

PYSPARK = "4.2.0"
PACKAGE = "io.delta:delta-spark_4.2_2.13:4.4.0"
SETTINGS = {
    "spark.jars.packages": PACKAGE,
    # Spark has these itself, and they are most of the download.
    "spark.jars.excludes": "org.apache.hadoop:hadoop-client-runtime,org.apache.hadoop:hadoop-client-api",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


class DeltaSpark:
    """A session of delta-spark; `close` ends it."""

    def __init__(self, logged: Path, **settings: str) -> None:
        self._logged = logged
        from support.pysparks import environment_with  # not in the process that this module is run in

        environment = environment_with(PYSPARK, {**os.environ, "PYTHONPATH": "", "TZ": "UTC", "LC_ALL": "C.UTF-8"})
        with logged.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, __file__, json.dumps(settings)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                cwd=logged.parent,
                text=True,
            )

    def sql(self, statement: str) -> list[Any]:
        """The rows of a statement, as PySpark collects them."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(statement) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"delta-spark has ended: {self._logged.read_text()[-3000:]}")
        told = json.loads(line)
        if "error" in told:
            raise RuntimeError(f"delta-spark: {statement}: {told['error']}")
        return list(pickle.loads(base64.b64decode(told["rows"])))

    def rows(self, path: object, version: int | None = None) -> list[str]:
        travel = "" if version is None else f" VERSION AS OF {version}"
        return in_order(self.sql(f"SELECT * FROM {table(path)}{travel}"))

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)


def table(path: object) -> str:
    """A table at a path, in a statement."""
    return f"delta.`{path}`"


def in_order(rows: Sequence[Any]) -> list[str]:
    """Rows as text, the same for rows of two PySparks."""
    return sorted(repr(tuple(row)) for row in rows)


def _serve(replies: IO[str], more: dict[str, str]) -> None:
    from pyspark.sql import SparkSession

    settings: dict[str, Any] = {
        **SETTINGS,
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **more,
    }
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    for line in sys.stdin:
        try:
            rows = pickle.dumps(spark.sql(json.loads(line)).collect())
            told = {"rows": base64.b64encode(rows).decode()}
        except Exception as error:
            told = {"error": str(error)[:2000]}
        print(json.dumps(told), file=replies, flush=True)
    spark.stop()


if __name__ == "__main__":
    # The JVM prints to the standard output that it inherits: keep the replies apart.
    own = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    _serve(own, json.loads(sys.argv[1]))
