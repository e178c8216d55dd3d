"""Lists that have the length of their column become what the column is; all others stay for the errors to come."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from penstock.lance.writing.fixed_vectors import joined, with_fixed_vectors

LIST, VECTOR = pa.list_(pa.float32()), pa.list_(pa.float32(), 2)
SCHEMA = pa.schema([("id", pa.int64()), ("v", VECTOR)])


def batch_of(values: list[Any], kind: pa.DataType = LIST) -> pa.RecordBatch:
    ids = pa.array(range(len(values)), pa.int64())
    return pa.RecordBatch.from_arrays([ids, pa.array(values, kind)], names=["a", "b"])


def test_lists_of_the_columns_length_are_fixed() -> None:
    values = [[1.0, None], [None, None], [3.0, 4.0]]
    for given in (batch_of(values), batch_of([[9.0], *values]).slice(1)):
        found = with_fixed_vectors(given, SCHEMA)
        found.validate(full=True)
        assert found.schema.names == ["a", "b"]
        assert found.column(1).type == VECTOR
        assert found.column(1).to_pylist() == values
        assert found.column(0) == given.column(0)


@pytest.mark.parametrize(
    "values", [[], [None], [[1.0, 2.0], None], [[1.0]], [[1.0, 2.0], [3.0]], [[], []], [[1.0, 2.0, 3.0]]]
)
def test_all_others_stay(values: list[Any]) -> None:
    given = batch_of(values)
    assert with_fixed_vectors(given, SCHEMA) is given


def test_so_do_columns_of_another_type_or_with_no_null_in_them() -> None:
    wide = batch_of([[1.0, 2.0]], pa.list_(pa.float64()))
    assert with_fixed_vectors(wide, SCHEMA) is wide
    given = batch_of([[1.0, None]])
    strict = pa.list_(pa.field("item", pa.float32(), nullable=False), 2)
    for kind in (strict, pa.list_(pa.float32()), pa.list_(pa.float32(), 0)):
        assert with_fixed_vectors(given, pa.schema([("id", pa.int64()), ("v", kind)])) is given


@pytest.mark.parametrize("odd", [[None], [[1.0, 2.0], None], [[3.0]], [[]]])
@pytest.mark.parametrize("nullable", [True, False])
def test_batches_with_and_without_a_length_are_joined(odd: list[Any], nullable: bool) -> None:
    lists = pa.list_(pa.field("element", pa.float32(), nullable))
    shape = pa.schema([pa.field("a", pa.int64(), nullable), ("b", lists)])
    even = [[1.0, 2.0], [3.0, 4.0]]
    for order in ([even, odd], [odd, even], [even, odd, even]):
        given = [batch_of(values, lists).cast(shape) for values in order]
        batches = [with_fixed_vectors(one, SCHEMA) for one in given]
        assert len({str(batch.column(1).type) for batch in batches}) == 2
        found = joined(batches)
        assert found["b"].to_pylist() == [value for values in order for value in values]
        assert found["a"].to_pylist() == [n for values in order for n in range(len(values))]
        assert found.schema.field("a") == shape.field("a")
    assert joined([with_fixed_vectors(batch_of(even), SCHEMA)] * 2)["b"].type == VECTOR
