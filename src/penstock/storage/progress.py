"""Tells on a terminal how far a long piece of work is: files, bytes and rate. Elsewhere it says nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Lock

_SILENT_SECONDS = 3.0
_UNITS = ("bytes", "KB", "MB", "GB", "TB", "PB")


@dataclass
class ProgressLine:
    """A line on a terminal, for what takes more than a few seconds. Without a size, it is about files alone."""

    verb: str
    files: int
    size: int | None = None
    done: int = 0
    done_size: float = 0
    _began: float = field(default_factory=lambda: time.monotonic())
    _shown: float | None = None
    _lock: Lock = field(default_factory=Lock)

    def advance(self, files: int = 1, size: float = 0) -> None:
        """Count files and bytes that are done."""
        with self._lock:
            self.done += files
            self.done_size += size
            self._show(time.monotonic())

    def reach(self, part: float) -> None:
        """Say which part of the whole is done, of work that does not tell files apart."""
        with self._lock:
            self.done, self.done_size = int(self.files * part), (self.size or 0) * part
            self._show(time.monotonic())

    def end(self) -> None:
        """Leave the line, if there is one."""
        with self._lock:
            if self._shown is not None:
                _write("\n")
                self._shown = None

    def text(self, seconds: float) -> str:
        """What the line says after some seconds."""
        files = f"{self.verb} {self.done:,} of {self.files:,} files"
        if self.size is None:
            return f"{files}, {self.done / seconds:,.0f} a second"
        rate = _bytes(self.done_size / seconds)
        return f"{files}, {_bytes(self.done_size)} of {_bytes(self.size)}, {rate} a second"

    def _show(self, now: float) -> None:
        since = now - self._began if self._shown is None else now - self._shown + _SILENT_SECONDS - 1
        if since > _SILENT_SECONDS and is_terminal():
            self._shown = now
            _write(f"\r{self.text(now - self._began)}\x1b[K")


def is_terminal() -> bool:
    """Whether somebody may be looking at standard error."""
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except (AttributeError, OSError, ValueError):  # replaced by something else, or closed
        return False


def _write(text: str) -> None:
    with suppress(OSError, ValueError, AttributeError):  # of a terminal that is gone: the work matters, not the line
        sys.stderr.write(text)
        sys.stderr.flush()


@contextmanager
def progress(verb: str, files: int, size: int | None = None) -> Iterator[ProgressLine]:
    """A progress line that ends with the block."""
    line = ProgressLine(verb, files, size)
    try:
        yield line
    finally:
        line.end()


def _bytes(size: float) -> str:
    power = 0
    while size >= 1000 and power < len(_UNITS) - 1:
        size, power = size / 1000, power + 1
    return f"{size:,.0f} {_UNITS[power]}" if power == 0 else f"{size:.1f} {_UNITS[power]}"
