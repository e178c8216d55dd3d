"""Tells the moment before which things are old, from intervals as options hold them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from penstock.storage.duckdb_files import duckdb_cursor

DELETE_OLDER_THAN = "2 days"  # where the option delete_older_than is not set


def before_now(interval: str) -> datetime:
    """The moment so long ago, as DuckDB reads intervals."""
    with duckdb_cursor() as connection:
        sql = "SELECT epoch_us(CAST(? AS TIMESTAMPTZ) - CAST(? AS INTERVAL))"
        [[micros]] = connection.execute(sql, [datetime.now(UTC), interval]).fetchall()
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
