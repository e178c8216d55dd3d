"""The calendar in integers, against those of Python and NumPy, and the zones against Python's."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.predicates.calendar import DAY, HOUR, date_of, date_text, days_of, time_text, timestamp_text
from penstock.predicates.zones import Zone, zone

EPOCH = datetime(1970, 1, 1)


@settings(deadline=None)
@given(st.dates())
def test_dates_of_python(day: date) -> None:
    days = (day - date(1970, 1, 1)).days
    assert days_of(day.year, day.month, day.day) == days
    assert date_of(days) == (day.year, day.month, day.day)
    assert date_text(days) == day.isoformat()


@settings(deadline=None)
@given(st.integers(-2_147_483_648, 2_147_483_647))
def test_every_date_of_spark(days: int) -> None:
    year, month, day = date_of(days)
    assert days_of(year, month, day) == days
    exact = np.datetime64(days, "D")
    assert year == int(exact.astype("datetime64[Y]").astype(int)) + 1970
    assert month == int(exact.astype("datetime64[M]").astype(int)) % 12 + 1
    assert day == (exact - exact.astype("datetime64[M]")).astype(int) + 1


@settings(deadline=None)
@given(st.datetimes())
def test_timestamps(moment: datetime) -> None:
    micros = (moment - EPOCH) // timedelta(microseconds=1)
    text = moment.isoformat(" ")
    assert timestamp_text(micros) == (text.rstrip("0") if moment.microsecond else text)


def test_times() -> None:
    assert time_text(0) == "00:00:00"
    assert time_text(DAY) == "24:00:00"
    assert time_text(1_500_000) == "00:00:01.5"


@settings(deadline=None)
@given(st.datetimes(), st.sampled_from(["America/New_York", "Pacific/Apia", "Asia/Kolkata", "Africa/Casablanca"]))
def test_zones_cover_the_truth(moment: datetime, name: str) -> None:
    if not 2 <= moment.year <= 9998:
        return
    utc = (moment - EPOCH) // timedelta(microseconds=1)
    shown = moment.replace(tzinfo=UTC).astimezone(ZoneInfo(name)).replace(tzinfo=None)
    local = (shown - EPOCH) // timedelta(microseconds=1)
    least, greatest = zone(name).local(utc)
    assert least <= local <= greatest
    least, greatest = zone(name).utc(local)
    assert least <= utc <= greatest


@pytest.mark.parametrize(
    ("name", "hours"),
    [("UTC", 0), ("Z", 0), ("+02:00", 2), ("-8", -8), ("GMT+8", 8), ("UTC-01:00", -1), ("Etc/UTC", 0)],
)
def test_fixed_zones_are_exact(name: str, hours: int) -> None:
    assert zone(name).local(0) == (hours * HOUR, hours * HOUR)


@pytest.mark.parametrize("name", ["", "nowhere", "../etc/passwd", "Mars/Olympus"])
def test_unknown_zones_are_wide(name: str) -> None:
    assert zone(name) == Zone()
    assert zone(name).local(0) == (-26 * HOUR, 26 * HOUR)
