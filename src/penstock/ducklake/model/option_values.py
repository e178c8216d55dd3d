"""Checks the values that options take: what `set_option` accepts, and the text that the catalog stores for it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from penstock.ducklake.model.options import OPTIONS
from penstock.errors import InvalidError

UNLIMITED = 2**64 - 1
COMPRESSIONS = ("uncompressed", "snappy", "gzip", "zstd", "brotli", "lz4", "lz4_raw")
_TRUE, _FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")
_SIZE = re.compile(r"\s*(-?\d+(?:\.\d*)?|-?\.\d+)\s*([a-z]*)\s*", re.IGNORECASE)
_UNITS = {"b": 1, "byte": 1, "bytes": 1}
for _power, _letter in enumerate("kmgt", start=1):
    _UNITS |= {_letter: 1000**_power, f"{_letter}b": 1000**_power, f"{_letter}ib": 1024**_power}
_INTERVAL = re.compile(
    r"\s*(?:\+?(?:\d{1,18}(?!\d)\.?\d*|\.\d+)\s*"
    r"(?:(?:microsecond|millisecond|second|minute|hour|day|week|month|quarter|year|decade|century|centurie|millennium)s?"
    r"|us|usecs?|ms|msecs?|s|secs?|m|mins?|h|hrs?|hours?|d|w|mons?|mon|y|yrs?|decs?|cent|c|mil|mils|millennia)?\s*)*",
    re.IGNORECASE,
)


def validate_option(name: str, value: object) -> str:
    """The text to store for a value of an option; InvalidError says what the option takes instead."""
    if name not in OPTIONS:
        raise InvalidError(f"there is no option {name!r}; the options are {', '.join(sorted(_CHECKS))}")
    if name not in _CHECKS:
        raise InvalidError(f"option {name!r} is set when the lake is created and cannot be changed")
    text = str(value)
    stored = None if value is None else _CHECKS[name](text)
    if stored is None:
        raise InvalidError(f"option {name!r} cannot be {text!r}; it takes {_EXPECTED[_CHECKS[name]]}")
    return stored


def parse_size(text: str) -> int | None:
    """Bytes of a text such as `512MB`, `1GiB` or, as the catalog stores it, `10000000`; None if it is not a size."""
    if text.strip().lower() == "none":
        return UNLIMITED
    match = _SIZE.fullmatch(text)
    if match is None or (match[2] and match[2].lower() not in _UNITS):
        return None
    amount = float(match[1])
    if amount < 0:
        return UNLIMITED
    return int(match[1]) if match[1].isdigit() and not match[2] else int(amount * _UNITS[match[2].lower() or "b"])


def parse_boolean(text: str) -> bool | None:
    """The truth value of a text as DuckDB casts it; None if it is none."""
    lowered = text.strip().lower()
    return True if lowered in _TRUE else False if lowered in _FALSE else None


def parse_threshold(text: str | None) -> float:
    """The value that the option `rewrite_delete_threshold` has; nothing means 0. Raises InvalidError for no number."""
    try:
        threshold = float(text or 0)
    except ValueError:
        threshold = math.nan
    if not math.isfinite(threshold):
        raise InvalidError(
            f"option 'rewrite_delete_threshold' has the value {text!r}, which is not understood; set it again, to a "
            "number from 0 to 1"
        )
    return threshold


def _boolean(text: str) -> str | None:
    value = parse_boolean(text)
    return None if value is None else str(value).lower()


def _size(text: str) -> str | None:
    """A bare number is refused: it could be meant in megabytes."""
    size = None if re.fullmatch(r"\s*[\d.]+\s*", text) else parse_size(text)
    return None if size is None else str(size)


def _count(text: str) -> str | None:
    try:
        value = int(text) if text.strip().isdigit() else float(text)
    except ValueError:
        return None
    return str(int(value)) if math.isfinite(value) and value == int(value) and 0 <= value <= UNLIMITED else None


def _positive(text: str) -> str | None:
    count = _count(text)
    return None if count == "0" else count


def _compression(text: str) -> str | None:
    return text.lower() if text.lower() in COMPRESSIONS else None


def _version(text: str) -> str | None:
    return {"1": "V1", "2": "V2"}.get(text.strip().lower().removeprefix("v"))


def _fraction(text: str) -> str | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return f"{value:.6f}" if 0 <= value <= 1 else None


def _interval(text: str) -> str | None:
    return text if _INTERVAL.fullmatch(text) else None


_CHECKS: dict[str, Callable[[str], str | None]] = {
    "auto_compact": _boolean,
    "data_inlining_row_limit": _count,
    "delete_older_than": _interval,
    "expire_older_than": _interval,
    "hive_file_pattern": _boolean,
    "parquet_compression": _compression,
    "parquet_compression_level": _count,
    "parquet_row_group_size": _positive,
    "parquet_row_group_size_bytes": _size,
    "parquet_version": _version,
    "per_thread_output": _boolean,
    "require_commit_message": _boolean,
    "rewrite_delete_threshold": _fraction,
    "sort_on_insert": _boolean,
    "target_file_size": _size,
    "write_deletion_vectors": _boolean,
}
_EXPECTED: dict[Callable[[str], str | None], str] = {
    _boolean: "true or false",
    _size: "a size with its unit, like '512MB' or '1GiB'",
    _count: "a whole number from 0",
    _positive: "a whole number from 1",
    _compression: f"one of {', '.join(COMPRESSIONS)}",
    _version: "1 or 2",
    _fraction: "a number from 0 to 1",
    _interval: "an interval without minus, like '7 days'",
}
