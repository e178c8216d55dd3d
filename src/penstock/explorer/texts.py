"""Writes numbers, sizes, times and names for people."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")
_STEP = 1000
# Characters that are not seen, or change how others are seen: controls, ends of lines, directions of writing.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]")


def visible(text: object) -> str:
    """A text with all that is not seen written as Python writes it, so that a name cannot look like another one."""
    return _UNSEEN.sub(lambda match: ascii(match[0])[1:-1], str(text))


def shortened(text: object, letters: int) -> str:
    """The same, cut in its middle where it is too long to be shown whole."""
    shown = visible(text)
    half = (letters - 1) // 2
    return shown if len(shown) <= letters else f"{shown[:half]}…{shown[-half:]}"


def number(value: float | None) -> str:
    """A number with its thousands apart."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}"


def size(count: float | None) -> str:
    """A number of bytes."""
    if count is None:
        return "–"
    amount, unit = float(count), 0
    while abs(amount) >= _STEP and unit + 1 < len(_UNITS):
        amount, unit = amount / _STEP, unit + 1
    if not unit:
        return f"{int(amount)} {'byte' if amount == 1 else 'bytes'}"
    return f"{amount:.3g} {_UNITS[unit]}" if amount < _STEP - 0.5 else f"{amount:.0f} {_UNITS[unit]}"


def moment(time: datetime | None) -> str:
    """A time in UTC, to the second."""
    return "–" if time is None else f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def plural(count: int, one: str, many: str | None = None) -> str:
    """A number and what it counts."""
    return f"{number(count)} {one if count == 1 else many or one + 's'}"


def share(part: float, whole: float) -> str:
    """How much of a whole something is."""
    if not whole:
        return "0 %"
    percent = 100 * part / whole
    return f"{percent:.0f} %" if percent in (0, 100) or 1 <= percent <= 99 else f"{percent:.2g} %"
