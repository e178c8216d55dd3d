"""Finds the files that a folder or a pattern names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase

from penstock.errors import InvalidError
from penstock.storage.filesystems import is_directory, is_file, list_files
from penstock.storage.paths import folder, is_local

_MAGIC = re.compile(r"[*?[]")
_PARQUET = "*.parquet"
_ANY_FOLDERS = "**"


def named_files(path: str) -> list[str]:
    """The file of this path; or else all that end in `.parquet` below the folder of it, or that a pattern matches.

    Below a folder, folders are passed over whose names begin with `_` or `.`, as Spark does it: they are the logs
    and the unfinished work of other programs. In a pattern, `*`, `?` and `[abc]` stand for parts of a name and `**`
    for any folders but linked ones, as in DuckDB. Files are in the order of their names. InvalidError where there is
    none.
    """
    if is_file(path):
        return [path]
    if not _MAGIC.search(path) or is_directory(path):
        root = folder(path)
        found = {file for file in _found(root, [_ANY_FOLDERS, _PARQUET]) if not _is_hidden(file.removeprefix(root))}
    else:
        parts = path.split("/")
        first = next(place for place, part in enumerate(parts) if _MAGIC.search(part))
        found = set(_found("/".join(parts[:first]) + "/", parts[first:]))
    if not found:
        raise InvalidError(
            f"there is no file {path!r}, and no Parquet file by that pattern or in a folder of that name"
        )
    return sorted(found)


def _is_hidden(file: str) -> bool:
    """Whether a file is in a folder that is not meant to be read; one like `_k=1` is of a column with such a name."""
    return any(name.startswith(("_", ".")) and "=" not in name for name in file.split("/")[:-1])


def _found(root: str, pattern: Sequence[str]) -> Iterator[str]:
    if is_local(root):
        with suppress(FileNotFoundError, NotADirectoryError):
            yield from (root + file for file in _on_disk(root.removeprefix("file://"), pattern))
    else:
        yield from (file for file in list_files(root) if _matches(pattern, file.removeprefix(root).split("/")))


def _on_disk(directory: str, pattern: Sequence[str]) -> Iterator[str]:
    """The files below a directory by their paths from there, some twice if the pattern has more than one `**`.

    `**` enters no linked folder, which would give files again under another name, and for ever where links go round.
    """
    part, rest = pattern[0], pattern[1:]
    if part == _ANY_FOLDERS:
        yield from _on_disk(directory, rest or ["*"])
    with os.scandir(directory) as entries:
        for entry in entries:
            if part == _ANY_FOLDERS:
                if entry.is_dir(follow_symlinks=False):
                    yield from _inside(entry, pattern)
            elif fnmatchcase(entry.name, part):
                if rest and entry.is_dir():
                    yield from _inside(entry, rest)
                elif not rest and entry.is_file():
                    yield entry.name


def _inside(folder: os.DirEntry[str], pattern: Sequence[str]) -> Iterator[str]:
    return (f"{folder.name}/{file}" for file in _on_disk(folder.path, pattern))


def _matches(pattern: Sequence[str], names: Sequence[str]) -> bool:
    if not pattern or not names:
        return not names and all(part == _ANY_FOLDERS for part in pattern)
    if pattern[0] == _ANY_FOLDERS:
        return _matches(pattern[1:], names) or _matches(pattern, names[1:])
    return fnmatchcase(names[0], pattern[0]) and _matches(pattern[1:], names[1:])
