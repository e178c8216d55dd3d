"""Workers that run another Python: one line says which, and what to set."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

import penstock
from penstock.spark.workers import other_python
from support.catalogs import Catalog

# As a user who has not set PYSPARK_PYTHON: the workers run the first Python that Spark finds.
PROGRAM = """
import os
import sys
sys.path[:0] = [sys.argv[3], os.getcwd()]
os.environ["PYSPARK_PYTHON"] = sys.argv[4]
import penstock
from penstock.spark.workers import map_in_workers
from pyspark.sql import SparkSession
from support.small_sessions import SMALL

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
for key, value in SMALL.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
with penstock.attach(sys.argv[1], data_path=sys.argv[2], spark=spark) as lake:
    table = lake.create_table("t", "id BIGINT")
    before = lake.current_snapshot()
    try:
        table.append(spark.range(10))
    except penstock.errors.PenstockError as error:
        print("WRITE", str(error))
    assert lake.current_snapshot() == before
    try:
        map_in_workers(spark.range(1), penstock.ducklake.changing.placed_rows._all_chosen, "id BIGINT").collect()
    except Exception as error:
        [line] = [line for line in str(error).splitlines() if line.startswith("RuntimeError")]
        print("READ", line)
"""


@pytest.fixture
def bare_python(tmp_path: Path) -> Path:
    """A Python of its own, with all packages of this one but Penstock."""
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    for item in Path(sysconfig.get_path("purelib")).iterdir():
        if "penstock" not in item.name and item.suffix != ".pth":
            (libraries / item.name).symlink_to(item)
    python = tmp_path / "bare"
    base = Path(sys._base_executable)  # type: ignore[attr-defined]
    python.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{libraries}" exec {base} -s "$@"\n')
    python.chmod(0o755)
    return python


def test_every_job_travels_to_the_workers_so_that_they_can_say_what_they_lack() -> None:
    """All but the probe of a Connect server, which asks just that of them and has nothing of ours with it."""
    source = Path(penstock.__file__).parent
    callers = {
        path.relative_to(source).as_posix() for path in source.rglob("*.py") if ".mapInArrow(" in path.read_text()
    }
    assert callers == {"spark/workers.py", "spark/connect/artifacts.py"}


@pytest.mark.slow
@pytest.mark.spark
def test_workers_without_penstock(file_catalog: Catalog, bare_python: Path) -> None:
    source = str(Path(penstock.__file__).parents[1])
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYSPARK_PYTHON")}
    command = [sys.executable, "-c", PROGRAM, file_catalog.uri, file_catalog.data_path, source, str(bare_python)]
    tests = Path(__file__).parents[1]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tests, env=environment)
    assert run.returncode == 0, run.stderr[-3000:]
    told = dict(line.split(" ", 1) for line in run.stdout.splitlines())
    base = sys._base_executable  # type: ignore[attr-defined]
    for place in ("WRITE", "READ"):
        assert base in told[place]
        assert "no module 'penstock'" in told[place]
        assert "PYSPARK_PYTHON" in told[place]
    assert told["WRITE"].endswith("nothing was written")
    assert not list(Path(file_catalog.data_path).rglob("*.parquet"))


def test_workers_of_another_version() -> None:
    versions = {"worker_version": "3.9", "driver_version": "3.11"}
    error = PySparkRuntimeError(errorClass="PYTHON_VERSION_MISMATCH", messageParameters=versions)
    line = other_python(f"Job aborted\n{error}\n at Java")
    assert line is not None
    assert "Python 3.9" in line
    assert f"PYSPARK_PYTHON to {sys.executable}" in line


def test_other_errors_are_about_something_else() -> None:
    assert other_python("ModuleNotFoundError: No module named 'users_own'") is None


def test_a_module_that_this_python_has_too_is_not_missed(spark: SparkSession) -> None:
    """A function of the user's own raised that: to set the Python that is set already would not help."""
    assert spark.sparkContext.pythonExec == sys.executable
    assert other_python("ModuleNotFoundError: No module named 'pandas'") is None
