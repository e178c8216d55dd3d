"""Definitions of partitioned namespaces in their properties, of ours and of other writers."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from penstock.errors import InvalidError, NotFoundError, UnsupportedError
from penstock.lance.format.definition import (
    read_definition,
)
from penstock.lance.format.field_ids import field_id
from penstock.lance.format.leaves import leaf_object_id
from penstock.lance.format.partition_fields import PartitionField
from penstock.lance.writing.schema_evolution import add_column, drop_column, rename_column
from penstock.partitioning import (
    MURMUR3,
    Bucket,
    Day,
    Hash,
    Hour,
    Identity,
    Month,
    Transform,
    Truncate,
    Year,
)
from support.lance_definitions import (
    IDS,
    SCHEMA,
    defined,
    named_leaf,
    partition_columns,
    reread,
)

FUNCTIONS: dict[str, tuple[list[str], Transform, str, dict[str, str]]] = {
    "country": (["country"], Identity(), "identity", {}),
    "bucket(4, city)": (["city"], Bucket(4, MURMUR3), "bucket", {"num-buckets": "4", "hash": "murmur3_x86_32"}),
    "truncate(3, city)": (["city"], Truncate(3), "truncate", {"width": "3"}),
    "truncate(10, price)": (["price"], Truncate(10), "truncate", {"width": "10", "decimals": "by-value"}),
    "hash(id)": (["id"], Hash(), "hash", {"hash": "murmur3_x86_32"}),
    "hash(country, CITY)": (["country", "city"], Hash(), "hash", {"hash": "murmur3_x86_32"}),
    "year(ts)": (["ts"], Year(), "year", {}),
    "month(ts)": (["ts"], Month(), "month", {}),
    "day(ts)": (["ts"], Day(), "day", {}),
    "hour(ts)": (["ts"], Hour(), "hour", {}),
    '"a/b = $%"': (["a/b = $%"], Identity(), "identity", {}),
}


@pytest.mark.parametrize("text", FUNCTIONS)
def test_properties_are_those_of_the_specification(text: str) -> None:
    names, transform, function, properties = FUNCTIONS[text]
    ids = [IDS[name] for name in names]
    definition = defined(text)
    written = definition.properties()
    assert definition.fields == (PartitionField("_".join(names), tuple(ids), transform),)
    assert set(written) == {
        "lance.partitioning.enabled",
        "lance.partitioning.partition-columns",
        "lance.partitioning.schema",
    }
    assert written["lance.partitioning.enabled"] == "true"
    assert json.loads(written["lance.partitioning.partition-columns"]) == [
        {
            **({"name": names[0], "source-id": ids[0]} if len(ids) == 1 else {"source-ids": ids}),
            "function": function,
            "properties": properties,
        }
    ]
    assert [item["name"] for item in json.loads(written["lance.partitioning.schema"])["fields"]] == SCHEMA.names


def test_properties_are_read_back() -> None:
    definition = defined(*FUNCTIONS)
    found = read_definition("events", definition.properties())
    assert found == definition
    assert found.schema.equals(SCHEMA, check_metadata=True)
    assert found.properties() == definition.properties()
    assert found.next_id == 10


def test_the_specification_s_example() -> None:
    example = {
        "lance.partitioning.enabled": "true",
        "lance.partitioning.partition-columns": [
            {"name": "country", "function": "identity", "properties": {}},
            {"name": "city", "function": "bucket", "properties": {"num-buckets": "4"}},
        ],
        "lance.partitioning.schema": {
            "fields": [
                {
                    "metadata": {},
                    "name": name,
                    "nullable": nullable,
                    "type": {"fields": [], "length": None, "type": kind},
                }
                for name, nullable, kind in [("id", False, "int64"), ("country", True, "utf8"), ("city", True, "utf8")]
            ],
            "metadata": {},
        },
    }
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in example.items()}
    found = read_definition("root", texts)
    assert found.fields == (
        PartitionField("country", (1,), Identity()),
        PartitionField("city", (2,), Bucket(4, MURMUR3), trusted=False),
    )
    assert [(item.name, item.type, item.nullable) for item in found.schema] == [
        ("id", pa.int64(), False),
        ("country", pa.string(), True),
        ("city", pa.string(), True),
    ]
    assert (field_id(found.schema.field("city")), found.source(1).name, found.next_id) == (2, "country", 3)
    assert read_definition("root", found.properties()) == found


def test_names_follow_their_source_ids() -> None:
    """A field names the column that it is made of, whatever that is called; partitions keep their names."""
    definition = rename_column(defined("country", "bucket(4, city)", "hash(country, city)"), "country", "land")
    definition = add_column(definition, pa.field("country", pa.string()))
    country, city, both = partition_columns(definition)
    assert (country["name"], country["source-id"], country["properties"]) == ("land", 1, {"partition-name": "country"})
    assert (city["name"], city["source-id"]) == ("city", 6)
    assert "name" not in both
    assert (both["source-ids"], both["properties"]["partition-name"]) == ([1, 6], "country_city")
    found = read_definition("events", definition.properties())
    assert found.fields == definition.fields
    names = ("country=US", "city_bucket=3", "country_city_hash=0a1b2c3d")
    assert leaf_object_id("n", found.fields, ("US", "3", "0a1b2c3d")) == "n$" + "$".join(names)
    for levels in (names, ("land=US", "city=3", "land_city_hash=0a1b2c3d")):
        assert named_leaf(found, *levels).values == ("US", "3", "0a1b2c3d")
    back = rename_column(drop_column(found, "country"), "land", "country")
    assert partition_columns(back) == partition_columns(defined("country", "bucket(4, city)", "hash(country, city)"))


def test_other_writers_properties_survive() -> None:
    described = {
        "name": "city",
        "source-id": 6,
        "function": "bucket",
        "properties": {"num-buckets": "4", "hash": "xxh64", "comment": "é"},
    }
    written = reread(described).properties()
    assert json.loads(written["lance.partitioning.partition-columns"]) == [described]


@pytest.mark.parametrize("missing", ["enabled", "partition-columns", "schema"])
def test_missing_properties_are_errors_that_name_them(missing: str) -> None:
    properties = defined("country").properties()
    del properties[f"lance.partitioning.{missing}"]
    with pytest.raises(InvalidError, match=rf"'events'.*lance\.partitioning\.{missing}"):
        read_definition("events", properties)


@pytest.mark.parametrize(
    ("key", "text", "named"),
    [
        ("lance.partitioning.enabled", "True", "enabled"),
        ("lance.partitioning.partition-columns", "[{", "partition-columns"),
        ("lance.partitioning.partition-columns", "{}", "partition-columns"),
        ("lance.partitioning.partition-columns", "[]", "partition-columns"),
        ("lance.partitioning.partition-columns", "7", "partition-columns"),
        ("lance.partitioning.schema", "[{", "schema"),
        ("lance.partitioning.schema", "{}", "schema"),
    ],
)
def test_broken_properties_are_errors_that_name_them(key: str, text: str, named: str) -> None:
    with pytest.raises(InvalidError, match=named):
        read_definition("events", {**defined("country").properties(), key: text})


@pytest.mark.parametrize(
    ("texts", "error", "named"),
    [
        ([], InvalidError, "at least one"),
        (["town"], NotFoundError, "town"),
        (["country", "Country"], InvalidError, "twice"),
        (["point"], UnsupportedError, "point"),
        (["bucket(0, city)"], InvalidError, "bucket"),
        (["year(city)"], InvalidError, "city"),
        (["truncate(2, ts)"], InvalidError, "ts"),
        (["country()"], InvalidError, "country"),
    ],
)
def test_partitionings_that_are_none(texts: list[str], error: type[Exception], named: str) -> None:
    with pytest.raises(error, match=named):
        defined(*texts)
