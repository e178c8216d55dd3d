"""What the tests fetch once and keep: programs of servers, and JARs for Spark."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path


def cache() -> Path:
    """Where what tests have fetched stays."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock"


def fetched_jars(folder: Path) -> list[str]:
    """The JARs of a folder; none where nothing was fetched into it."""
    return sorted(map(str, folder.glob("*.jar")))


def fetch_jars(settings: Mapping[str, str], folder: Path) -> None:
    """Let Spark fetch the packages that settings name, and keep them in a folder."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    for name, value in settings.items():
        builder = builder.config(name, value)
    with builder.getOrCreate() as spark:
        found = (spark.sparkContext.getConf().get("spark.jars") or "").split(",")
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(dir=folder.parent))
    for one in found:
        shutil.copy(one.removeprefix("file://"), fresh)
    try:
        os.rename(fresh, folder)
    except OSError:  # another run was faster
        shutil.rmtree(fresh)
