"""Tells the moment before which things are old, from intervals as options hold them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import duckdb

from penstock.errors import InvalidError
from penstock.storage.duckdb_files import duckdb_cursor

DELETE_OLDER_THAN = "2 days"  # where the option delete_older_than is not set
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)  # nothing of a lake is older; years before 1000 do not sort as text


def option_cutoff(option: str, interval: str) -> datetime:
    """The moment that an option of this value means. Raises InvalidError, which names both, where it means none."""
    try:
        return before_now(interval)
    except InvalidError as error:
        raise InvalidError(f"option {option!r} has the value {interval!r}, which {error}; set it again") from None


def before_now(interval: str) -> datetime:
    """The moment so long ago, as DuckDB reads intervals; nothing is old enough for those that reach before all times.

    Raises InvalidError, which goes on from the interval, where it is not understood, or is of a time to come: all that
    is new would be old then.
    """
    now = datetime.now(UTC)
    with duckdb_cursor() as connection:
        try:
            sql = "SELECT CAST(? AS INTERVAL) < INTERVAL 0 DAYS"
            [[is_negative]] = connection.execute(sql, [interval]).fetchall()
        except duckdb.Error:
            raise InvalidError("is not understood: it takes an interval, like '7 days'") from None
        try:
            sql = "SELECT epoch_us(CAST(? AS TIMESTAMPTZ) - CAST(? AS INTERVAL))"
            [[micros]] = connection.execute(sql, [now, interval]).fetchall()
            moment = max(EARLIEST, EARLIEST + timedelta(microseconds=micros))
        except (duckdb.Error, OverflowError):
            moment = EARLIEST
    if is_negative or moment > now:
        raise InvalidError("is the age of what is yet to come; write it without minus and 'ago', like '7 days'")
    return moment
