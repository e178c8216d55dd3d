"""Counts days in the proleptic Gregorian calendar, in integers, for years far outside those of `datetime`."""

from __future__ import annotations

DAY = 86_400_000_000  # microseconds
HOUR = 3_600_000_000
_ERA = 146_097  # days in 400 years
_EPOCH = 719_468  # days from 0000-03-01 to 1970-01-01


def days_of(year: int, month: int = 1, day: int = 1) -> int:
    """Days from 1970-01-01 to a date; year 0 is 1 BC."""
    shifted = year - (month <= 2)
    era, of_era = divmod(shifted, 400)
    of_year = (153 * ((month - 3) % 12) + 2) // 5 + day - 1
    return era * _ERA + of_era * 365 + of_era // 4 - of_era // 100 + of_year - _EPOCH


def date_of(days: int) -> tuple[int, int, int]:
    """Year, month and day of a number of days since 1970-01-01."""
    era, of_era = divmod(days + _EPOCH, _ERA)
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    shifted = (5 * of_year + 2) // 153
    month = (shifted + 2) % 12 + 1
    return year + era * 400 + (month <= 2), month, of_year - (153 * shifted + 2) // 5 + 1


def date_text(days: int) -> str:
    """The text of a date as DuckDB writes it: ISO's, with years before 1 as those before Christ."""
    year, month, day = date_of(days)
    return f"{year:04}-{month:02}-{day:02}" if year > 0 else f"{1 - year:04}-{month:02}-{day:02} (BC)"


def time_text(ticks: int, second: int = 1_000_000) -> str:
    """ISO text of a time of day, without trailing zeros in its fraction, as DuckDB writes it."""
    seconds, fraction = divmod(ticks, second)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{str(second + fraction)[1:].rstrip('0')}" if fraction else text


def timestamp_text(ticks: int, second: int = 1_000_000) -> str:
    """The text of a timestamp, as DuckDB writes it."""
    days, of_day = divmod(ticks, 86_400 * second)
    return f"{date_text(days)} {time_text(of_day, second)}"
