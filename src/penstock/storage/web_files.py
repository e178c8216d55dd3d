"""Reads files behind http and https by ranges: PyArrow has no file system for them."""

from __future__ import annotations

import io
import re
import shutil
import time
from collections.abc import Callable
from http.client import HTTPException, HTTPResponse
from typing import BinaryIO, TypeVar
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from pyarrow import NativeFile, PythonFile

from penstock.storage.paths import shown_url, to_uri

_SECONDS = 10.0
_ATTEMPTS = 3
_FIRST_PAUSE = 0.3
_BUFFER = 131_072  # a footer, or all of a small file
_GONE = (404, 410)
_PASSING = (408, 429)  # and all from 500 on: another attempt may succeed
_SIZE = re.compile(r"bytes .*/(\d+)$")
_Answer = TypeVar("_Answer")


def open_web_file(path: str) -> NativeFile:
    """A file opened for random reading. Raises FileNotFoundError, or OSError with what the server said."""
    return open_url(web_address(path))


def open_url(url: str) -> NativeFile:
    """What is at an address, opened for random reading; errors as of `open_web_file`."""
    size = _size(url)
    if size is None:
        return PythonFile(io.BytesIO(_asked(url, _content)), mode="r")
    return PythonFile(io.BufferedReader(_Ranges(url, size), _BUFFER), mode="r")


def first_bytes(url: str, count: int) -> bytes:
    """How what is at an address begins; errors as of `open_web_file`."""

    def take(answer: HTTPResponse) -> bytes:
        return answer.read(count)

    try:
        return _asked(url, take, headers={"Range": f"bytes=0-{count - 1}"})
    except _RefusedError:  # an empty file has no such range
        return _asked(url, take)


def download_url(url: str, target: BinaryIO) -> None:
    """Copy what is at an address into a file, which is empty or holds a part of it; errors as of `open_web_file`."""

    def take(answer: HTTPResponse) -> None:
        target.seek(0)
        target.truncate()
        shutil.copyfileobj(answer, target, _BUFFER)
        told = answer.headers.get("Content-Length")
        if told is not None and int(told) != target.tell():
            raise OSError("the server ended early")

    _asked(url, take)


def web_address(path: str) -> str:
    """The address of a file, by its path, in which each letter stands for itself.

    DuckDB takes the paths of such files for addresses: a `%` in a name counts as one that stands before a code. A lake
    that was laid out for it is found too.
    """
    address = to_uri(path)
    for_duckdb = address.replace("%25", "%")
    if for_duckdb == address or _is_there(address) or not _is_there(for_duckdb):
        return address
    return for_duckdb


def _is_there(url: str) -> bool:
    try:
        _size(url)
    except FileNotFoundError:
        return False
    return True


def _size(url: str) -> int | None:
    """By the answer's head; some servers give none, and tell with the first byte, or not at all."""
    try:
        size = _asked(url, lambda answer: answer.headers.get("Content-Length"), method="HEAD")
    except _RefusedError:
        size = None
    if size is None:
        size = _asked(url, _told_size, headers={"Range": "bytes=0-0"})
    return None if size is None else int(size)


def _told_size(answer: HTTPResponse) -> str | None:
    told = _SIZE.match(answer.headers.get("Content-Range") or "")
    return told[1] if told else answer.headers.get("Content-Length")


class _RefusedError(OSError):
    """The server has answered, and not with the file."""


class _Ranges(io.RawIOBase):
    """The bytes of a file; of a server that ignores ranges, kept as a whole after the first answer."""

    def __init__(self, url: str, size: int) -> None:
        self._url = url
        self._size = size
        self._position = 0
        self._whole: bytes | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = start + offset
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        start, end = self._position, min(self._position + len(buffer), self._size)
        if end <= start:
            return 0
        content = self._bytes(start, end)
        buffer[: len(content)] = content
        self._position = end
        return len(content)

    def _bytes(self, start: int, end: int) -> bytes:
        if self._whole is None:

            def take(answer: HTTPResponse) -> bytes:
                told = answer.headers.get("Content-Range")
                if told is not None and not told.startswith(f"bytes {start}-"):
                    raise OSError(f"the server gives {told} for bytes from {start}")
                return answer.read()

            content = _asked(self._url, take, headers={"Range": f"bytes={start}-{end - 1}"})
            if len(content) == end - start:
                return content
            if len(content) != self._size:
                raise OSError(f"the server gave {len(content)} bytes of {shown_url(self._url)} for {end - start}")
            self._whole = content
        return self._whole[start:end]


def _content(answer: HTTPResponse) -> bytes:
    return answer.read()


def _asked(
    url: str, take: Callable[[HTTPResponse], _Answer], method: str = "GET", headers: dict[str, str] | None = None
) -> _Answer:
    """What is taken of a server's answer, after a few attempts where it fails."""
    request = Request(url, headers={"User-Agent": "penstock", **(headers or {})}, method=method)
    failure = OSError()
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(_FIRST_PAUSE * 2 ** (attempt - 1))
        try:
            with urlopen(request, timeout=_SECONDS) as answer:
                return take(answer)
        except HTTPError as error:
            if error.code in _GONE:
                raise FileNotFoundError(f"there is no file {shown_url(url)}: the server answers {error.code}") from None
            failure = _RefusedError(f"{shown_url(url)} cannot be read: the server answers {error.code} {error.reason}")
            if error.code < 500 and error.code not in _PASSING:
                break
        except (HTTPException, OSError) as error:
            reason = error.reason if isinstance(error, URLError) else error
            failure = OSError(f"{shown_url(url)} cannot be read: {reason or type(error).__name__}")
            if isinstance(reason, TimeoutError):  # it would take as long again
                break
    raise failure
