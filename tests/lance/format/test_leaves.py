"""Leaves by their manifest entries and names, of ours and of other writers."""

from __future__ import annotations

import pytest

from penstock.lance.format.leaves import Leaf, PartitionValues, leaf_from_entry, leaf_object_id, new_leaf_entries
from penstock.lance.format.manifest import READ_VERSION, ManifestEntry
from support.lance_definitions import (
    defined,
    named_leaf,
)

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


EVENTS = ["country", "bucket(4, city)", "year(ts)", "month(ts)", "truncate(2, city)"]


@pytest.mark.parametrize(
    ("values", "name"),
    [
        (("US", "3", "2025", "03", "Os"), "country=US$city_bucket=3$ts_year=2025$ts_month=03$city_trunc=Os"),
        (
            ("a=b$c/d%.", None, "9999", "12", "😀 é"),
            f"country=a%3Db%24c%2Fd%25%2E$city_bucket={HIVE_NULL}$ts_year=9999$ts_month=12$city_trunc=😀 é",
        ),
        (
            (HIVE_NULL, "0", None, None, ""),
            f"country=%5F{HIVE_NULL[1:]}$city_bucket=0$ts_year={HIVE_NULL}$ts_month={HIVE_NULL}$city_trunc=",
        ),
    ],
)
def test_leaves_of_ours(values: PartitionValues, name: str) -> None:
    fields = defined(*EVENTS).fields
    *above, entry = new_leaf_entries("events", fields, values, "place")
    assert entry.object_id == leaf_object_id("events", fields, values) == f"events${name}"
    assert [one.kind for one in above] == ["namespace"] * 4
    assert [one.object_id for one in above] == [
        "$".join(entry.object_id.split("$")[: depth + 1]) for depth in range(1, 5)
    ]
    assert leaf_from_entry(entry, "events", fields) == Leaf(entry.object_id, "place", values, None)
    shown = entry.with_properties({READ_VERSION: "7"})
    assert leaf_from_entry(shown, "events", fields) == Leaf(entry.object_id, "place", values, 7)
    bare = ManifestEntry(entry.object_id, "table", "place")
    assert leaf_from_entry(bare, "events", fields) == Leaf(entry.object_id, "place", values, None, is_own=False)


@pytest.mark.parametrize(
    ("levels", "values"),
    [
        (("country=US", "city=3", "ts_year=2025", "ts_month=3", "city=Os"), ("US", "3", "2025", "3", "Os")),
        (
            ("country=%C3%A9%2f", "city_bucket=3", "ts=1969", "ts_month=1", "city_trunc=a=b"),
            ("é/", "3", "1969", "1", "a=b"),
        ),
        (("country=US", "city_bucket=3", "ts_year=2025", "ts_month=03"), None),
        (("country=US", "city_bucket=3", "ts_year=2025", "ts_month=03", "city_trunc=Os", "x=1"), None),
        (("US", "city_bucket=3", "ts_year=2025", "ts_month=03", "city_trunc=Os"), None),
        (("country=US", "town_bucket=3", "ts_year=2025", "ts_month=03", "city_trunc=Os"), None),
        (("country=%FF", "city_bucket=3", "ts_year=2025", "ts_month=03", "city_trunc=Os"), None),
        (("city_bucket=3", "country=US", "ts_year=2025", "ts_month=03", "city_trunc=Os"), None),
    ],
)
def test_leaves_of_others(levels: tuple[str, ...], values: PartitionValues | None) -> None:
    assert named_leaf(defined(*EVENTS), *levels).values == values


def test_recorded_values_are_those_of_the_leaf_if_they_can_be() -> None:
    fields = defined("country", "city").fields
    for text, values in [
        ('["a", null]', ("a", None)),
        ('["a"]', ("US", "Oslo")),
        ('["a", 3]', ("US", "Oslo")),
        ("{", ("US", "Oslo")),
        ('"ab"', ("US", "Oslo")),
    ]:
        entry = ManifestEntry("events$country=US$city=Oslo", "table", "place", {"lance.partitioning.values": text})
        assert leaf_from_entry(entry, "events", fields).values == values
