"""A Spark Connect server: a process of its own, which clients reach by `sc://`."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from support.processes import environment

_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_START_SECONDS = 120.0


@contextmanager
def connect_server(
    directory: Path, settings: Mapping[str, str], python: Path | None = None, pyspark_home: Path | None = None
) -> Iterator[str]:
    """A server for as long as the block runs; gives its address. Its workers run a Python, by default this one."""
    home, port, log = pyspark_home or Path(pyspark.__file__).parent, _free_port(), directory / "connect.log"
    options = {
        **settings,
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
    }
    given = [part for key, value in options.items() for part in ("--conf", f"{key}={value}")]
    own = {key: value for key, value in environment().items() if not key.startswith(("SPARK_", "PYSPARK_"))}
    own |= {"SPARK_HOME": str(home), "PYSPARK_PYTHON": str(python or sys.executable), "LC_ALL": "C.UTF-8"}
    if python is not None:
        own.pop("PYTHONPATH")
    with log.open("wb") as output:
        process = subprocess.Popen(
            [home / "bin" / "spark-submit", "--master", "local[2]", "--class", _CLASS, *given, "spark-internal"],
            stdout=output, stderr=output, env=own, cwd=directory,
        )  # fmt: skip
    try:
        _wait_for(port, process, log)
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise RuntimeError(f"the server did not start: {log.read_text(errors='replace')[-3000:]}")


def connect_session(address: str) -> SparkSession:
    """A session of this process on a server."""
    session: SparkSession = SparkSession.builder.remote(address).getOrCreate()
    return session
