"""Spark Connect, in processes of their own: the core of the tests on a server, and clients that have no Java."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pyspark
import pytest

import penstock
from support.connect_server import connect_server
from support.processes import environment
from support.standalone import bare_python

ROOT = Path(__file__).parents[1]
# `make test` has the first of these; the others are for `--full`.
CORE = ("connect", "interop/test_core.py")
MORE = (
    "interop/test_types.py", "interop/test_row_changes.py", "interop/test_change_feed.py",
    "interop/test_inlined_rows.py",
    "interop/test_evolution_rows.py", "interop/test_partitioned_tables.py", "interop/test_write_types.py",
    "interop/test_maintenance.py", "interop/test_variant.py", "interop/test_geometry.py", "interop/test_encryption.py",
    "interop/test_write_overwrite.py", "interop/test_write_definitions.py", "interop/test_added_files.py",
    "interop/test_deletes.py", "interop/test_defaults.py",
)  # fmt: skip
CLIENT = "4.2.0"
LONGEST = 3600.0  # seconds, on a machine that does much else
# What a client does, in a process whose server has no Penstock.
PROGRAM = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
import penstock
assert "py4j" not in sys.modules or sys.argv[3] == "classic", "py4j was imported"
place = sys.argv[2]
with penstock.attach(f"ducklake:sqlite:{place}/lake.sqlite", data_path=f"{place}/files", spark=spark) as lake:
    lake.set_option("data_inlining_row_limit", 0)
    table = lake.create_table("t", "id BIGINT, name STRING")
    table.append(spark.range(1000).selectExpr("id", "concat('v', id) AS name"))
    table.delete("id < 10")
    table.update({"name": "'x'"}, where="id = 10")
    source = spark.createDataFrame([(11, "m"), (5000, "n")], "id long, name string")
    table.merge(source, on="id").when_matched_update().when_not_matched_insert().execute()
    lake.merge_adjacent_files().collect()
    assert table.read().count() == 991, table.read().count()
    assert [row.name for row in table.read(where="id IN (10, 11, 5000)").orderBy("id").collect()] == ["x", "m", "n"]
    assert table.changes(1).count() > 991
spark.stop()
print("done")
"""


def run_pytest(*tests: str, full: bool) -> None:
    own = {name: value for name, value in environment().items() if not name.startswith(("PYTEST_", "SPARK_"))}
    paths = [os.path.join("tests", name) for name in tests]
    options = ["-q", "--connect", "-p", "no:xdist", "-p", "no:cacheprovider", "--tb=short", "-rfE"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *(["--full"] if full else []), *paths],
        env=own, cwd=ROOT, capture_output=True, text=True, timeout=LONGEST,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-2000:]


@pytest.mark.spark
@pytest.mark.takes(120)
def test_core() -> None:
    run_pytest(*CORE, full=False)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.takes(600)
def test_more() -> None:
    run_pytest(*MORE, full=False)


@pytest.mark.spark
@pytest.mark.takes(40)
def test_the_package_is_sent_to_a_server_that_lacks_it(tmp_path: Path) -> None:
    with connect_server(tmp_path, {}, python=bare_python(tmp_path)) as address:
        assert _run([sys.executable], environment(), address, tmp_path, "classic") == "done"


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.takes(60)
def test_a_client_without_java(tmp_path: Path) -> None:
    """`pyspark-client`, which has neither Spark's JARs nor py4j, and a path on which neither is."""
    client = tmp_path / "client"
    wanted = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(client)]
    fetched = subprocess.run([*wanted, f"pyspark-client=={CLIENT}"], capture_output=True, text=True)
    if fetched.returncode:
        pytest.skip(f"pyspark-client cannot be installed: {fetched.stderr.strip()[-300:]}")
    packages = _without_java(tmp_path / "packages")
    source = Path(penstock.__file__).parents[1]
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK", "SPARK"))}
    own["PYTHONPATH"] = os.pathsep.join(map(str, (client, source, packages)))
    python = [os.path.realpath(sys.executable), "-S"]  # -S: without this environment's own packages
    missing = subprocess.run([*python, "-c", "import py4j"], env=own, capture_output=True, text=True)
    assert "No module named 'py4j'" in missing.stderr
    with connect_server(tmp_path, {}) as address:
        assert _run(python, own, address, tmp_path, "client") == "done"


def _without_java(directory: Path) -> Path:
    directory.mkdir()
    for item in Path(pyspark.__file__).parents[1].iterdir():
        if not item.name.startswith(("pyspark", "py4j")) and item.suffix != ".pth":
            (directory / item.name).symlink_to(item)
    return directory


def _run(python: Sequence[str], own: dict[str, str], address: str, directory: Path, kind: str) -> str:
    program = directory / "program.py"  # a file: PySpark takes a program without one for its own doctests
    program.write_text(PROGRAM)
    run = subprocess.run(
        [*python, str(program), address, str(directory), kind],
        env=own, capture_output=True, text=True, timeout=LONGEST,
    )  # fmt: skip
    return run.stdout.strip() or run.stderr[-3000:]
