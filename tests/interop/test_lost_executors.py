"""Executors that are lost in the middle of a statement."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.catalogs import Catalog
from support.processes import environment

# One of two executors is killed when it has its part of the source, of which the merge has not looked at anything yet.
MERGER = """
import os
import signal
import sys
import time
from pathlib import Path
import penstock
import penstock.ducklake.changing.merges
from support.small_sessions import SMALL

spark = penstock.session("local-cluster[2,1,1024]", **{**SMALL, "spark.task.maxFailures": "2"})
application = spark.sparkContext.applicationId
numbered = penstock.ducklake.changing.merges.numbered_source


def executors():
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            command = (directory / "cmdline").read_bytes().decode().split("\\0")
        except OSError:
            continue
        if application in command and any("CoarseGrainedExecutorBackend" in word for word in command):
            found.append(int(directory.name))
    return sorted(found)


def numbered_and_lost(*arguments):
    source = numbered(*arguments)
    before = executors()
    os.kill(before[0], signal.SIGKILL)
    while before[0] in executors():
        time.sleep(0.05)
    return source


def state(table):
    return sorted(map(tuple, table.read().collect())), sorted(map(str, Path(sys.argv[2]).rglob("*.parquet")))


with penstock.attach(sys.argv[1], data_path=sys.argv[2], spark=spark) as lake:
    lake.set_option("data_inlining_row_limit", 0)
    table = lake.create_table("t", "id BIGINT, s STRING")
    table.append(spark.sql("SELECT id, 'old' AS s FROM range(0, 100, 1, 2)"))
    before = state(table)
    penstock.ducklake.changing.merges.numbered_source = numbered_and_lost
    source = spark.sql("SELECT id, 'new' AS s FROM range(50, 150, 1, 4)")
    merge = table.merge(source, "target.id = source.id").when_matched_update().when_not_matched_insert()
    try:
        merge.execute()
    except penstock.errors.PenstockError as error:
        assert "executor was lost" in str(error) and "setCheckpointDir" in str(error), error
        assert len(str(error).splitlines()) == 1, error
    else:
        raise AssertionError("rows that are gone were found")
    assert state(table) == before
    spark.sparkContext.setCheckpointDir(sys.argv[3])
    merge.execute()
    rows, _ = state(table)
    assert rows == [(id, "old" if id < 50 else "new") for id in range(150)], rows
    left = [str(path) for path in Path(sys.argv[3]).rglob("*") if path.is_file()]
    assert not left, left
"""


@pytest.mark.slow
@pytest.mark.spark
def test_a_merge_whose_executor_is_lost(file_catalog: Catalog, tmp_path: Path) -> None:
    """It fails and says so; with a checkpoint directory it goes on."""
    arguments = [file_catalog.uri, file_catalog.data_path, str(tmp_path / "checkpoints")]
    run = subprocess.run([sys.executable, "-c", MERGER, *arguments], capture_output=True, text=True, env=environment())
    assert run.returncode == 0, run.stderr[-3000:]
