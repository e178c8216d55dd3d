"""PyArrow file systems for the paths of a lake."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from pyarrow import NativeFile, fs

from penstock.storage.paths import is_local

_ROOT = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/]*/?")
_OBJECT_STORES = ("s3", "gcs", "abfs")


def open_file(path: str) -> NativeFile:
    """A file opened for random reading."""
    filesystem, name = _located(path)
    return filesystem.open_input_file(name)


def open_output(path: str) -> NativeFile:
    """A new file opened for writing; its directory exists."""
    filesystem, name = _located(path)
    return filesystem.open_output_stream(name)


def make_directory(path: str) -> None:
    """Make a directory and its parents, on storage that has such a thing."""
    filesystem, name = _located(path)
    if filesystem.type_name not in _OBJECT_STORES:
        filesystem.create_dir(name.rstrip("/"), recursive=True)


def delete_file(path: str) -> None:
    """Delete a file; one that is not there is fine."""
    filesystem, name = _located(path)
    if filesystem.get_file_info(name).type == fs.FileType.File:
        filesystem.delete_file(name)


def delete_directory(path: str) -> None:
    """Delete an empty directory, on storage that has such a thing; one that is not there is fine."""
    filesystem, name = _located(path)
    if (
        filesystem.type_name not in _OBJECT_STORES
        and filesystem.get_file_info(name.rstrip("/")).type != fs.FileType.NotFound
    ):
        filesystem.delete_dir(name.rstrip("/"))


def list_files(directory: str) -> Iterator[str]:
    """The paths of all files below a directory, which ends in a slash; none where it does not exist."""
    filesystem, name = _located(directory)
    selector = fs.FileSelector(name.rstrip("/"), allow_not_found=True, recursive=True)
    for info in filesystem.get_file_info(selector):
        if info.type == fs.FileType.File:
            yield directory + info.path.removeprefix(name)


def upload_file(local: str, path: str) -> None:
    """Copy a file of this machine to storage."""
    filesystem, name = _located(path)
    fs.copy_files(local, name, source_filesystem=fs.LocalFileSystem(), destination_filesystem=filesystem)


def _located(path: str) -> tuple[fs.FileSystem, str]:
    """The file system of a path and the file's name on it, taken literally: a `%2F` in it is not a slash."""
    if is_local(path):
        return fs.LocalFileSystem(), path.removeprefix("file://")
    root = _ROOT.match(path)
    assert root is not None  # or the path would be local
    filesystem, base = _filesystem(root[0])
    return filesystem, "/".join(part for part in (base.rstrip("/"), path[root.end() :]) if part)


@cache
def _filesystem(root: str) -> tuple[fs.FileSystem, str]:
    filesystem, base = fs.FileSystem.from_uri(root)
    return filesystem, base
