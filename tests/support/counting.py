"""What a block of code asks of Spark: commands to the driver's JVM, and jobs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from py4j.java_gateway import GatewayClient
from py4j.protocol import MEMORY_COMMAND_NAME
from pyspark.sql import SparkSession


@dataclass
class Asked:
    """How often the JVM was called, and how many jobs it ran."""

    commands: int = 0
    jobs: int = 0


@contextmanager
def asked_of(spark: SparkSession) -> Iterator[Asked]:
    """Counts while the block runs; the count is complete when it ends."""
    asked, send = Asked(), GatewayClient.send_command

    def counted(self: Any, command: str, *given: Any, **more: Any) -> Any:
        asked.commands += not command.startswith(MEMORY_COMMAND_NAME)  # objects that are let go, whenever that is
        return send(self, command, *given, **more)

    before = _jobs(spark)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GatewayClient, "send_command", counted)
        yield asked
    asked.jobs = _jobs(spark) - before


def _jobs(spark: SparkSession) -> int:
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())
