"""Other releases of PySpark beside the tests' own: each is installed once, into a directory of its own in the cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


class NotInstalledError(Exception):
    """Raised when pip cannot fetch a PySpark."""


def pyspark_at(version: str) -> Path:
    """Where a PySpark is, to stand first on a path; fetched where it is not there yet (500 MB, about a minute)."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock"
    target = cache / f"pyspark-{version}"
    if not target.exists():
        cache.mkdir(parents=True, exist_ok=True)
        fresh = tempfile.mkdtemp(dir=cache)
        wanted = [sys.executable, "-m", "pip", "install", "--quiet", "--target", fresh, f"pyspark=={version}"]
        run = subprocess.run(wanted, capture_output=True, text=True)
        if run.returncode:
            shutil.rmtree(fresh)
            raise NotInstalledError(f"pyspark {version} cannot be installed: {run.stderr.strip()[-500:]}")
        try:
            os.rename(fresh, target)
        except OSError:  # another test run was faster
            shutil.rmtree(fresh)
    return target


def environment_with(version: str, environment: dict[str, str]) -> dict[str, str]:
    """An environment for a process that uses this PySpark, and else finds what it found."""
    own = {name: value for name, value in environment.items() if not name.startswith(("SPARK_", "PYSPARK_", "PYTEST_"))}
    places = [str(pyspark_at(version)), *filter(None, [own.get("PYTHONPATH")])]
    return own | {"PYTHONPATH": os.pathsep.join(places)}
