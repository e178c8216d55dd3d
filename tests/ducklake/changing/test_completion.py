"""Rows of which a statement gives some columns are completed with the others, in their order."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.ducklake.changing import completion as completing
from penstock.ducklake.changing.completion import Completion
from penstock.ducklake.files.sealed_keys import Seal
from penstock.schema.columns import Column
from penstock.schema.types import Type
from support import effort

ROWS = 5000
NAMES = ("id", "new", 'odd "name"/=%', "number")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    """Three files, of many row groups; the third has one row."""
    place = tmp_path_factory.mktemp("completed [*?]")
    found = {}
    for file, rows in ((1, ROWS), (2, ROWS), (7, 1)):
        numbers = range(file * 1_000_000, file * 1_000_000 + rows)
        texts = [None if n % 5 == 0 else "" if n % 7 == 0 else f"é🦆{n}" for n in numbers]
        table = pa.table(
            [pa.array(numbers), pa.array(["old"] * rows), pa.array(texts), pa.array([-0.0] * rows)], names=NAMES
        )
        found[file] = str(place / f"{file}.parquet")
        pq.write_table(table, found[file], row_group_size=100)
    return found


def completion(files: dict[int, str]) -> Completion:
    kinds = ("int64", "varchar", "varchar", "float64")
    columns = [Column(i, name, Type(kind), 0) for i, (name, kind) in enumerate(zip(NAMES, kinds, strict=True))]
    schema = pa.schema([("v0", pa.int64()), ("v1", pa.string()), ("v2", pa.float64())])
    rest = tuple(columns[place] for place in (0, 2, 3))
    return Completion((1,), rest, schema, {file: (path, None) for file, path in files.items()}, Seal())


def batch_of(rows: list[tuple[int, int]]) -> pa.RecordBatch:
    """New values of rows by file and position, row ids, and the control columns."""
    files, positions = [file for file, _ in rows], [position for _, position in rows]
    values = [f"new {file} {position}" for file, position in rows]
    columns = [pa.array(values, pa.string()), *(pa.array(n, pa.int64()) for n in (positions, files, positions))]
    flags = [pa.array([True] * len(rows), pa.bool_()), pa.nulls(len(rows), pa.int64())]
    names = ["v1", "row", "file", "position", "written", "source"]
    return pa.RecordBatch.from_arrays([*columns, *flags], names=names)


PLACES = st.one_of(st.tuples(st.sampled_from([1, 2]), st.integers(0, ROWS - 1)), st.just((7, 0)))


@settings(deadline=None, max_examples=effort.tries(30, 100))
@given(rows=st.lists(PLACES, unique=True, max_size=60), cut=st.integers(1, 20), most=st.integers(1, 4000))
def test_rows_get_the_rest_of_their_own(
    files: dict[int, str], rows: list[tuple[int, int]], cut: int, most: int
) -> None:
    """In any order, in batches of any size, of many files or one."""
    batches = [batch_of(rows[start : start + cut]) for start in range(0, len(rows), cut)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(completing, "BYTES_AT_ONCE", most)
        done = [batch.to_pylist() for batch in completion(files)([batch_of([]), *batches])]
    found = [tuple(row.values()) for batch in done for row in batch]
    assert sorted((row[5], row[6]) for row in found) == sorted(rows)
    for id, new, text, number, row_id, file, position, written, source in found:
        assert (id, row_id, written, source) == (file * 1_000_000 + position, position, True, None)
        assert new == f"new {file} {position}"
        assert text == (None if id % 5 == 0 else "" if id % 7 == 0 else f"é🦆{id}")
        assert str(number) == "-0.0"


def test_rows_that_a_file_has_no_more(files: dict[int, str]) -> None:
    with pytest.raises(RuntimeError, match="has 1 of 2 rows"):
        list(completion(files)([batch_of([(7, 0), (7, 1)])]))
