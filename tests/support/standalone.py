"""A standalone Spark cluster: a master and two workers, processes of their own, whose Python has no Penstock."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import pyspark

_START_SECONDS = 60


class StandaloneCluster:
    """A master and two workers of one core each. Spark takes the workers for two hosts."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(exist_ok=True)
        self._directory = directory
        self.python = bare_python(directory)
        self._processes: list[subprocess.Popen[bytes]] = []
        self.master = self._start("master.Master", r"(spark://[\w.-]+:\d+)", "--host", "127.0.0.1", "--port", "0")
        for number, host in enumerate(("127.0.0.1", "localhost")):
            self._start(
                "worker.Worker", "(Successfully registered)", "--host", host, "--cores", "1", "--memory", "1g",
                "--work-dir", str(directory / f"work{number}"), self.master,
            )  # fmt: skip

    def _start(self, name: str, ready: str, *arguments: str) -> str:
        log = self._directory / f"{name}-{len(self._processes)}.log"
        program = Path(pyspark.__file__).parent / "bin" / "spark-class"
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK", "PYTHON"))}
        with log.open("wb") as output:
            self._processes.append(
                subprocess.Popen(
                    [program, f"org.apache.spark.deploy.{name}", "--webui-port", "0", *arguments],
                    stdout=output, stderr=output, env=environment | {"SPARK_DAEMON_MEMORY": "256m"},
                )
            )  # fmt: skip
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            found = re.search(ready, log.read_text(errors="replace"))
            if found:
                return found[1]
            time.sleep(0.1)
        raise RuntimeError(f"{name} did not start: {log.read_text(errors='replace')[-2000:]}")

    def executors(self) -> list[int]:
        """The ids of the executors' processes, which the workers have started."""
        return self._executors(_children())

    def python_workers(self) -> list[int]:
        """The ids of the processes that run Python for tasks: those that the executors' daemons have forked."""
        children = _children()
        daemons = [one for executor in self._executors(children) for one in children[executor]]
        return [one for daemon in daemons for one in children[daemon]]

    def _executors(self, children: Mapping[int, list[int]]) -> list[int]:
        return [one for worker in self._processes[1:] for one in children[worker.pid]]

    def __enter__(self) -> StandaloneCluster:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            process.wait(30)


def bare_python(directory: Path, *hidden: str) -> Path:
    """This Python with what Penstock depends on, but for some packages; Penstock is here by a `.pth` file alone."""
    packages = Path(pyspark.__file__).parent.parent
    if hidden:
        packages = _links(packages, directory / "packages", hidden)
    program = directory / "python"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{packages}" exec {os.path.realpath(sys.executable)} "$@"\n')
    program.chmod(0o755)
    return program


def _links(packages: Path, directory: Path, hidden: Sequence[str]) -> Path:
    directory.mkdir()
    for item in packages.iterdir():
        if item.name not in hidden and item.suffix != ".pth":
            (directory / item.name).symlink_to(item)
    return directory


def _children() -> Mapping[int, list[int]]:
    """The processes that each process has started, but for those that have ended and that it has not heard of yet."""
    found: dict[int, list[int]] = defaultdict(list)
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has just ended
            # After the name, which may hold anything.
            state, parent = status.read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                found[int(parent)].append(int(status.parent.name))
    return found
