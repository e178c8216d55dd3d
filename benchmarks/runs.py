"""What the benchmarks share: their options, a session, a place for files, and turns that are timed."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from pyspark.sql import SparkSession

import penstock


@dataclass(frozen=True)
class Setting:
    """Where a benchmark runs. What is in `directory` may be there from an earlier run; `scratch` is removed."""

    spark: SparkSession
    directory: Path
    scratch: Path
    options: argparse.Namespace


@contextmanager
def setting(
    description: str | None, settings: Mapping[str, str] | None = None, **options: dict[str, Any]
) -> Iterator[Setting]:
    """A session with settings; the benchmark's own options, as argparse takes them, beside those that all have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--directory", type=Path, help="keeps the generated data for the next run")
    for name, given in options.items():
        parser.add_argument(f"--{name}", **given)
    chosen = parser.parse_args()
    spark = penstock.session(**(settings or {}))
    with tempfile.TemporaryDirectory(prefix="penstock-") as scratch:
        directory = chosen.directory or Path(scratch)
        directory.mkdir(parents=True, exist_ok=True)
        yield Setting(spark, directory, Path(scratch), chosen)
    spark.stop()


def seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def cpu_seconds(of: psutil.Process | None = None) -> float:
    """Of a process (else this one) and all it started, those that have ended included."""
    root = of or psutil.Process()
    used = 0.0
    for process in (root, *root.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        used += times.user + times.system + times.children_user + times.children_system
    return used


def measured(call: Callable[[], object], of: psutil.Process | None = None) -> tuple[float, float]:
    """The seconds on the wall and of all processors."""
    cpu, wall = cpu_seconds(of), time.perf_counter()
    call()
    taken = time.perf_counter() - wall
    return taken, cpu_seconds(of) - cpu


def medians(ways: Mapping[str, Callable[[], object]], runs: int) -> dict[str, float]:
    """The seconds of each way: all warmed once, then turn by turn."""
    times = [{name: seconds(way) for name, way in ways.items()} for _ in range(runs + 1)][1:]
    return {name: statistics.median(turn[name] for turn in times) for name in ways}
