"""Reads the versions and times that users ask for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from pyspark.sql import SparkSession

from penstock.errors import InvalidError, NotFoundError

Age = str | datetime | timedelta  # a moment, or how long ago it was


def instant(spark: SparkSession, time: str | datetime) -> datetime:
    """Parse a time; one without a zone is in the Spark session's."""
    try:
        moment = datetime.fromisoformat(time) if isinstance(time, str) else time
    except ValueError:
        raise NotFoundError(f"{time!r} is not a timestamp; write it as 2026-04-10 12:00:00") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo(session_time_zone(spark)))


def moment(spark: SparkSession, older_than: Age) -> datetime:
    """The moment of a time, or of an age before now. Raises InvalidError where it is neither."""
    if isinstance(older_than, timedelta):
        try:
            return datetime.now(UTC) - older_than
        except OverflowError:
            raise InvalidError(f"older_than={older_than!r} is before all times that there are") from None
    if not isinstance(older_than, str | datetime):
        raise InvalidError(
            f"older_than={older_than!r} is neither a time nor an age: give a text, datetime or timedelta"
        )
    try:
        return instant(spark, older_than)
    except NotFoundError as error:
        raise InvalidError(f"older_than={error}") from None


def session_time_zone(spark: SparkSession) -> str:
    """The name of the session's time zone."""
    return spark.conf.get("spark.sql.session.timeZone") or "UTC"


def chosen_version(
    spark: SparkSession,
    version: int | None,
    timestamp: str | datetime | None,
    version_at: Callable[[datetime], int],
) -> int | None:
    """The version that is asked for by number or by time; None for the newest."""
    if timestamp is None:
        return version
    if version is not None:
        raise InvalidError("give version or timestamp, not both")
    return version_at(instant(spark, timestamp))
