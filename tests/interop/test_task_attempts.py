"""Tasks that Spark tries again: what the attempts before have left goes, what was told of stays."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.catalogs import Catalog
from support.processes import environment

# The first attempt of every task writes all that it has to, and dies before it can tell.
WRITER = """
import os
import sys
import penstock
import penstock.ducklake.changing.deletes
import penstock.ducklake.writing.write_target
from penstock.spark import file_tasks
from penstock.ducklake.changing.delete_job import DeleteJob
from penstock.spark.write_job import WriteJob
from pyspark import TaskContext
from support.small_sessions import SMALL


def die():
    context = TaskContext.get()
    if context is not None and context.attemptNumber() == 0:
        os.kill(os.getpid(), 9)


class DyingJob(WriteJob):
    def files(self, batches):
        written = list(super().files(batches))
        die()
        return iter(written)


class DyingRemoval(DeleteJob):
    def _removed(self, file_id, positions):
        removed = super()._removed(file_id, positions)
        die()
        return removed


spark = penstock.session("local[2,3]", **SMALL)
swept = []
real = file_tasks.delete_written
file_tasks.delete_written = lambda *arguments: (swept.append(arguments), real(*arguments))
with penstock.attach(sys.argv[1], data_path=sys.argv[2], spark=spark) as lake:
    lake.set_option("data_inlining_row_limit", 0)
    table = lake.create_table("t", "id BIGINT, p BIGINT", partitioned_by=["p"])
    rows = spark.range(0, 1000, 1, 2).selectExpr("id", "id % 2 AS p")
    table.append(rows)
    assert not swept, "nothing failed, and files were looked for"
    penstock.ducklake.writing.write_target.WriteJob = DyingJob
    table.append(rows)
    penstock.ducklake.changing.deletes.DeleteJob = DyingRemoval
    table.update({"id": "-id"}, "id % 10 = 1")
    assert len(swept) == 3, swept
"""


@pytest.mark.spark
def test_files_of_failed_attempts_are_removed(file_catalog: Catalog) -> None:
    command = [sys.executable, "-c", WRITER, file_catalog.uri, file_catalog.data_path]
    run = subprocess.run(command, capture_output=True, text=True, env=environment())
    assert run.returncode == 0, run.stderr[-3000:]
    with file_catalog.reference() as reference:
        assert reference.rows("SELECT count(*), sum(abs(id)), sum((id < 0)::INT) FROM t") == [(2000, 999_000, 200)]
        listed = reference.rows(
            "SELECT data_file FROM ducklake_list_files('lk', 't')"
            " UNION ALL SELECT delete_file FROM ducklake_list_files('lk', 't') WHERE delete_file IS NOT NULL"
        )
    assert {path for (path,) in listed} == {str(path) for path in Path(file_catalog.directory).rglob("*.parquet")}
