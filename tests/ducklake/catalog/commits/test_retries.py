"""How long a commit waits before it is tried again."""

from __future__ import annotations

import math
from typing import Any

import pytest

from penstock.ducklake.catalog.commits.commit import RetryPolicy
from penstock.errors import InvalidError


@pytest.mark.parametrize(
    "given", [{"retry_backoff": math.nan}, {"retry_backoff": math.inf}, {"max_retry_count": -1}, {"retry_wait_ms": -5}]
)
def test_what_makes_no_sense(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidError, match=f"{next(iter(given))} cannot be"):
        RetryPolicy(**given)


def test_no_wait_is_longer_than_a_day() -> None:
    assert list(RetryPolicy(3, 100, 1.5).waits()) == pytest.approx([0.1, 0.15, 0.225])
    assert max(RetryPolicy(5, 100, 1e300).waits()) == 24 * 60 * 60
