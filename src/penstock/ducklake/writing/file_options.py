"""Translates DuckLake's options for data files into those of the Parquet writer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from penstock.ducklake.model.option_values import COMPRESSIONS, parse_boolean, parse_size
from penstock.ducklake.model.options import OPTIONS
from penstock.errors import InvalidError
from penstock.storage.parquet import FileOptions

_T = TypeVar("_T")
_LEVELS = {"zstd": range(1, 23), "gzip": range(1, 10), "brotli": range(12)}


def file_options(option: Callable[[str], str | None]) -> FileOptions:
    """Translate options by DuckLake's names, in the texts that the catalog stores or that `set_option` takes."""

    def text(name: str) -> str | None:
        value = option(name)
        return OPTIONS[name].default if value is None else value

    compression = _known(text, "parquet_compression", lambda value: value.lower()) or "snappy"
    if compression not in COMPRESSIONS:
        raise InvalidError(f"option 'parquet_compression' is {compression!r}: set it to one of {COMPRESSIONS}")
    level = _known(text, "parquet_compression_level", int)
    row_group_bytes = _known(text, "parquet_row_group_size_bytes", parse_size)
    return FileOptions(
        compression=compression,
        compression_level=_level(compression, level),
        version=_known(text, "parquet_version", lambda value: int(value.lower().removeprefix("v"))) or 1,
        row_group_size=max(1, _known(text, "parquet_row_group_size", int) or 122_880),
        row_group_bytes=row_group_bytes,
        target_file_size=_known(text, "target_file_size", parse_size) or 512_000_000,
        hive_file_pattern=_known(text, "hive_file_pattern", parse_boolean) is not False,
    )


def _known(text: Callable[[str], str | None], name: str, parse: Callable[[str], _T | None]) -> _T | None:
    value = text(name)
    if value is None:
        return None
    try:
        parsed = parse(value)
    except ValueError:
        parsed = None
    if parsed is None:
        raise InvalidError(f"option {name!r} has the value {value!r}, which is not understood; set it again")
    return parsed


def _level(compression: str, level: int | None) -> int | None:
    levels = _LEVELS.get(compression)
    if levels is None or level is None:
        return None
    if level not in levels:
        raise InvalidError(
            f"option 'parquet_compression_level' is {level}: {compression} takes {levels.start} to {levels.stop - 1}"
        )
    return level
