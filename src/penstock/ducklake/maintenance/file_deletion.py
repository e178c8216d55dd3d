"""Deletes many files at once, and tells how far it is."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from penstock.storage.filesystems import delete_file

_AT_ONCE = 32
_SILENT_SECONDS = 3.0
_log = logging.getLogger("penstock")


def delete_all(paths: Sequence[str]) -> list[bool]:
    """Delete files; tells of each whether it is gone. One that was not there is; one that cannot be deleted is not."""
    with ThreadPoolExecutor(_AT_ONCE) as pool, progress("deleted", len(paths)) as line:

        def delete(path: str) -> bool:
            try:
                delete_file(path)
            except OSError as error:
                _log.warning("%s could not be deleted and is tried again next time: %s", path, error)
                return False
            finally:
                line.advance()
            return True

        return list(pool.map(delete, paths))


@dataclass
class ProgressLine:
    """A line on a terminal, for what takes more than a few seconds."""

    verb: str
    total: int
    done: int = 0
    _began: float = field(default_factory=time.monotonic)
    _shown: float = field(default_factory=time.monotonic)

    def advance(self, files: int = 1) -> None:
        """Count files."""
        self.done += files
        now = time.monotonic()
        if now - self._began > _SILENT_SECONDS and now - self._shown > 1 and sys.stderr.isatty():
            self._shown = now
            rate = self.done / (now - self._began)
            sys.stderr.write(f"\r{self.verb} {self.done:,} of {self.total:,} files, {rate:,.0f} a second")
            sys.stderr.flush()

    @property
    def was_shown(self) -> bool:
        """Whether there is a line to end."""
        return self._shown > self._began


@contextmanager
def progress(verb: str, total: int) -> Iterator[ProgressLine]:
    """A progress line that ends with the block."""
    line = ProgressLine(verb, total)
    try:
        yield line
    finally:
        if line.was_shown:
            sys.stderr.write("\n")
