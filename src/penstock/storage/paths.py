"""Resolves paths as DuckLake stores them: relative to a parent, or absolute, on a disk or behind a URI."""

from __future__ import annotations

import os
import posixpath
import re
from functools import lru_cache
from urllib.parse import quote, unquote

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_IN_URLS = "%/:?#[]@!$&'()*+,;="  # beside letters and digits; a `%` begins a code
_SEPARATOR = re.compile(r"[/\\]")
_NO_VALUE = re.compile(r"[?\n]")  # which end an address, for DuckDB
_WEB = re.compile(r"(?i)https?://")


def absolute(path: str) -> str:
    """Make a data path independent of the working directory.

    An address of the web is decoded: in paths each letter stands for itself.
    """
    if _WEB.match(path):
        return unquote(web_url(path))
    return path if _SCHEME.match(path) else os.path.abspath(path) + ("/" if path.endswith("/") else "")


def is_local(path: str) -> bool:
    """Whether a path is on this machine's file system."""
    return not _SCHEME.match(path) or path.startswith("file://")


def folder(path: str) -> str:
    """A path with a slash at its end."""
    return path if path.endswith("/") else path + "/"


def normalised(path: str) -> str:
    """One spelling of a path: without `//`, `.` and `..`, and on this machine without links among its folders."""
    if is_local(path):
        directory, slash, name = path.removeprefix("file://").rpartition("/")
        return f"{_real_directory(directory or slash).rstrip('/')}/{name}"
    match = _SCHEME.match(path)
    assert match is not None  # or it would be local
    return match[0] + posixpath.normpath(path[match.end() :])


@lru_cache(maxsize=4096)
def _real_directory(path: str) -> str:
    return os.path.realpath(path)


def resolve(parent: str, path: str, is_relative: bool) -> str:
    """A path of the catalog as an absolute one; `parent` ends in a slash."""
    return parent + path if is_relative else absolute(path)


def to_uri(path: str) -> str:
    """A path as a URI, every special character escaped, so that it can be handed to Hadoop's `Path` without a guess."""
    match = _SCHEME.match(path)
    if match is None:
        return "file://" + quote(path)
    authority, slash, rest = path[match.end() :].partition("/")  # with its port and its `@`
    return match[0] + authority + slash + quote(rest)


def web_url(url: str) -> str:
    """An address of the web as a user may write it, made one that all libraries take: without spaces, in ASCII."""
    scheme, separator, rest = url.partition("://")
    return scheme.lower() + separator + quote(rest, safe=_IN_URLS)


def shown_url(url: str) -> str:
    """An address as messages may show it: without what follows a question mark, which may be a token."""
    return url.partition("?")[0]


def hive_values(path: str) -> dict[str, str | None]:
    """The values of the `name=value` directories of a path, by name, as DuckDB finds them.

    Of equal names, in whatever case, the first counts. A directory with two `=` gives none.
    """
    values: dict[str, tuple[str, str | None]] = {}
    for part in _SEPARATOR.split(path)[:-1]:
        name, _, value = part.partition("=")
        if name and part.count("=") == 1 and not _NO_VALUE.search(part):
            values.setdefault(name.lower(), (name, None if value == HIVE_NULL else unquote(value)))
    return dict(values.values())
