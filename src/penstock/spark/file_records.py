"""Encodes what a planner tells of files for the index of a scan, in records of text, and reads such records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penstock.storage.azure import hadoop_path
from penstock.storage.filesystems import file_size
from penstock.storage.paths import to_uri
from penstock.storage.stores import store_kind

_RECORD, _FIELD, _NULL = "\x1e", "\x1f", "\x00"
# A backslash, and the character moved by 64, for what has a meaning in records: see CatalogFileIndex.
_ESCAPES = {ord(special): "\\" + chr(ord(special) + 64) for special in (_RECORD, _FIELD, _NULL, "\\")}
_ESCAPED = {escape: chr(special) for special, escape in _ESCAPES.items()}

FileRecord = tuple[str, int, Sequence[object]]  # path, size, constants


def file_records(files: Iterable[FileRecord]) -> str:
    """Encode files as the index reads them. Of a file whose size is 0 it is asked for.

    After the constants may stand what `deletes_text` gives.

    Spark shares a file out among tasks by its size, and reads nothing of what would lie behind it.
    """
    return _RECORD.join(
        _FIELD.join(
            (
                file_uri(path),
                str(known_size(path, size)),
                *(_NULL if value is None else _escaped(value) for value in constants),
            )
        )
        for path, size, constants in files
    )


def read_records(text: str) -> list[tuple[str, int, list[str | None]]]:
    """The address, the size and the constants of each file of encoded records; the constants are texts."""
    records = [record.split(_FIELD) for record in text.split(_RECORD)] if text else []
    return [
        (uri, int(size), [None if value == _NULL else _unescaped(value) for value in constants])
        for uri, size, *constants in records
    ]


def known_values(values: Iterable[str | None]) -> str:
    """Encode what is known of aggregates, as the index reads it."""
    return _FIELD.join(_NULL if value is None else value for value in values)


def file_uri(path: str) -> str:
    """The address of a file as Hadoop wants it."""
    return to_uri(hadoop_path(path) if store_kind(path) == "azure" else path)


def known_size(path: str, size: int) -> int:
    """The size of a file, which is asked for where it is 0."""
    if size > 0:
        return size
    try:
        return file_size(path)
    except FileNotFoundError:
        return 1  # for Spark's reader to say so, or to ignore it as its user wants


def _escaped(value: object) -> str:
    return value.translate(_ESCAPES) if isinstance(value, str) else str(value)


def _unescaped(value: str) -> str:
    first, *others = value.split("\\")
    return first + "".join(_ESCAPED["\\" + other[0]] + other[1:] for other in others)
