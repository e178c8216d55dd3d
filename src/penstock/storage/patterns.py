"""Files that are named by a folder or by a pattern."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from penstock.errors import InvalidError
from penstock.storage.filesystems import is_file, list_files
from penstock.storage.paths import folder

_MAGIC = re.compile(r"[*?[]")
_PARQUET = "*.parquet"
_ANY_FOLDERS = "**"


def named_files(path: str) -> list[str]:
    """The file of this path; or else all that a pattern matches, or that end in `.parquet` below a folder.

    In a pattern, `*`, `?` and `[abc]` stand for parts of a name and `**` for any folders, as in DuckDB. Files are in
    the order of their names. InvalidError where there is none.
    """
    if is_file(path):
        return [path]
    pattern = path if _MAGIC.search(path) else f"{folder(path)}{_ANY_FOLDERS}/{_PARQUET}"
    parts = pattern.split("/")
    first = next(place for place, part in enumerate(parts) if _MAGIC.search(part))
    root = "/".join(parts[:first]) + "/"
    found = [file for file in list_files(root) if _matches(parts[first:], file.removeprefix(root).split("/"))]
    if not found:
        raise InvalidError(
            f"there is no file {path!r}, and no Parquet file by that pattern or in a folder of that name"
        )
    return sorted(found)


def _matches(pattern: Sequence[str], names: Sequence[str]) -> bool:
    if not pattern or not names:
        return not names and all(part == _ANY_FOLDERS for part in pattern)
    if pattern[0] == _ANY_FOLDERS:
        return _matches(pattern[1:], names) or _matches(pattern, names[1:])
    return fnmatchcase(names[0], pattern[0]) and _matches(pattern[1:], names[1:])
