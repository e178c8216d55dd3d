"""Splits rows by their partition values, and sorts them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import InvalidError
from penstock.storage.parquet.files import PartitionValues
from penstock.storage.parquet.plan import SortColumn


def split_by_partition(
    batch: pa.RecordBatch, keys: Sequence[pa.Array]
) -> Iterator[tuple[PartitionValues, pa.RecordBatch]]:
    """Split rows by partition, in their order; no part keeps the memory of another alive."""
    if not keys:
        yield (), batch
        return
    codes = _codes(keys)
    order = np.argsort(codes, kind="stable")
    edges = [0, *(np.flatnonzero(np.diff(codes[order])) + 1).tolist(), len(order)]
    rows = batch if len(edges) == 2 else batch.take(pa.array(order))
    for start, end in pairwise(edges):
        values = tuple(key[int(order[start])].as_py() for key in keys)
        yield values, rows if len(edges) == 2 else pa.concat_batches([rows.slice(start, end - start)])


def _codes(keys: Sequence[pa.Array]) -> npt.NDArray[np.int64]:
    """A number for each row, the same for rows with the same values."""
    codes = np.zeros(len(keys[0]), np.int64)
    for key in keys:
        encoded = key.dictionary_encode(null_encoding="encode")
        codes = codes * len(encoded.dictionary) + encoded.indices.to_numpy(zero_copy_only=False)
        # Numbered anew, so that the product of many keys never overflows.
        codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    return codes


def sort_rows(rows: pa.Table, sort: Sequence[SortColumn]) -> pa.Table:
    """Sort rows as DuckDB sorts: NaN is greater than every number."""
    if not sort:
        return rows
    rows = rows.combine_chunks()
    keys: dict[str, pa.ChunkedArray] = {}
    orders: list[tuple[str, str]] = []

    def by(values: pa.ChunkedArray, descending: bool) -> None:
        orders.append((f"k{len(keys)}", "descending" if descending else "ascending"))
        keys[f"k{len(keys)}"] = values

    for key in sort:
        values = rows.column(key.index)
        if values.null_count:
            by(pc.is_null(values), key.nulls_first)
        if pa.types.is_floating(values.type):
            by(pc.is_nan(values), key.descending)
        by(values, key.descending)
    try:
        return rows.take(pc.sort_indices(pa.table(keys), sort_keys=orders))
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        kinds = ", ".join(str(rows.field(key.index).type) for key in sort)
        raise InvalidError(f"rows cannot be sorted by columns of the types {kinds}: {error}") from None
