"""Progress of Spark's jobs on a real terminal, and silence elsewhere: a program of its own, with a slow job."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.terminals import in_pipe, on_terminal

# Eight tasks of a second each, on two cores.
PROGRAM = """
import sys, threading, time
import penstock
from pyspark.sql import functions as F

spark = penstock.session("local[2]", spark_driver_memory="1g", {settings})

def slow(batches):
    time.sleep(1)
    for batch in batches:
        if {fails} and 7000 in batch.column(0).to_pylist():
            raise ValueError("a row too many")
        yield batch

rows = spark.range(0, 8000, numPartitions=8).mapInArrow(slow, "id bigint")
with penstock.attach("ducklake:{path}", spark=spark) as lake:
    table = lake.create_table('"a<b>"', "id BIGINT")
    append = lambda: table.append(rows, distribution="none")
    if {threaded}:
        thread = threading.Thread(target=append)
        thread.start()
        thread.join()
    else:
        append()
    print(table.read().count())
"""


def program(folder: Path, settings: str = "", *, fails: bool = False, threaded: bool = False) -> str:
    folder.mkdir(exist_ok=True)
    return PROGRAM.format(path=folder / "lake.ducklake", settings=settings, fails=fails, threaded=threaded)


@pytest.mark.spark
@pytest.mark.slow
def test_a_slow_write_shows_tasks_and_rows(tmp_path: Path) -> None:
    ended = on_terminal(program(tmp_path))
    assert (ended.code, ended.output) == (0, "8000\n")
    # The rows that tasks hold because they are few go to one more.
    bars = re.findall(
        r"append main\.a<b>: +(\d+)%\|[█▏▎▍▌▋▊▉ ]*\| (\d)/[89] tasks \[[\d:]+<[\d:?]+, ([\d,]+) rows\]", ended.terminal
    )
    assert len(bars) >= 2
    done = [int(number) for _, number, _ in bars]
    assert done == sorted(done)
    assert done[0] < 8
    assert done[-1] == 9
    assert [line for line in ended.lines if "append" in line] == [
        line for line in ended.lines if "| 9/9 tasks [" in line
    ]


@pytest.mark.spark
@pytest.mark.slow
def test_a_failed_write_leaves_the_terminal_in_order(tmp_path: Path) -> None:
    ended = on_terminal(program(tmp_path, fails=True))
    assert ended.code == 1
    # Spark's own log of the failure is written between.
    end = ended.lines.index("Traceback (most recent call last):")
    assert re.search(r"^append main\.a<b>: .*\| [1-8]/[89] tasks \[.*\]$", ended.lines[end - 1])
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.mark.spark
@pytest.mark.slow
def test_an_interrupted_write_leaves_the_terminal_in_order(tmp_path: Path) -> None:
    ended = on_terminal(program(tmp_path), interrupt="append main")
    assert ended.code != 0
    bar = [line for line in ended.lines if line.startswith("append main")][-1]
    assert re.search(r"\| [0-8]/[89] tasks \[.*\]$", bar)
    assert any("KeyboardInterrupt" in line for line in ended.lines)


@pytest.mark.spark
@pytest.mark.slow
def test_other_threads_pipes_and_sparks_own_bar(tmp_path: Path) -> None:
    for number, ended in enumerate(
        (
            on_terminal(program(tmp_path / "1", threaded=True)),
            in_pipe(program(tmp_path / "2")),
            on_terminal(program(tmp_path / "3", '**{"spark.ui.showConsoleProgress": "true"}')),
            on_terminal(program(tmp_path / "4"), PENSTOCK_PROGRESS="0"),
        )
    ):
        assert (number, ended.code, ended.output) == (number, 0, "8000\n")
        assert "append" not in ended.terminal
