"""The progress bar: on a terminal or in a notebook, after a few seconds, and nowhere else."""

from __future__ import annotations

import io
import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr
from typing import Any

import pytest

from penstock.storage import progress as module
from penstock.storage.progress import ProgressBar, progress, show_progress, titled
from support.terminals import in_pipe, on_terminal


class Terminal(io.StringIO):
    """What a terminal was shown."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(module.time, "time", lambda: now[0])
    monkeypatch.setattr("tqdm.std.time", lambda: now[0])  # which has a name of its own for it
    monkeypatch.delenv("PYTEST_VERSION")
    monkeypatch.delenv("PENSTOCK_PROGRESS", raising=False)
    monkeypatch.setattr(module._Setting, "shown", None)
    return now


@pytest.fixture
def terminal() -> Terminal:
    return Terminal()


def work(clock: list[float], terminal: Any, seconds: float = 10) -> ProgressBar:
    with redirect_stderr(terminal), progress("delete files", 10) as bar:
        for _ in range(10):
            clock[0] += seconds / 10
            bar.advance()
    return bar


def test_short_work_shows_nothing(clock: list[float], terminal: Terminal) -> None:
    assert work(clock, terminal, 2.9).done == 10
    assert terminal.getvalue() == ""


def test_long_work_shows_a_bar_that_stays(clock: list[float], terminal: Terminal) -> None:
    work(clock, terminal)
    shown = terminal.getvalue()
    assert re.match(r"\rdelete files:  30%\|#[#\d ]+\| 3/10 files \[00:03<00:07\]\r", shown)
    assert re.search(r"\rdelete files: 100%\|#+\| 10/10 files \[00:10<00:00\]\n$", shown)
    assert shown.count("\n") == 1


def test_it_is_drawn_a_few_times_a_second(clock: list[float], terminal: Terminal) -> None:
    with redirect_stderr(terminal), progress("delete files", 10_000) as bar:
        for _ in range(10_000):
            clock[0] += 1 / 1000
            bar.advance()
    assert 20 < terminal.getvalue().count("\r") < 60


def test_work_has_the_name_of_what_it_is_part_of(clock: list[float], terminal: Terminal) -> None:
    with titled('merge main."a\n\x1b[2J"'), titled("append x"):
        work(clock, terminal)
    assert 'merge main."a \\x1b[2J": 100%' in terminal.getvalue()
    assert "\x1b[2J" not in terminal.getvalue()


def test_an_error_leaves_the_bar_on_a_line_of_its_own(clock: list[float], terminal: Terminal) -> None:
    with pytest.raises(KeyboardInterrupt), redirect_stderr(terminal), progress("delete files", 10) as bar:  # noqa: PT012
        clock[0] += 5
        bar.advance(5)
        raise KeyboardInterrupt
    assert re.search(r"50%\|[^\n]*\| 5/10 files \[[^\n]*\n$", terminal.getvalue())
    bar.advance(5)
    assert terminal.getvalue().count("\n") == 1


def test_what_has_no_size_yet_shows_nothing(clock: list[float], terminal: Terminal) -> None:
    with redirect_stderr(terminal), progress("write", 0, "tasks") as bar:
        clock[0] += 5
        bar.complete()
        assert terminal.getvalue() == ""
        clock[0] += 1
        bar.reach(1, 4, "1,000 rows")
    assert re.search(r"write:  25%\|.*1/4 tasks \[.*, 1,000 rows\]", terminal.getvalue())


def test_elsewhere_there_is_none(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    work(clock, sys.stderr, 60)
    work(clock, file := io.StringIO(), 60)
    assert capsys.readouterr().err == file.getvalue() == ""


@pytest.mark.parametrize("said", ["0", "false", " OFF ", "no"])
def test_a_variable_turns_it_off(
    clock: list[float], terminal: Terminal, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    monkeypatch.setenv("PENSTOCK_PROGRESS", said)
    work(clock, terminal)
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("environment", ["0", "1"])
def test_the_program_turns_it_off_and_on(
    clock: list[float], terminal: Terminal, monkeypatch: pytest.MonkeyPatch, environment: str
) -> None:
    monkeypatch.setenv("PENSTOCK_PROGRESS", environment)
    show_progress(False)
    work(clock, terminal)
    assert terminal.getvalue() == ""
    show_progress()
    work(clock, terminal)
    assert "100%" in terminal.getvalue()


def test_other_threads_show_none(clock: list[float], terminal: Terminal) -> None:
    thread = threading.Thread(target=work, args=(clock, terminal))
    thread.start()
    thread.join()
    assert terminal.getvalue() == ""


def test_many_threads_move_one_bar(clock: list[float], terminal: Terminal) -> None:
    with redirect_stderr(terminal), progress("delete files", 100) as bar, ThreadPoolExecutor(8) as pool:
        clock[0] += 5
        list(pool.map(lambda _: bar.advance(), range(100)))
    assert "| 100/100 files [" in terminal.getvalue()


def test_tests_show_none(clock: list[float], terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_VERSION", pytest.__version__)
    work(clock, terminal)
    assert terminal.getvalue() == ""


class Gone(Terminal):
    """A terminal that hung up."""

    def write(self, text: str) -> int:
        raise OSError(5, "Input/output error")


@pytest.mark.parametrize("terminal", [None, object(), Gone()])
def test_a_terminal_that_is_no_more_stops_no_work(clock: list[float], terminal: object) -> None:
    assert work(clock, terminal, 60).done == 10


SLOW = """
import sys, time
from penstock.storage.progress import progress
with progress("delete files", 40) as bar:
    for _ in range(40):
        time.sleep(0.1)
        bar.advance()
print("tqdm" in sys.modules)
"""


def test_a_real_terminal() -> None:
    ended = on_terminal(SLOW)
    assert (ended.code, ended.output) == (0, "True\n")
    assert re.match(r"\rdelete files:  [1-9]\d%\|█", ended.terminal)
    assert [line for line in ended.lines if line] == [ended.lines[0]]
    assert re.fullmatch(r"delete files: 100%\|█+\| 40/40 files \[00:\d\d<00:00\]", ended.lines[0])


def test_a_terminal_that_does_not_tell_its_size() -> None:
    ended = on_terminal(SLOW, columns=0)
    assert re.fullmatch(r"delete files: 100%\|█+\| 40/40 .*", ended.lines[0])


def test_a_real_interrupt() -> None:
    ended = on_terminal(SLOW, interrupt="delete files:")
    assert ended.code != 0
    assert re.fullmatch(r"delete files:  [1-9]\d%\|.*\]", ended.lines[0])
    assert ended.lines[1] == "Traceback (most recent call last):"
    assert ended.lines[-2] == "KeyboardInterrupt"


def test_a_pipe_stays_silent() -> None:
    ended = in_pipe(SLOW)
    assert (ended.code, ended.terminal, ended.output) == (0, "", "False\n")


def test_a_terminal_of_somebody_who_wants_none() -> None:
    ended = on_terminal(SLOW, PENSTOCK_PROGRESS="0")
    assert (ended.code, ended.terminal, ended.output) == (0, "", "False\n")
