"""Tests that need executors of their own, in a pytest and a session of their own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support import effort

TESTS = Path(__file__).parent
MARKS = re.compile(r"pytest\.mark\.(cluster|on_cluster_too)\b")


@pytest.mark.spark
@pytest.mark.takes(80)
def test_on_executors_of_their_own() -> None:
    """Nothing may depend on sharing the driver's process; nor may rows visit the driver to be read."""
    marked = [path for path in TESTS.rglob("test_*.py") if MARKS.search(path.read_text())]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--cluster"]
    full = ["--full"] if effort.is_full() else []
    run = subprocess.run(
        [*command, *full, *map(str, marked)], cwd=TESTS.parent, capture_output=True, text=True, timeout=900
    )
    assert run.returncode == 0, run.stdout[-5000:]
    assert re.search(r"\b6 passed", run.stdout), run.stdout[-5000:]
