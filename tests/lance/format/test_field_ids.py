"""The ids of columns, and of the fields inside of them, as Lance counts."""

from __future__ import annotations

import pyarrow as pa

from penstock.lance.format.field_ids import field_id, partition_sources, with_field_id, with_field_ids
from penstock.lance.format.schema_conversion import namespace_columns
from support.lance_definitions import (
    COLUMNS,
    NO_SPARK,
    SCHEMA,
)


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
