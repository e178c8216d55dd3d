"""Converts between UTC and local time in microseconds, and says how far two time zone databases may disagree."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from penstock.predicates.calendar import HOUR, days_of

_FIXED = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d\d?)(?::?(\d\d))?(?::?(\d\d))?")
_UTC_NAMES = ("UTC", "Z", "GMT", "UT", "Etc/UTC", "Etc/GMT", "Etc/UCT", "UCT", "Zulu", "Etc/Zulu", "Universal")
_UNKNOWN = 26 * HOUR  # no zone was ever further from UTC, nor from what another database says of it
_DISAGREEMENT = 2 * HOUR  # a change of the rules that one database has and the other has not
_AGREED = (days_of(1971) * 24 * HOUR, days_of(2037) * 24 * HOUR)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Zone:
    """A time zone: a fixed offset from UTC, the rules of a region, or (both None) nothing known."""

    offset: int | None = None
    region: ZoneInfo | None = None

    def local(self, utc: int) -> tuple[int, int]:
        """The least and the greatest local time that a UTC time can be shown as."""
        least, greatest = self._offsets(utc)
        return utc + least, utc + greatest

    def utc(self, local: int) -> tuple[int, int]:
        """The least and the greatest UTC time that can be shown as a local time."""
        least, greatest = self._offsets(local)
        return local - greatest, local - least

    def _offsets(self, micros: int) -> tuple[int, int]:
        if self.offset is not None:
            return self.offset, self.offset
        if self.region is None or not _AGREED[0] <= micros < _AGREED[1]:
            return -_UNKNOWN, _UNKNOWN
        around = [self._offset_at(micros + shift) for shift in (-_UNKNOWN, 0, _UNKNOWN)]
        return min(around) - _DISAGREEMENT, max(around) + _DISAGREEMENT

    def _offset_at(self, utc: int) -> int:
        found = (_EPOCH + timedelta(microseconds=utc)).astimezone(self.region).utcoffset()
        return found // timedelta(microseconds=1) if found is not None else 0


@lru_cache
def zone(name: str) -> Zone:
    """The zone of a name that Spark knows; of one with an unknown name nothing is known."""
    if name in _UTC_NAMES:
        return Zone(offset=0)
    fixed = _FIXED.fullmatch(name)
    if fixed:
        hours, minutes, seconds = (int(part or 0) for part in fixed.groups()[1:])
        offset = (hours * 3600 + minutes * 60 + seconds) * 1_000_000
        return Zone(offset=-offset if fixed[1] == "-" else offset)
    try:
        return Zone(region=ZoneInfo(name))
    except (KeyError, OSError, ValueError):
        return Zone()
