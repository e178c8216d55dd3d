"""A terminal that a program of its own writes to."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import termios
import threading
from collections.abc import Mapping
from dataclasses import dataclass

# Of this test's process, which the program shall know nothing of.
_OURS = ("PYTEST_VERSION", "PYTEST_CURRENT_TEST", "PENSTOCK_PROGRESS", "COLUMNS", "TQDM_DISABLE")


@dataclass(frozen=True)
class Ended:
    """What a program has left: its exit code, what the terminal was sent, and its standard output."""

    code: int
    terminal: str
    output: str

    @property
    def lines(self) -> list[str]:
        """The lines as they stand on the terminal in the end."""
        return [line.rpartition("\r")[2].rstrip() for line in self.terminal.replace("\r\n", "\n").split("\n")]


def on_terminal(code: str, *, interrupt: str | None = None, columns: int = 120, **environment: str) -> Ended:
    """Run Python code whose standard error is a terminal; interrupted, where a text is given, once that is shown."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (40, columns))
    shown = bytearray()
    with _started(code, environment, theirs) as program:
        os.close(theirs)

        def read() -> None:
            interrupted = interrupt is None
            while piece := _piece(ours):
                shown.extend(piece)
                if not interrupted and interrupt is not None and interrupt.encode() in shown:
                    interrupted = True
                    program.send_signal(signal.SIGINT)

        reader = threading.Thread(target=read)
        reader.start()
        output = program.communicate(timeout=240)[0]
        reader.join()
    os.close(ours)
    return Ended(program.returncode, shown.decode(), output)


def in_pipe(code: str, **environment: str) -> Ended:
    """The same without a terminal: standard error is a pipe."""
    with _started(code, environment, subprocess.PIPE) as program:
        output, errors = program.communicate(timeout=240)
    return Ended(program.returncode, errors, output)


def users_environment() -> dict[str, str]:
    """The environment of a program that knows nothing of tests, but where this Penstock is."""
    inherited = {name: value for name, value in os.environ.items() if name not in _OURS}
    return {**inherited, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def _started(code: str, environment: Mapping[str, str], errors: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env={**users_environment(), **environment},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True,
    )  # fmt: skip


def _piece(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the program has closed its end
        return b""
