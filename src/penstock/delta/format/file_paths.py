"""Builds the paths of data files, and encodes them as Delta's log does."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b
from urllib.parse import quote, unquote

from penstock.storage.paths import HIVE_NULL

_SPECIAL = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\\{\[\]^]")  # what Spark escapes in the names of directories
_LONGEST_NAME = 250  # bytes; file systems take 255
_HALF_ESCAPE = re.compile(r"%[0-9A-F]?$")
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/{1,2}|/")


def partition_directory(names: Iterable[str], values: Iterable[str | None]) -> str:
    """Returns the directory of a file by its partition columns and the texts of their values.

    They are escaped as Spark does it: `region=EU/ts=2026-01-02 03%3A04%3A05/`. A name that file systems would not take
    is cut, and ends in a hash.
    """
    pairs = zip(names, values, strict=True)
    return "".join(_short(f"{_escaped(name)}={_directory_value(value)}") + "/" for name, value in pairs)


def log_path(path: str) -> str:
    """Encodes the path of a file, relative to the table or absolute, as the log has it."""
    absolute = _ABSOLUTE.match(path)
    start = absolute.end() if absolute else 0
    return path[:start] + quote(path[start:], safe="/=")


def file_path(path: str) -> str:
    """Decodes the path of a file in the log."""
    decoded = unquote(path)
    return decoded.removeprefix("file:") if path.startswith("file:/") and not path.startswith("file://") else decoded


def _directory_value(value: str | None) -> str:
    if not value:
        return HIVE_NULL
    return f"%{ord(value[0]):02X}{value[1:]}" if value == HIVE_NULL else _escaped(value)


def _short(name: str) -> str:
    encoded = name.encode()
    if len(encoded) <= _LONGEST_NAME:
        return name
    digest = blake2b(encoded, digest_size=16).hexdigest()
    start = encoded[: _LONGEST_NAME - len(digest) - 1].decode(errors="ignore")  # half a character
    return f"{_HALF_ESCAPE.sub('', start)}-{digest}"


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda match: f"%{ord(match[0]):02X}", text)
