"""A standalone Spark cluster: a master and two workers, processes of their own, whose Python has no Penstock."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

import pyspark

_START_SECONDS = 60


class StandaloneCluster:
    """A master and two workers of one core each. Spark takes the workers for two hosts."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.python = _bare_python(directory)
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

    def __enter__(self) -> StandaloneCluster:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            process.wait(30)


def _bare_python(directory: Path) -> Path:
    """This Python with what Penstock depends on, and without Penstock, which is there by a `.pth` file alone."""
    packages = Path(pyspark.__file__).parent.parent
    program = directory / "python"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{packages}" exec {os.path.realpath(sys.executable)} "$@"\n')
    program.chmod(0o755)
    return program
