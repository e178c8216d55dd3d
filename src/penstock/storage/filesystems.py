"""Opens, creates, lists and deletes files, on the PyArrow file system that a path belongs to."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from typing import NamedTuple
from uuid import uuid4

from pyarrow import NativeFile, fs

from penstock.errors import UnsupportedError
from penstock.storage.azure import azure_access, azure_filesystem, azure_place
from penstock.storage.paths import is_local
from penstock.storage.s3 import s3_access, s3_filesystem
from penstock.storage.s3_objects import delete_objects, has_s3_client, put_if_absent
from penstock.storage.stores import plain_scheme, split_path, store_kind, store_of
from penstock.storage.web_files import open_web_file

_OBJECT_STORES = ("s3", "gcs", "abfs")


def open_file(path: str) -> NativeFile:
    """A file opened for random reading."""
    if store_kind(path) == "http":
        return open_web_file(path)
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
    if has_s3_client(path):
        for why in delete_objects([path]).values():
            raise OSError(why)
    elif is_file(path):
        filesystem, name = _located(path)
        with suppress(FileNotFoundError):  # another cleanup may have been faster
            filesystem.delete_file(name)


def is_file(path: str) -> bool:
    """Whether there is a file at a path."""
    filesystem, name = _located(path)
    return bool(filesystem.get_file_info(name).type == fs.FileType.File)


def is_directory(path: str) -> bool:
    """Whether there is a directory at a path, or anything below it where storage has none."""
    filesystem, name = _located(path)
    return bool(filesystem.get_file_info(name.rstrip("/")).type == fs.FileType.Directory)


def file_size(path: str) -> int:
    """The size of a file; FileNotFoundError where it is not there."""
    if store_kind(path) == "http":
        with open_file(path) as file:
            return int(file.size())
    filesystem, name = _located(path)
    found = filesystem.get_file_info(name)
    if found.type != fs.FileType.File:
        raise FileNotFoundError(f"there is no file {path}")
    return int(found.size)


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
    return (file.path for file in stored_files(directory))


class StoredFile(NamedTuple):
    """A file, by its whole path."""

    path: str
    size: int
    modified: datetime


def stored_files(directory: str) -> Iterator[StoredFile]:
    """All files below a directory, which ends in a slash; none where it does not exist."""
    filesystem, name = _located(directory)
    own = name if name.endswith("/") else f"{name}/"  # of a whole bucket
    for info in filesystem.get_file_info(fs.FileSelector(name.rstrip("/"), allow_not_found=True, recursive=True)):
        if info.type == fs.FileType.File:
            modified = datetime.fromtimestamp((info.mtime_ns or 0) / 1e9, UTC)
            yield StoredFile(directory + info.path.removeprefix(own), info.size, modified)


def list_subdirectories(directory: str) -> Iterator[str]:
    """The directories right in a directory, each with a slash at its end; none where it does not exist."""
    filesystem, name = _located(directory)
    for info in filesystem.get_file_info(fs.FileSelector(name.rstrip("/"), allow_not_found=True)):
        if info.type == fs.FileType.Directory:
            yield f"{directory}{info.base_name}/"


def upload_file(local: str, path: str) -> None:
    """Copy a file of this machine to storage."""
    filesystem, name = _located(path)
    fs.copy_files(local, name, source_filesystem=fs.LocalFileSystem(), destination_filesystem=filesystem)


class Listed(NamedTuple):
    """A file of a directory; `modified` is in milliseconds since 1970."""

    name: str
    size: int
    modified: int


def list_directory(directory: str) -> Iterator[Listed]:
    """The files right in a directory, in no order; none where it does not exist."""
    filesystem, name = _located(directory)
    for info in filesystem.get_file_info(fs.FileSelector(name.rstrip("/"), allow_not_found=True)):
        if info.type == fs.FileType.File:
            yield Listed(info.base_name, info.size, (info.mtime_ns or 0) // 1_000_000)


def read_bytes(path: str) -> bytes:
    """All of a small file; FileNotFoundError where it is not there."""
    with open_file(path) as file:
        return bytes(file.read())


def create_file(path: str, content: bytes, *, single_writer: bool = False) -> bool:
    """Make a file that nobody sees before all of it is stored; False, and nothing done, where there is one already.

    On this machine's disks and on S3 that is one atomic step, so that of many writers one alone is told True. Other
    stores cannot be asked for it: there a `single_writer`, who vouches that there is no other, looks first and then
    writes.
    """
    if has_s3_client(path):
        return put_if_absent(path, content)
    if not single_writer and not is_local(path):
        way = "pip install 'penstock[s3]'" if store_kind(path) == "s3" else "write to S3 or to a disk"
        raise UnsupportedError(
            f"{path} cannot be written safely beside other writers: PyArrow has no put-if-absent there; {way}"
        )
    filesystem, name = _located(path)
    if is_local(path):
        return _link_new(name, content)
    if filesystem.get_file_info(name).type != fs.FileType.NotFound:
        return False
    with filesystem.open_output_stream(name) as file:
        file.write(content)
    return True


def _link_new(name: str, content: bytes) -> bool:
    directory, own = os.path.split(name)
    temporary = os.path.join(directory, f".{own}.{uuid4()}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, name)
    except FileExistsError:
        return os.stat(temporary).st_nlink > 1  # NFS may repeat a request that it has already done
    except OSError as error:
        if error.errno in (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK):
            raise UnsupportedError(
                f"{name} cannot be written safely: its file system has no hard links; use one that has"
            ) from error
        raise
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
    _sync_directory(directory)
    return True


def _sync_directory(directory: str) -> None:
    """Make a new name in a directory survive a loss of power."""
    handle = os.open(directory or ".", os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _located(path: str) -> tuple[fs.FileSystem, str]:
    """The file system of a path and the file's name on it, taken literally: a `%2F` in it is not a slash."""
    store = store_of(path)
    if store is None:
        return fs.LocalFileSystem(), path.removeprefix("file://")
    root, rest = split_path(path)
    if store.kind == "http":
        raise UnsupportedError(
            f"{path} can only be read: nothing can be listed, written or deleted over http and https"
        )
    if store.kind == "s3":
        filesystem, base = s3_filesystem(s3_access(path)), store.name
    elif store.kind == "azure":
        place = azure_place(path)
        filesystem, base, rest = azure_filesystem(azure_access(path)), place.container, place.rest
    else:
        filesystem, base = _filesystem(plain_scheme(root))
    return filesystem, "/".join(part for part in (base.rstrip("/"), rest) if part)


@cache
def _filesystem(root: str) -> tuple[fs.FileSystem, str]:
    filesystem, base = fs.FileSystem.from_uri(root)
    return filesystem, base
