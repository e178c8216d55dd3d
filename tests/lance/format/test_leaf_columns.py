"""Which columns of a leaf are which of the namespace's."""

from __future__ import annotations

import pyarrow as pa

from penstock.lance.format.definition import (
    NamespaceDefinition,
)
from penstock.lance.format.field_ids import with_field_id
from penstock.lance.format.leaf_columns import (
    ColumnNote,
    former_names,
    has_namespace_columns,
    match_columns,
    new_leaf_schema,
    with_column_name,
)
from support.lance_definitions import (
    IDS,
    SCHEMA,
)


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
