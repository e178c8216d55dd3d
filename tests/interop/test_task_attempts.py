"""Tasks that Spark tries again: what the attempts before have left goes, what was told of stays."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import TaskContext, cloudpickle
from pyspark.sql import SparkSession

from penstock.ducklake.changing import delete_job, deletes
from penstock.ducklake.changing.delete_job import DeleteJob
from penstock.ducklake.writing import write_target
from penstock.spark import file_tasks
from penstock.spark.write_job import WriteJob
from support.catalogs import Catalog
from support.writing import attached


def die() -> None:
    """The first attempt of a task dies, when all is written that it has to and before it can tell."""
    context = TaskContext.get()
    if context is not None and context.attemptNumber() == 0:
        os.kill(os.getpid(), signal.SIGKILL)


class DyingJob(WriteJob):
    def files(self, batches: Any) -> Iterator[Any]:
        written = list(super().files(batches))
        die()
        return iter(written)


class DyingRemoval(DeleteJob):
    def removal(self, file_id: Any, positions: Any) -> Any:
        removed = super().removal(file_id, positions)
        die()
        return removed


@pytest.fixture
def travelling() -> Iterator[None]:
    """Workers do not find the classes above: they are sent whole."""
    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)
    yield
    cloudpickle.unregister_pickle_by_value(module)


@pytest.mark.cluster
@pytest.mark.usefixtures("travelling")
def test_files_of_failed_attempts_are_removed(
    file_catalog: Catalog, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept, real = [], file_tasks.delete_written
    monkeypatch.setattr(file_tasks, "delete_written", lambda *found: (swept.append(found), real(*found)))
    with attached(file_catalog, spark) as lake:
        lake.set_option("data_inlining_row_limit", 0)
        table = lake.create_table("t", "id BIGINT, p BIGINT", partitioned_by=["p"])
        rows = spark.range(0, 1000, 1, 2).selectExpr("id", "id % 2 AS p")
        table.append(rows)
        assert not swept, "nothing failed, and files were looked for"
        monkeypatch.setattr(write_target, "WriteJob", DyingJob)
        table.append(rows)
        monkeypatch.setattr(deletes, "DeleteJob", DyingRemoval)
        monkeypatch.setattr(delete_job, "FEW_FILES", 0)  # so that tasks write the delete files
        table.update({"id": "-id"}, "id % 10 = 1")
        assert len(swept) == 3, swept
    with file_catalog.reference() as reference:
        assert reference.rows("SELECT count(*), sum(abs(id)), sum((id < 0)::INT) FROM t") == [(2000, 999_000, 200)]
        listed = reference.rows(
            "SELECT data_file FROM ducklake_list_files('lk', 't')"
            " UNION ALL SELECT delete_file FROM ducklake_list_files('lk', 't') WHERE delete_file IS NOT NULL"
        )
    assert {path for (path,) in listed} == {str(path) for path in Path(file_catalog.directory).rglob("*.parquet")}
