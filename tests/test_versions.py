"""The core of the tests on the other releases of Spark: all types, writing, changes of rows, SQL, maintenance, S3."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.processes import environment
from support.pysparks import NotInstalledError, environment_with

ROOT = Path(__file__).parents[1]
VERSIONS = ("4.1.4", "4.2.1")  # the newest of each release
CORE = (
    "spark/test_session.py", "spark/test_arrow_transfer.py", "spark/test_packed_arrays.py",
    "spark/test_packed_columns.py",
    "interop/test_types.py", "interop/test_geometry.py", "interop/test_variant.py", "interop/test_infinite_times.py",
    "interop/test_encryption.py", "interop/test_inlined_rows.py", "interop/test_evolution_rows.py",
    "interop/test_write_types.py", "interop/test_partitioned_tables.py", "interop/test_row_changes.py",
    "interop/test_change_feed.py", "interop/test_maintenance.py", "interop/test_compaction.py::test_merge",
    "interop/test_compaction.py::test_rewrite", "interop/test_compaction.py::test_flush_and_merge_every_type",
    "interop/test_s3.py::test_both_ways", "interop/test_s3.py::test_maintenance",
    "sql/test_definitions.py", "sql/test_queries.py", "sql/test_written_rows.py", "sql/test_procedures.py",
    "sql/test_transactions.py", "sql/test_duckdb_views.py", "sql/test_used_definitions.py", "sql/test_format.py",
    "interop/test_read_streams.py", "interop/test_write_streams.py", "lance/test_types.py",
)  # fmt: skip
LONGEST = 3600.0  # seconds, on a machine that does much else


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.takes(300)
@pytest.mark.parametrize("version", VERSIONS)
def test_core(version: str) -> None:
    try:
        own = environment_with(version, environment())
    except NotInstalledError as error:
        pytest.skip(str(error))
    own["PENSTOCK_TESTS_SPARK"] = version  # tests/conftest.py makes sure of it
    subprocess.run([sys.executable, "-m", "support.s3_server"], env=own, check=True, timeout=LONGEST)
    tests = [os.path.join("tests", name) for name in CORE]
    options = ["-q", "-p", "no:xdist", "-p", "no:cacheprovider", "--tb=short", "-rfE"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests],
        env=own, cwd=ROOT, capture_output=True, text=True, timeout=LONGEST,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-2000:]
