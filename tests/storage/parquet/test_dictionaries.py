"""Which columns of a file get dictionaries: the law is that every column is judged by its own values."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from penstock.storage.parquet.dictionaries import columns_with_dictionaries
from penstock.storage.parquet.schema import leaf_paths

ROWS = 20_000


def _chosen(rows: pa.Table) -> list[str]:
    """The columns with a dictionary, as a file that is written so tells."""
    sink = io.BytesIO()
    chosen = columns_with_dictionaries(rows)
    pq.write_table(rows, sink, use_dictionary=chosen, store_schema=False)
    group = pq.ParquetFile(sink).metadata.row_group(0)
    chunks = [group.column(i) for i in range(group.num_columns)]
    assert [chunk.path_in_schema for chunk in chunks if chunk.has_dictionary_page] == chosen
    return chosen


def test_values_that_come_again() -> None:
    numbers = range(ROWS)
    rows = pa.table(
        {
            "key": [i // 4 for i in numbers],  # each value four times, side by side
            "unique": [f"text {i}" for i in numbers],
            "few": [i % 1000 for i in numbers],
            "sorted": [i // 500 for i in numbers],
            "text": [f"text {i % 50}" for i in numbers],
            "nothing": pa.nulls(ROWS, pa.int64()),
            "rare": [i if i % 500 == 0 else None for i in numbers],
            "x": [i / 7 for i in numbers],
            "a.b": [i % 3 for i in numbers],
        }
    )
    assert _chosen(rows) == ["few", "sorted", "text", "nothing", "rare", "a.b"]
    assert _chosen(pa.Table.from_batches(rows.to_batches(max_chunksize=777))) == _chosen(rows)


def test_few_rows_have_dictionaries() -> None:
    assert _chosen(pa.table({"id": range(99)})) == ["id"]
    assert _chosen(pa.table({"id": range(100)})) == []
    assert columns_with_dictionaries(pa.table({"id": pa.array([], pa.int64())})) == ["id"]


def test_nested_values_are_judged_one_by_one() -> None:
    numbers = range(ROWS)
    rows = pa.table(
        {
            "s": [{"id": i, "kind": i % 3} for i in numbers],
            "vector": [[i + 0.25, i + 0.5] if i % 5 else None for i in numbers],
            "tags": [["a", "b", None] if i % 2 else [] for i in numbers],
            "m": pa.array([[("k", i)] if i % 3 else None for i in numbers], pa.map_(pa.string(), pa.int64())),
        }
    )
    assert _chosen(rows) == ["s.kind", "tags.list.element", "m.key_value.key"]


_LEAVES = st.sampled_from([pa.int64(), pa.string(), pa.binary(16), pa.decimal128(38, 3), pa.bool_(), pa.date32()])
_TYPES = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        inner.map(pa.list_),
        inner.map(lambda kind: pa.map_(pa.string(), kind)),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda kinds: pa.struct([(f"f{i}", kind) for i, kind in enumerate(kinds)])
        ),
    ),
    max_leaves=6,
)


@given(st.lists(_TYPES, min_size=1, max_size=4), st.integers(0, 3))
def test_any_shape_has_a_judgement_for_each_leaf(kinds: list[pa.DataType], rows: int) -> None:
    schema = pa.schema([(f"c{i}", kind) for i, kind in enumerate(kinds)])
    table = pa.Table.from_pylist([{}] * rows, schema=schema)
    assert columns_with_dictionaries(table) == leaf_paths(schema)
