"""PyArrow file systems for the paths of a lake."""

from __future__ import annotations

from pyarrow import NativeFile, fs

from penstock.storage.paths import is_local


def open_file(path: str) -> NativeFile:
    """A file opened for random reading."""
    if is_local(path):
        return fs.LocalFileSystem().open_input_file(path.removeprefix("file://"))
    filesystem, name = fs.FileSystem.from_uri(path)
    return filesystem.open_input_file(name)
