"""Definitions of partitioned namespaces in their properties, ours and those of others; leaves by entries and names."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.errors import InvalidError, NotFoundError, UnsupportedError
from penstock.lance.format.definition import (
    ENABLED,
    PARTITION_COLUMNS,
    NamespaceDefinition,
    new_definition,
    read_definition,
)
from penstock.lance.format.definition import SCHEMA as SCHEMA_PROPERTY
from penstock.lance.format.field_ids import field_id, partition_sources, with_field_id, with_field_ids
from penstock.lance.format.leaf_columns import (
    ColumnNote,
    former_names,
    has_namespace_columns,
    match_columns,
    new_leaf_schema,
    with_column_name,
)
from penstock.lance.format.leaves import Leaf, PartitionValues, leaf_from_entry, leaf_object_id, new_leaf_entries
from penstock.lance.format.manifest import READ_VERSION, ManifestEntry
from penstock.lance.format.partition_fields import PartitionField
from penstock.lance.format.schema_conversion import namespace_columns
from penstock.lance.format.schema_json import schema_to_json
from penstock.lance.reading.leaf_pruning import LeafPruner
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
    Unknown,
    Year,
)
from penstock.predicates import implied_by
from penstock.schema.types import parse_type

NO_SPARK = cast(SparkSession, None)  # Arrow's schemas need none
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
SCHEMA = with_field_ids(
    pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            ("country", pa.string()),
            ("point", pa.struct([("x", pa.float64()), ("tags", pa.list_(pa.string()))])),
            ("city", pa.string()),
            ("ts", pa.timestamp("us", "UTC")),
            ("price", pa.decimal128(38, 10)),
            ("a/b = $%", pa.string()),
        ],
        metadata={"owner": "é"},
    )
)
COLUMNS = namespace_columns(NO_SPARK, SCHEMA)
IDS = {item.name: field_id(item) for item in SCHEMA}
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


def defined(*partitioned_by: str) -> NamespaceDefinition:
    return new_definition(SCHEMA, COLUMNS, partitioned_by)


def reread(*described: Any, schema: pa.Schema = SCHEMA, **changes: str) -> NamespaceDefinition:
    """The definition of properties in which the partition columns are so described."""
    properties = {ENABLED: "true", SCHEMA_PROPERTY: schema_to_json(schema), PARTITION_COLUMNS: json.dumps(described)}
    return read_definition("events", {**properties, **changes})


def only_field(*described: Any, schema: pa.Schema = SCHEMA) -> PartitionField:
    [found] = reread(*described, schema=schema).fields
    return found


# Properties


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


def test_ids_count_as_lance_does_and_stay() -> None:
    assert [field_id(item) for item in SCHEMA] == [0, 1, 2, 6, 7, 8, 9]
    assert with_field_ids(SCHEMA) is SCHEMA
    assert [column.id for column in COLUMNS] == [0, 1, 2, 6, 7, 8, 9]
    assert [child.id for child in COLUMNS[2].walk()] == [2, 3, 4, -1]
    assert {number: source.name for number, source in partition_sources(SCHEMA).items() if number in (2, 3, 4, 5)} == {
        2: "point",
        3: "point.x",
        4: "point.tags",
    }


@pytest.mark.parametrize(
    ("function", "properties", "transform"),
    [
        *(
            ("bucket", {name: number}, Bucket(16, MURMUR3))
            for name in ("num-buckets", "num_buckets", "bucket_size", "bucket-size")
            for number in (16, "16")
        ),
        ("bucket[16]", {}, Bucket(16, MURMUR3)),
        ("bucket[16]", None, Bucket(16, MURMUR3)),
        (" Bucket ( 16 ) ", {}, Bucket(16, MURMUR3)),
        *(
            ("truncate", {name: number}, Truncate(3))
            for name in ("width", "truncate_size", "truncate-size")
            for number in (3, "3")
        ),
        ("truncate[3]", {}, Truncate(3)),
        ("IDENTITY", {}, Identity()),
        ("hash", {}, Hash()),
    ],
)
def test_functions_of_other_writers(function: str, properties: dict[str, Any] | None, transform: Transform) -> None:
    found = only_field({"name": "city", "function": function, "properties": properties})
    assert found.transform == transform
    assert found.sources == (IDS["city"],)
    assert found.trusted == isinstance(transform, Identity | Truncate)


@pytest.mark.parametrize(
    "source",
    [
        {"name": "city"},
        {"source-id": 6},
        {"source-id": "6"},
        {"source-ids": [6]},
        {"name": "city", "source-id": 6},
        {"name": "city", "source-ids": [6]},
        {"name": "city", "source-id": 6, "source-ids": [6]},
        {"name": "city", "source-id": None, "source-ids": None},
        {"name": "city", "source-ids": []},
    ],
)
@pytest.mark.parametrize("with_ids", [True, False])
def test_sources_by_name_or_id(source: dict[str, Any], with_ids: bool) -> None:
    schema = SCHEMA if with_ids else pa.schema([item.remove_metadata() for item in SCHEMA])
    found = only_field({**source, "function": "truncate", "properties": {"width": 2}}, schema=schema)
    assert found == PartitionField("city", (6,), Truncate(2))


def test_the_source_is_the_id_where_ids_are_ours_and_the_name_where_they_are_not() -> None:
    field = {"name": "city", "source-id": 1, "function": "identity"}
    assert only_field(field).sources == (1,)  # a column that was called `city` before
    anonymous = pa.schema([item.remove_metadata() for item in SCHEMA])
    assert only_field(field, schema=anonymous).sources == (6,)
    assert only_field({**field, "name": "city_key"}, schema=anonymous) == PartitionField("city_key", (1,), Identity())
    pair = {"name": "city", "source-ids": [1, 6], "function": "hash"}
    assert only_field(pair, schema=anonymous).sources == (1, 6)
    assert only_field({"source-ids": [1, 6], "function": "hash"}).name == "country_city"


@pytest.mark.parametrize("function", ["bucket", "hash"])
@pytest.mark.parametrize(("hash", "trusted"), [(None, False), ("murmur3_32", False), ("murmur3_x86_32", True)])
def test_hashes_are_trusted_where_they_are_named(function: str, hash: str | None, trusted: bool) -> None:
    properties = {"num-buckets": "4"} | ({} if hash is None else {"hash": hash})
    found = only_field({"name": "city", "function": function, "properties": properties})
    assert found.trusted is trusted
    leaves = [Leaf(f"n$city={text}", "", (text,), 1) for text in ("0", "1", "2", "3", "00000000")]
    wanted = implied_by(['["=", ["column", "city"], ["literal", "string", "Oslo"]]'], COLUMNS)
    kept = LeafPruner([found], {column.id: column for column in COLUMNS}).kept(leaves, wanted)
    assert (kept == leaves) is not trusted


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


@pytest.mark.parametrize(
    ("source", "function"),
    [({"source-id": 1}, "zorder"), ({"source-id": 1}, "ZOrder[5]"), ({"source-ids": [1, 6]}, "multi_bucket")],
)
def test_unknown_functions_are_kept(source: dict[str, Any], function: str) -> None:
    described = {"name": "k", **source, "function": function, "properties": {"num_buckets": 7}}
    definition = reread(described)
    [field] = definition.fields
    assert field.transform == Unknown(function)
    [told] = json.loads(definition.properties()["lance.partitioning.partition-columns"])
    assert told["properties"] == {"num_buckets": 7, "partition-name": "k"}
    assert (told["function"], told.get("name")) == (function, "country" if "source-id" in source else None)
    assert reread(told).fields == definition.fields
    leaf = Leaf("n$k=x", "", ("x",), 1)
    both = [f'["=", ["column", "{name}"], ["literal", "string", "a"]]' for name in ("country", "city")]
    pruner = LeafPruner([field], {column.id: column for column in COLUMNS})
    assert pruner.kept([leaf], implied_by(both, COLUMNS)) == [leaf]
    text = parse_type("varchar")
    with pytest.raises((UnsupportedError, InvalidError), match="(?i)" + function.partition("[")[0]):
        field.values([pa.array(["a"])] * len(field.sources), [text] * len(field.sources))


def test_functions_of_several_columns_that_take_one_never_prune() -> None:
    field = only_field({"name": "k", "source-ids": [1, 6], "function": "identity"})
    leaf = Leaf("n$k=x", "", ("x",), 1)
    both = [f'["=", ["column", "{name}"], ["literal", "string", "a"]]' for name in ("country", "city")]
    pruner = LeafPruner([field], {column.id: column for column in COLUMNS})
    assert pruner.kept([leaf], implied_by(both, COLUMNS)) == [leaf]


def test_fields_of_structs_are_sources() -> None:
    definition = defined("point.x", "hash(point.tags, point, id)")
    assert definition.fields == (
        PartitionField("point.x", (3,), Identity()),
        PartitionField("point.tags_point_id", (4, 2, 0), Hash()),
    )
    assert told_columns(definition)[0] == {"name": "point.x", "source-id": 3, "function": "identity", "properties": {}}
    assert read_definition("events", definition.properties()).fields == definition.fields
    assert [field.key for field in definition.fields] == ["point%2Ex", "point%2Etags_point_id_hash"]
    anonymous = pa.schema([item.remove_metadata() for item in SCHEMA])
    for source in ({"source-id": 3}, {"name": "point.x"}, {"name": "point.x", "source-id": 77}):
        assert only_field({**source, "function": "identity"}, schema=anonymous).sources == (3,)
    for level in ("point.x=1.5", "point%2Ex=1.5"):
        assert named_leaf(definition, level, "point.tags_point_id_hash=0a").values == ("1.5", "0a")
    added = add_column(definition, pa.field("deep", pa.struct([("a", pa.struct([("b", pa.int8())]))])))
    assert {number: source.name for number, source in partition_sources(added.schema).items() if number >= 10} == {
        10: "deep",
        11: "deep.a",
        12: "deep.a.b",
    }
    assert added.next_id == 13
    for text, error in [("point.y", NotFoundError), ("point.tags.x", NotFoundError), ("point", UnsupportedError)]:
        with pytest.raises(error, match="point"):
            defined(text)


def test_decimals_below_one_are_named_with_their_zero() -> None:
    [field] = defined("price").fields
    values = pa.array([Decimal("0.50"), Decimal("-0.05"), None], pa.decimal128(2, 2))
    assert field.values([values], [parse_type("decimal(2,2)")]).to_pylist() == ["0.50", "-0.05", None]


def test_ids_that_counting_gives_twice_are_the_first_ones() -> None:
    """Columns may have been given ids without room for the fields inside of them."""
    pair = pa.struct([("x", pa.int8()), ("y", pa.int8())])
    schema = pa.schema([with_field_id(pa.field(name, pair), number) for number, name in enumerate("ab")])
    ids = [[inner.id for inner in column.walk()] for column in namespace_columns(NO_SPARK, schema)]
    assert ids == [[0, -1, 2], [1, -2, 3]]
    assert {number: source.name for number, source in partition_sources(schema).items()} == {
        0: "a",
        1: "b",
        2: "a.y",
        3: "b.y",
    }


def told_columns(definition: NamespaceDefinition) -> list[dict[str, Any]]:
    return list(json.loads(definition.properties()["lance.partitioning.partition-columns"]))


def test_names_follow_their_source_ids() -> None:
    """A field names the column that it is made of, whatever that is called; partitions keep their names."""
    definition = rename_column(defined("country", "bucket(4, city)", "hash(country, city)"), "country", "land")
    definition = add_column(definition, pa.field("country", pa.string()))
    country, city, both = told_columns(definition)
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
    assert told_columns(back) == told_columns(defined("country", "bucket(4, city)", "hash(country, city)"))


def test_other_writers_properties_survive() -> None:
    described = {
        "name": "city",
        "source-id": 6,
        "function": "bucket",
        "properties": {"num-buckets": "4", "hash": "xxh64", "comment": "é"},
    }
    written = reread(described).properties()
    assert json.loads(written["lance.partitioning.partition-columns"]) == [described]


@pytest.mark.parametrize(
    ("described", "named"),
    [
        ({"name": "town", "function": "identity"}, "town"),
        ({"function": "identity"}, "None"),
        ({"name": "k", "source-id": 99, "function": "identity"}, "99"),
        ({"name": "k", "source-ids": [1, 99], "function": "hash"}, "99"),
        ({"name": "k", "source-id": 5, "function": "identity"}, "5"),  # inside of a list
        ({"name": "city"}, "function"),
        ({"name": "city", "function": "bucket", "properties": {"num-buckets": "0"}}, "bucket"),
        ({"name": "city", "function": "bucket", "properties": {"num-buckets": -4}}, "bucket"),
        ({"name": "city", "function": "bucket", "properties": {"num-buckets": "many"}}, "many"),
        ({"name": "city", "function": "bucket"}, "bucket"),
        ({"name": "city", "function": "truncate", "properties": {"width": 0}}, "truncate"),
        ({"name": "city", "function": "bucket[0]"}, "bucket"),
        ({"name": "city", "function": "bucket", "properties": ["num-buckets"]}, "partition-columns"),
        ("city", "partition-columns"),
        (None, "partition-columns"),
    ],
)
def test_broken_fields_are_errors_that_name_them(described: Any, named: str) -> None:
    with pytest.raises(InvalidError, match=rf"events.*partition-columns.*{named}|events.*{named}"):
        reread(described)


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


# Leaves


def named_leaf(definition: NamespaceDefinition, *levels: str) -> Leaf:
    return leaf_from_entry(ManifestEntry("$".join(["events", *levels]), "table", "place"), "events", definition.fields)


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


def test_years_have_their_sign_first() -> None:
    [field] = defined("year(ts)").fields
    days = pa.array([-(2**63) // 86_400_000_000 * 86_400_000_000 + 86_400_000_000, -62_198_755_200_000_000, 0, None])
    texts = field.values([days.view(pa.timestamp("us", "UTC"))], [parse_type("timestamp")])
    assert texts.to_pylist() == ["-290308", "-001", "1970", None]


# Columns of leaves


def test_columns_match_by_id_then_by_name() -> None:
    definition = NamespaceDefinition(SCHEMA, ())
    everything = {IDS[name]: name for name in SCHEMA.names}
    assert match_columns(definition, SCHEMA) == everything
    assert match_columns(definition, pa.schema([item.remove_metadata() for item in SCHEMA])) == everything
    odd = pa.schema(
        [with_field_id(pa.field("old", pa.string()), IDS["city"]), ("city", pa.int8()), ("COUNTRY", pa.string())]
    )
    assert match_columns(definition, odd) == {IDS["city"]: "old", IDS["country"]: "COUNTRY"}
    other = pa.schema([with_field_id(pa.field("city", pa.string()), 77), ("extra", pa.string())])
    assert match_columns(definition, other) == {77: "city"}  # a dropped column's name may be another's now


def test_known_columns_match_by_lances_field_then_by_the_name_that_they_had() -> None:
    city = SCHEMA.get_field_index("city")
    moved = SCHEMA.set(city, with_column_name(SCHEMA.field(city), "town"))
    definition = NamespaceDefinition(moved.append(with_field_id(pa.field("city", pa.string()), 10)), ())
    known = [ColumnNote(IDS["city"], 3, "city")]
    for leaf, fields in [("city", {"city": 9}), ("city", {}), ("other", {"other": 3})]:
        assert match_columns(definition, pa.schema([(leaf, pa.string())]), known, fields) == {IDS["city"]: leaf}
    assert match_columns(definition, pa.schema([("city", pa.string())])) == {10: "city"}  # nothing is known of this one
    both = pa.schema([("city", pa.string()), ("b", pa.string())])
    assert match_columns(definition, both, known, {"b": 3, "city": 9}) == {IDS["city"]: "b", 10: "city"}


def test_columns_match_by_former_names() -> None:
    place = SCHEMA.get_field_index("city")
    twice = with_column_name(with_column_name(SCHEMA.field(place), "town"), "Gemeinde")
    assert former_names(twice) == ["town", "city"]
    schema = SCHEMA.set(place, twice)
    definition = NamespaceDefinition(schema, ())
    for name in ("Gemeinde", "gemeinde", "town", "CITY"):
        assert match_columns(definition, pa.schema([(name, pa.string())])) == {IDS["city"]: name}
    assert match_columns(definition, pa.schema([("city", pa.string()), ("town", pa.string())])) == {IDS["city"]: "town"}
    assert former_names(new_leaf_schema(definition).field("Gemeinde")) == []
    reused = NamespaceDefinition(schema.append(with_field_id(pa.field("city", pa.string()), 10)), ())
    assert match_columns(reused, pa.schema([("city", pa.string())])) == {10: "city"}
    assert match_columns(reused, pa.schema([("town", pa.string())])) == {IDS["city"]: "town"}


def test_shapes() -> None:
    definition = NamespaceDefinition(SCHEMA, ())

    def same(leaf: pa.Schema) -> bool:
        return has_namespace_columns(definition, leaf, match_columns(definition, leaf))

    assert same(new_leaf_schema(definition))
    assert same(pa.schema([item.remove_metadata() for item in SCHEMA]))
    assert not same(SCHEMA.remove(0))
    assert not same(SCHEMA.append(pa.field("more", pa.int8())))
    assert not same(SCHEMA.set(0, SCHEMA.field(0).with_type(pa.int32())))
    assert not same(SCHEMA.set(0, SCHEMA.field(0).with_name("ID")))
