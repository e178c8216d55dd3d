import json

import pyarrow as pa
import pytest
from lance_namespace_urllib3_client.models import JsonArrowSchema

from penstock.errors import InvalidError, PenstockError, UnsupportedError
from penstock.lance.format.schema_json import EXACT_SCHEMA, schema_from_json, schema_to_json

_UNITS = ("s", "ms", "us", "ns")
_DEEP = pa.struct([pa.field("a", pa.list_(pa.struct([pa.field("b", pa.int8(), False)]))), ("", pa.string())])
_KEPT = [  # by the JSON alone
    *(getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *(pa.float16(), pa.float32(), pa.float64(), pa.bool_(), pa.null()),
    *(pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.binary(16)),
    *(pa.date32(), pa.date64(), pa.timestamp("us"), pa.duration("us")),
    *(pa.decimal128(38, 0), pa.decimal128(10, 2), pa.decimal128(5, -3), pa.decimal256(76, 40)),
    *(pa.list_(pa.int32()), pa.large_list(pa.field("item", pa.utf8(), False)), pa.list_(pa.float32(), 128)),
    *(pa.list_(pa.float16(), 3), _DEEP, pa.map_(pa.string(), pa.list_(pa.decimal128(38, 10)))),
]
_LOST = [
    *(pa.timestamp(unit, zone) for unit in _UNITS for zone in (None, "UTC", "America/St_Johns")),
    *(pa.duration(unit) for unit in _UNITS),
    *(pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
    *(pa.dictionary(pa.int8(), pa.string()), pa.string_view(), pa.binary_view(), pa.month_day_nano_interval()),
    *(pa.map_(pa.string(), pa.timestamp("ns", "UTC"), keys_sorted=True), pa.uuid(), pa.list_view(pa.int8())),
]


def _schema(types: list[pa.DataType]) -> pa.Schema:
    fields = [
        pa.field(f"c{i}", kind, bool(i % 2) or kind == pa.null(), {"k": "é'\"🚰"} if i % 3 else None)
        for i, kind in enumerate(types)
    ]
    return pa.schema(fields, {"of the schema": "1"})


def test_every_type_comes_back() -> None:
    schema = _schema(_KEPT + _LOST)
    text = schema_to_json(schema)
    assert schema_from_json(text).equals(schema, check_metadata=True)
    model = JsonArrowSchema.from_json(text)
    assert model is not None
    assert schema_from_json(model.to_json()).equals(schema, check_metadata=True)  # rewritten without empty members
    assert schema_from_json(schema_to_json(schema_from_json(text))).equals(schema, check_metadata=True)
    assert schema_from_json(schema_to_json(pa.schema([]))) == pa.schema([])


def test_json_alone_tells_what_it_can() -> None:
    schema = _schema(_KEPT)
    node = json.loads(schema_to_json(schema))
    del node["metadata"][EXACT_SCHEMA]
    assert schema_from_json(json.dumps(node)).equals(schema, check_metadata=True)


def test_names_of_types() -> None:
    kinds = [
        pa.list_(pa.float32(), 128),
        pa.decimal128(38, 2),
        pa.timestamp("ns", "UTC"),
        pa.map_(pa.utf8(), pa.int8()),
    ]
    vector, decimal, timestamp, mapped = (
        field["type"] for field in json.loads(schema_to_json(_schema(kinds)))["fields"]
    )
    item = {"name": "item", "nullable": True, "metadata": {}, "type": {"type": "float32", "fields": [], "length": None}}
    assert vector == {"type": "fixed_size_list", "fields": [item], "length": 128}
    assert decimal == {"type": "decimal128", "fields": [], "length": 38002}
    assert timestamp == {"type": "timestamp", "fields": [], "length": None}
    assert [field["name"] for field in mapped["fields"][0]["type"]["fields"]] == ["key", "value"]


def test_foreign_edits_win_over_the_exact_schema() -> None:
    zoned = pa.timestamp("ns", "UTC")
    schema = pa.schema([("a", zoned), ("b", pa.int32()), ("c", zoned)])
    node = json.loads(schema_to_json(schema))
    node["fields"][0]["name"] = "renamed"
    node["fields"][1]["type"]["type"] = "int64"
    node["fields"][2] |= {"nullable": False, "metadata": {"k": "v"}}
    edited = schema_from_json(json.dumps(node))
    assert edited.types == [pa.timestamp("us"), pa.int64(), zoned]
    assert edited.field("c") == pa.field("c", zoned, False)
    assert edited.field("c").metadata == {b"k": b"v"}
    assert not edited.metadata


def _one(kind: object) -> str:
    return json.dumps({"fields": [{"name": "s", "nullable": True, "type": kind}]})


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("{", InvalidError, "no JSON"),
        ("[]", InvalidError, "fields"),
        ('{"fields": [{"name": "s"}]}', InvalidError, "field s .*nullable"),
        (json.dumps({"fields": [], "metadata": {EXACT_SCHEMA: "!"}}), InvalidError, EXACT_SCHEMA),
        (
            '{"fields": [{"name": "s", "nullable": false, "type": {"type": "null"}}]}',
            InvalidError,
            "field s .*nullable",
        ),
        (_one({"type": "hologram"}), UnsupportedError, "field s .*hologram"),
        (_one({"type": "decimal128", "length": 99000}), InvalidError, "field s "),
        (_one({"type": "fixed_size_list", "fields": []}), InvalidError, "field s .*length"),
        (_one({"type": "list", "fields": []}), InvalidError, "field s .*list"),
        (
            _one({"type": "struct", "fields": [{"name": "a", "nullable": True, "type": {}}]}),
            InvalidError,
            r"field s\.a",
        ),
        (_one({"type": "struct", "fields": [1]}), InvalidError, "a field of s"),
    ],
)
def test_broken_schemas(text: str, error: type[PenstockError], message: str) -> None:
    with pytest.raises(error, match=message):
        schema_from_json(text)
