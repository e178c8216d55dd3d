"""Sets rows aside on the local disk, when a task has more partitions under way than its memory holds."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator

import pyarrow as pa


class Spill:
    """A directory of Arrow files, gone after `close`. Rows come back a partition at a time."""

    def __init__(self) -> None:
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._files: list[str] = []
        self._readers: dict[int, pa.ipc.RecordBatchFileReader] = {}

    def write(self, parts: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, int]]:
        """Set parts aside in one new file, and return the place of each, where `read` finds it."""
        if self._directory is None:
            self._directory = tempfile.TemporaryDirectory(prefix="penstock-")
        path = os.path.join(self._directory.name, f"{len(self._files)}.arrow")
        self._files.append(path)
        writer = None
        try:
            for number, part in enumerate(parts):
                writer = writer or pa.ipc.new_file(path, part.schema)
                writer.write_batch(part)
                yield len(self._files) - 1, number
        finally:
            if writer:
                writer.close()

    def read(self, places: Iterable[tuple[int, int]]) -> Iterator[pa.RecordBatch]:
        """The rows at some places."""
        for file, number in places:
            if file not in self._readers:
                self._readers[file] = pa.ipc.open_file(pa.memory_map(self._files[file]))
            yield self._readers[file].get_batch(number)

    def close(self) -> None:
        """Delete everything that was set aside."""
        self._readers.clear()
        if self._directory is not None:
            self._directory.cleanup()
            self._directory = None
