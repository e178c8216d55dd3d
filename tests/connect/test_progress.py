"""The progress of a job on a Spark Connect server, which tells its client how many tasks are done."""

from __future__ import annotations

import io
import re
import sys
import time
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.storage import progress
from support.catalogs import Catalog
from support.writing import attached


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_is_told_how_far_a_write_is(
    file_catalog: Catalog, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        time.sleep(1)  # the server tells its clients every two seconds
        yield from batches

    rows = spark.range(0, 8000, numPartitions=8).mapInArrow(slow, "id bigint")
    monkeypatch.setattr(progress, "SILENT_SECONDS", 0.0)
    monkeypatch.setattr(progress._Setting, "shown", True)
    with attached(file_catalog, spark) as lake:
        table = lake.create_table("t", "id BIGINT")
        monkeypatch.setattr(sys, "stderr", terminal := Terminal())
        table.append(rows, distribution="none")
        monkeypatch.undo()
        assert table.read().count() == 8000
    shown = terminal.getvalue()
    assert re.search(r"append main\.t: +\d+%\|[# \d]+\| [1-8]/[89] tasks \[", shown)
    assert re.search(r"append main\.t: 100%\|#+\| (\d+)/\1 tasks \[[^\n]*\n$", shown)
    assert spark.client._progress_handlers == []  # type: ignore[attr-defined]
