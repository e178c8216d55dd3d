"""Shows how far a long piece of work is, by tqdm: on a terminal or in a notebook. Elsewhere it shows nothing."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from penstock.texts import one_line

SILENT_SECONDS = 3.0
_PAUSE = 0.2  # seconds between two drawings
_FORMAT = "{l_bar}{bar}| {n_fmt}/{total_fmt} %s [{elapsed}<{remaining}{postfix}]"
_COLUMNS = 100  # of a terminal that does not tell
_VARIABLE, _OFF = "PENSTOCK_PROGRESS", ("0", "false", "no", "off")
_title: ContextVar[str | None] = ContextVar("penstock_progress_title", default=None)


class _Setting:
    """What the program has said about progress; None while it has said nothing."""

    shown: bool | None = None


def show_progress(shown: bool = True) -> None:
    """Sets whether this process shows the progress of work that takes more than a few seconds.

    By default it does, unless the environment has `PENSTOCK_PROGRESS=0`. Progress is only ever shown on a terminal or
    in a notebook, and for work of the main thread.

    Args:
        shown: Whether it does.
    """
    _Setting.shown = shown


def is_shown() -> bool:
    """Whether somebody may be looking at the work of this thread, and wants to."""
    return _is_wanted() and threading.current_thread() is threading.main_thread() and (in_notebook() or _on_terminal())


def in_notebook() -> bool:
    """Whether this program runs in a notebook, where tqdm shows widgets."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and "IPKernelApp" in shell.config


def _is_wanted() -> bool:
    if _Setting.shown is not None:
        return _Setting.shown
    # Tests run with a terminal as well, and nobody wants bars between their names.
    return os.environ.get(_VARIABLE, "").strip().lower() not in _OFF and "PYTEST_VERSION" not in os.environ


def _on_terminal() -> bool:
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except (AttributeError, OSError, ValueError):  # replaced by something else, or closed
        return False


def _has_size() -> bool:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns > 0
    except (AttributeError, OSError, ValueError):
        return False


@contextmanager
def titled(title: str) -> Iterator[None]:
    """Name what is done inside; what it consists of does not change the name."""
    token = _title.set(_title.get() or title)
    try:
        yield
    finally:
        _title.reset(token)


class ProgressBar:
    """A bar for work that takes more than a few seconds; nothing before that, or where nobody looks."""

    def __init__(self, title: str, total: int, unit: str) -> None:
        self.title, self.total, self.unit = one_line(_title.get() or title), total, unit
        self.done, self.note = 0, ""
        self.is_shown = is_shown()
        self._began = time.time()
        self._drawn = self._began + SILENT_SECONDS - _PAUSE
        self._bar: Any = None
        self._lock = threading.Lock()

    def advance(self, count: int = 1) -> None:
        """Count more of it as done."""
        with self._lock:
            self.done += count
            self._draw_if_due()

    def reach(self, done: int, total: int, note: str = "") -> None:
        """Say how much of it is done, and what else there is to say."""
        with self._lock:
            self.done, self.total, self.note = done, total, note
            self._draw_if_due()

    def complete(self) -> None:
        """Say that all of it is done."""
        self.reach(self.total, self.total, self.note)

    def end(self) -> None:
        """Leave the bar as it is, if there is one, and go on below it."""
        with self._lock, suppress(Exception):
            bar, self._bar, self.is_shown = self._bar, None, False
            if bar is not None:
                self._put(bar)
                bar.close()

    def _draw_if_due(self) -> None:
        now = time.time()
        if self.is_shown and self.total and now - self._drawn > _PAUSE:
            self._drawn = now
            try:
                self._bar = self._bar or self._new()
                self._put(self._bar)
            except Exception:  # of a terminal that is gone: the work matters, not the bar
                self.is_shown = False

    def _new(self) -> Any:
        from tqdm.auto import tqdm  # type: ignore[import-untyped] # takes a moment, which short work does not have

        size = {"dynamic_ncols": True} if _has_size() else {"ncols": _COLUMNS}
        # With a delay it is first shown as we put it, not before that with nothing done.
        bar: Any = tqdm(desc=self.title, total=self.total, bar_format=_FORMAT % self.unit, delay=0.001, **size)
        bar.start_t = self._began
        return bar

    def _put(self, bar: Any) -> None:
        bar.total, bar.n = self.total, self.done
        bar.set_postfix_str(self.note, refresh=False)
        bar.refresh()


@contextmanager
def progress(title: str, total: int, unit: str = "files") -> Iterator[ProgressBar]:
    """A progress bar that ends with the block, however that ends."""
    bar = ProgressBar(title, total, unit)
    try:
        yield bar
    finally:
        bar.end()
