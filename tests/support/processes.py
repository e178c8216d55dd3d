"""Processes that tests start."""

from __future__ import annotations

import multiprocessing
import os
import runpy
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

import pytest

READY = "ready"
LONGEST = 120.0  # seconds, for anything that a test waits for


def environment() -> dict[str, str]:
    """Of a process that finds `support`, and the same Penstock as the tests do."""
    places = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(places)}


@cache
def _forks() -> ForkServerContext:
    """Processes that need not import everything anew: to import Lance and its like takes three seconds."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["support.writers", "support.lance_writers", "support.delta_writers"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
        forkserver.ensure_running()
    return context


@dataclass
class Child:
    """A process of its own that runs a function of `support`; the last argument is its end of a pipe."""

    act: Callable[..., None]
    arguments: tuple[Any, ...]

    def __post_init__(self) -> None:
        self.pipe, theirs = _forks().Pipe()
        self.process = _forks().Process(target=self.act, args=(*self.arguments, theirs), daemon=True)
        self.process.start()
        theirs.close()

    @classmethod
    def script(cls, path: str, *arguments: str) -> Child:
        """Run a Python file, as `python path arguments...` does: lines that it prints are told, `go` is one to it."""
        return cls(_run, (path, arguments))

    def told(self) -> Any:
        assert self.pipe.poll(LONGEST), f"{self.act.__name__} says nothing"
        return self.pipe.recv()

    def is_ready(self) -> None:
        assert self.told() == READY

    def go(self) -> None:
        self.pipe.send(None)

    def kill(self) -> None:
        self.process.kill()
        self.process.join(LONGEST)

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


class _Terminal:
    """Standard input and output that go through a pipe, a message for each line."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe, self._line = pipe, ""

    def write(self, text: str) -> None:
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            self._pipe.send(line)

    def flush(self) -> None:
        """Whole lines went at once."""

    def readline(self) -> str:
        self._pipe.recv()
        return "\n"


def _run(path: str, arguments: tuple[str, ...], pipe: Connection) -> None:
    sys.argv = [path, *arguments]
    sys.stdin = sys.stdout = _Terminal(pipe)  # type: ignore[assignment]
    runpy.run_path(path, run_name="__main__")
