"""Orders values by the texts that statistics keep of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from penstock.schema.types import Order, Type

_MOMENT = re.compile(r"(-?\d+)-(\d\d)-(\d\d)(.*)")


def bounds_order(type: Type) -> Callable[[str], Any]:
    """What to compare the texts of two bounds by."""
    match type.order:
        case Order.BOOLEAN:
            return lambda text: text in ("1", "true")
        case Order.INTEGER:
            return int
        case Order.FLOAT:
            return float
        case Order.DECIMAL:
            return Decimal
        case Order.DATE | Order.TIMESTAMP:
            return _moment
        case _:
            return lambda text: text.encode()


def _moment(text: str) -> tuple[int, str]:
    """Dates and timestamps as DuckDB prints them; years have four digits or more, and those before 1 count back."""
    match = _MOMENT.fullmatch(text)
    if match is None:  # infinity
        return (-(10**9) if text.startswith("-") else 10**9, "")
    year = int(match[1])
    return (1 - year if "(BC)" in text else year, "".join(match.groups()[1:]))
