"""Says which columns of a file are worth a dictionary: those whose values come again and again.

A dictionary of values that are nearly all different makes a file larger, and slower to write and to read: Spark looks
up every value in a megabyte. PyArrow would begin one for every column all the same.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.storage.parquet.schema import leaf_paths

_SAMPLE = 4096
_FEWEST = 100  # values that say something
# With so many different ones among a sample of a row group, more than a fifth of the row group's are different.
_MOST_DIFFERENT = 0.9


def columns_with_dictionaries(rows: pa.Table) -> list[str]:
    """The paths of a file's columns that get dictionaries, by its first rows."""
    leaves = [leaf for column in rows.columns for leaf in _leaves(_sampled(column))]
    paths = leaf_paths(rows.schema)
    return [path for path, leaf in zip(paths, leaves, strict=True) if not _are_different(_thinned(leaf))]


def _sampled(column: pa.ChunkedArray) -> pa.Array:
    """Values from all over a column: what lies side by side is often the same."""
    step = max(1, len(column) // _SAMPLE)
    taken, start = [], 0
    for chunk in column.chunks:
        places = np.arange(-start % step, len(chunk), step)
        taken.append(chunk.take(pa.array(places)))
        start += len(chunk)
    return pa.concat_arrays(taken) if taken else pa.nulls(0, column.type)


def _leaves(array: pa.Array) -> Iterator[pa.Array]:
    """The values of a column, or of what it consists of, in the order of a file's column chunks."""
    if pa.types.is_struct(array.type):
        for part in array.flatten():
            yield from _leaves(part)
    elif pa.types.is_map(array.type):
        for part in (array.keys, array.items):
            yield from _leaves(part)
    elif pa.types.is_list(array.type):
        yield from _leaves(array.flatten())
    else:
        yield array


def _thinned(array: pa.Array) -> pa.Array:
    step = max(1, len(array) // _SAMPLE)
    return array.take(pa.array(np.arange(0, len(array), step)))


def _are_different(values: pa.Array) -> bool:
    present = len(values) - values.null_count
    return present >= _FEWEST and bool(pc.count_distinct(values).as_py() > _MOST_DIFFERENT * present)
