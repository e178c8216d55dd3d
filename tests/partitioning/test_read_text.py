"""Values read back from their texts, and what is no text of a value."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partitioning.test_values import stored_values
from penstock.partitioning.texts import read_text, text
from penstock.predicates.calendar import DAY, days_of
from penstock.schema.types import Order, parse_type
from support.effort import tries
from support.predicate_samples import POOLS

TYPES = sorted({*POOLS, "decimal(5,5)", "decimal(38,0)", "decimal(38,38)"} - {"blob"})


@settings(deadline=None, max_examples=tries(100, 300))
@given(st.data(), st.sampled_from(TYPES))
def test_texts_are_read_back(data: st.DataObject, name: str) -> None:
    type = parse_type(name)
    value = data.draw(stored_values(type))
    written = text(value, type)
    if type.order in (Order.DATE, Order.TIMESTAMP) and not re.match(r"[0-9]{4}-[^(]*$|-?infinity", written):
        with pytest.raises(ValueError, match="is no"):
            read_text(written, type)
        return
    read = read_text(written, type)
    assert read == value or (math.isnan(read) and math.isnan(value))


NOON = days_of(2024, 2, 29) * DAY + DAY // 2


@pytest.mark.parametrize(
    ("name", "written", "value"),
    [
        ("boolean", "True", True),
        ("int32", "007", 7),
        ("decimal(4,2)", ".5", Decimal("0.5")),
        ("decimal(4,2)", "-1.500", Decimal("-1.50")),
        ("date", "infinity", 2**31 - 1),
        ("timestamp", "2024-02-29T12:00:00", NOON),
        ("timestamp", "2024-02-29 12:00:00.000001", NOON + 1),
        ("timestamp", "2024-02-29 12:00:00.100000000", NOON + 100_000),
        ("timestamptz", "2024-02-29T12:00:00Z", NOON),
        ("timestamptz", "2024-02-29 12:00:00.5+00:00", NOON + 500_000),
        ("timestamptz", "2024-02-29 12:00:00+00", NOON),
        ("timestamptz", "2024-02-29 12:00:00", NOON),
        ("timestamp_ns", "1969-12-31T23:59:59.999999999", -1),
        ("timestamp", "-infinity", -(2**63) + 1),
        ("time", "24:00:00", DAY),
        ("uuid", "550E8400-E29B-41D4-A716-446655440000", "550e8400-e29b-41d4-a716-446655440000"),
        ("varchar", "__HIVE_DEFAULT_PARTITION__", "__HIVE_DEFAULT_PARTITION__"),
    ],
)
def test_other_spellings(name: str, written: str, value: Any) -> None:
    assert read_text(written, parse_type(name)) == value


@pytest.mark.parametrize(
    ("name", "written"),
    [
        *[(name, "") for name in TYPES if name not in ("varchar", "json")],
        *[("int32", one) for one in ("1_000", " 1", "1.0", "٤", "2147483648", "9" * 5000, "0x1", "true")],
        *[("uint8", one) for one in ("-1", "256")],
        *[("float64", one) for one in ("1_0", "1e999", "٤", "infinite", "0x1p3")],
        ("float32", "1e39"),
        *[("decimal(4,2)", one) for one in ("100.00", "0.001", "1e1", "nan", "Infinity", ".", "1_0")],
        *[
            ("date", one)
            for one in ("2023-02-29", "2024-2-9", "0000-01-01", "10000-01-01", "20240229", "0044-03-15 (BC)")
        ],
        *[("time", one) for one in ("24:00:01", "12:60:00", "12:00", "12:00:00.0000001", "-1:00:00")],
        *[("timestamp", one) for one in ("2024-02-29", "2024-02-29 24:00:00", "2024-02-29  12:00:00", "1709208000")],
        *[("timestamptz", one) for one in ("2024-02-29 12:00:00+01", "2024-02-29 12:00:00 UTC")],
        ("timestamp_s", "2024-02-29 12:00:00.5"),
        ("timestamp_ms", "2024-02-29 12:00:00.0001"),
        ("timestamp_ns", "2600-01-01 00:00:00"),
        ("uuid", "550e8400"),
        *[(name, "a") for name in ("blob", "interval", "list", "struct", "int128")],
    ],
)
def test_what_is_no_such_value(name: str, written: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        read_text(written, parse_type(name))
