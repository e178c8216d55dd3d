"""The moments that ages mean, as DuckDB reads them: those that nobody can mean are refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from penstock.ducklake.catalog.ages import EARLIEST, before_now, option_cutoff
from penstock.errors import InvalidError


@pytest.mark.parametrize(
    ("text", "age"),
    [("7 days", timedelta(days=7)), ("1 day 02:03:04", timedelta(days=1, seconds=7384)), ("0 seconds", timedelta())],
)
def test_ages(text: str, age: timedelta) -> None:
    assert abs(datetime.now(UTC) - age - before_now(text)) < timedelta(minutes=1)


@pytest.mark.parametrize("text", ["100 years", "2000 years", "5000 years", "99999 years", "300000 years"])
def test_nothing_is_older_than_all_times(text: str) -> None:
    assert before_now(text) == EARLIEST


@pytest.mark.parametrize("text", ["-10 days", "7 days ago", "1 day -25 hours", "1 month -40 days", "-300000 years"])
def test_nothing_is_old_that_is_yet_to_come(text: str) -> None:
    with pytest.raises(InvalidError, match="yet to come"):
        before_now(text)


@pytest.mark.parametrize("text", ["garbage", "", " ", "999999999999999999 years"])
def test_the_option_and_its_value_are_named(text: str) -> None:
    with pytest.raises(InvalidError) as error:
        option_cutoff("delete_older_than", text)
    assert f"option 'delete_older_than' has the value {text!r}, which is not understood" in str(error.value)
