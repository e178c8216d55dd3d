"""Partition fields, of ours and of other writers: what they are made of, and the values that they make."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import InvalidError, NotFoundError, UnsupportedError
from penstock.lance.format.definition import (
    read_definition,
)
from penstock.lance.format.field_ids import partition_sources
from penstock.lance.format.leaves import Leaf
from penstock.lance.format.partition_fields import PartitionField
from penstock.lance.reading.leaf_pruning import LeafPruner
from penstock.lance.writing.schema_evolution import add_column
from penstock.partitioning import (
    MURMUR3,
    Bucket,
    Hash,
    Identity,
    Transform,
    Truncate,
    Unknown,
)
from penstock.predicates import implied_by
from penstock.schema.types import parse_type
from support.lance_definitions import (
    COLUMNS,
    IDS,
    SCHEMA,
    defined,
    named_leaf,
    only_field,
    partition_columns,
    reread,
)


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
    assert partition_columns(definition)[0] == {
        "name": "point.x",
        "source-id": 3,
        "function": "identity",
        "properties": {},
    }
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


def test_decimals_below_one_are_named_with_their_zero() -> None:
    [field] = defined("price").fields
    values = pa.array([Decimal("0.50"), Decimal("-0.05"), None], pa.decimal128(2, 2))
    assert field.values([values], [parse_type("decimal(2,2)")]).to_pylist() == ["0.50", "-0.05", None]


def test_years_have_their_sign_first() -> None:
    [field] = defined("year(ts)").fields
    days = pa.array([-(2**63) // 86_400_000_000 * 86_400_000_000 + 86_400_000_000, -62_198_755_200_000_000, 0, None])
    texts = field.values([days.view(pa.timestamp("us", "UTC"))], [parse_type("timestamp")])
    assert texts.to_pylist() == ["-290308", "-001", "1970", None]
