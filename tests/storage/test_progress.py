"""The progress line: on a terminal, after a few seconds, and nowhere else."""

from __future__ import annotations

import io
import sys

import pytest

from penstock.storage import progress as module
from penstock.storage.progress import ProgressLine, progress


class Terminal(io.StringIO):
    """What a terminal was shown."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_short_work_says_nothing(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with progress("deleted", 10) as line:
        for _ in range(10):
            clock[0] += 0.29
            line.advance()
    assert terminal.getvalue() == ""


def test_long_work_is_told_once_a_second(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with progress("deleted", 1000) as line:
        for _ in range(1000):
            clock[0] += 1 / 64
            line.advance()
    shown = terminal.getvalue()
    assert shown.endswith("\n")
    lines = shown.strip().split("\r")
    assert 10 <= len(lines) <= 14
    assert lines[0].startswith("deleted 193 of 1,000 files, 64 a second")


def test_bytes_and_rate(clock: list[float]) -> None:
    line = ProgressLine("merge_adjacent_files:", 2000, 20_000_000_000)
    line.reach(0.25)
    assert line.text(10) == "merge_adjacent_files: 500 of 2,000 files, 5.0 GB of 20.0 GB, 500.0 MB a second"
    line = ProgressLine("x", 3, 999)
    line.advance(2, 512)
    assert line.text(1) == "x 2 of 3 files, 512 bytes of 999 bytes, 512 bytes a second"


def test_elsewhere_there_is_no_line(
    clock: list[float], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress("deleted", 10) as line:
        clock[0] += 60
        line.advance(10)
    assert capsys.readouterr().err == ""


class Gone(Terminal):
    """A terminal that hung up."""

    def write(self, text: str) -> int:
        raise OSError(5, "Input/output error")


@pytest.mark.parametrize("terminal", [None, object(), Gone()])
def test_a_terminal_that_is_no_more_stops_no_work(
    clock: list[float], monkeypatch: pytest.MonkeyPatch, terminal: object
) -> None:
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress("deleted", 10) as line:
        clock[0] += 60
        line.advance(10)
    assert line.done == 10
