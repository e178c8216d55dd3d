"""Writes numbers, sizes, times and names for people."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
# What is not seen, or changes how other things are seen: controls, ends of lines, directions of writing; and halves of
# characters, which no terminal can be sent.
UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


def visible(text: object) -> str:
    """A text with all that is not seen as Python writes it: it can neither command a terminal nor feign another one."""
    return UNSEEN.sub(lambda match: ascii(match[0])[1:-1], str(text))


def number(value: object) -> str:
    """A number with its thousands apart."""
    return f"{value:,}" if isinstance(value, int) else visible(value)


def plural(count: int, thing: str) -> str:
    """A number and what it counts."""
    return f"{number(count)} {thing}{'' if count == 1 else 's'}"


def size(count: object) -> str:
    """A number of bytes."""
    if not isinstance(count, int):
        return visible(count)
    amount, unit = float(count), 0
    while amount >= 999.5 and unit + 1 < len(_UNITS):
        amount, unit = amount / 1000, unit + 1
    return f"{count} B" if unit == 0 else f"{amount:.3g} {_UNITS[unit]}"


def moment(time: object) -> str:
    """A time in UTC, to the second."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S}" if isinstance(time, datetime) else visible(time)


def listed(values: object) -> str:
    """Several things in one line."""
    return ", ".join(map(visible, values)) if isinstance(values, list | tuple) else visible(values)


def one_line(text: str) -> str:
    """A message in one line, whatever is in it."""
    return visible(" ".join(text.split()))
