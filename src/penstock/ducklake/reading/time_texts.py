"""Writes dates and timestamps as text that Spark reads in every year, where Python's own end with the year 9999."""

from __future__ import annotations

from penstock.predicates.calendar import DAY, date_of, time_text


def spark_date(days: int) -> str:
    """Spark's text of a day since 1970; the year 0 is 1 BC, and DuckDB's infinities are days like others."""
    year, month, day = date_of(days)
    return f"{'-' * (year < 0)}{abs(year):04}-{month:02}-{day:02}"


def spark_timestamp(microseconds: int) -> str:
    """Spark's text of a moment since 1970, without a zone."""
    days, of_day = divmod(microseconds, DAY)
    return f"{spark_date(days)} {time_text(of_day)}"
