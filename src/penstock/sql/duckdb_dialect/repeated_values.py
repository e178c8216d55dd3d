"""Lets a text of SQL use a value several times, and Spark compute it once."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TypeVar

_SHORT = 40  # columns and constants: nothing is gained by a name for them
_numbers = count()
Written = TypeVar("Written", str, str | None)


def fresh_name() -> str:
    """A name that no lambda around it has."""
    return f"v{next(_numbers)}"


def once(value: str, write: Callable[[str], Written]) -> Written:
    """What `write` makes of a value, or of a name for it where the value is long: texts would grow without end."""
    if len(value) <= _SHORT:
        return write(value)
    name = fresh_name()
    made = write(name)
    return made if made is None or made == name else f"transform(array({value}), {name} -> {made})[0]"
