"""Makes texts that people read of names and numbers that nobody has looked at."""

from __future__ import annotations

_UNITS = ("bytes", "KB", "MB", "GB", "TB", "PB")


def one_line(text: str) -> str:
    """A text as one line that can be printed: names may hold line ends, and what moves a terminal's cursor."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in " ".join(text.split())
    )


def size_text(size: float) -> str:
    """A number of bytes, in the unit that leaves few digits."""
    power = 0
    while size >= 1000 and power < len(_UNITS) - 1:
        size, power = size / 1000, power + 1
    return f"{size:,.0f} {_UNITS[power]}" if power == 0 else f"{size:,.1f} {_UNITS[power]}"
