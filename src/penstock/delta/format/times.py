"""Converts times to the milliseconds since 1970 that Delta's log counts in, and back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime.fromtimestamp(0, UTC)


def from_milliseconds(milliseconds: int) -> datetime:
    """Returns the time in UTC that a number of the log stands for."""
    return _EPOCH + timedelta(milliseconds=milliseconds)


def to_milliseconds(time: datetime) -> int:
    """Returns the number that stands for a time in the log."""
    return (time - _EPOCH) // timedelta(milliseconds=1)


def now_milliseconds() -> int:
    """Returns the present time as the log writes it."""
    return to_milliseconds(datetime.now(UTC))
