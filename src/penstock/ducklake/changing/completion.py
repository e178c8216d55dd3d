"""Completes rows that change, in the tasks that write them: DuckDB reads the columns that do not change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.ducklake.changing.change_job import CONTROL_COLUMNS
from penstock.ducklake.files.sealed_keys import Seal
from penstock.schema.columns import Column
from penstock.spark.arrow_transfer import Decimals, with_decimals
from penstock.storage.duckdb_files import connect_duckdb, read_parquet
from penstock.storage.duckdb_sql import duckdb_quoted, select_list

ROWS_AT_ONCE = 200_000  # of a file
_CONTROLS = len(CONTROL_COLUMNS)
_CHOSEN, _PLACE = "_penstock_chosen", "_penstock_place"


@dataclass(frozen=True)
class Completion:
    """Puts the columns that do not change between those that do.

    Batches have the new values of columns, what goes with rows, and the `CONTROL_COLUMNS`, which say where rows are.
    """

    changed: tuple[int, ...]  # the places of the columns that batches begin with, in the table
    rest: tuple[Column, ...]  # the others
    schema: pa.Schema  # of the others, as they reach the writer
    files: dict[int, tuple[str, str | None]]  # where files are, and their sealed keys
    seal: Seal = field(repr=False)
    decimals: Decimals = ()  # columns of the batches that come as their digits

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        connection = connect_duckdb()
        for file, rows in _by_file(batches):
            positions = rows.column(-_CONTROLS + 1).to_numpy()
            yield self._joined(rows, self._read(connection, file, positions))

    def _read(self, connection: duckdb.DuckDBPyConnection, file: int, positions: npt.NDArray[np.int64]) -> pa.Table:
        """The rest of the rows at positions of a file, in the order of the positions."""
        location, key = self.files[file]
        source = read_parquet(connection, location, self.seal.open(key, location))
        names = {column.id: duckdb_quoted(column.name) for column in self.rest}
        connection.register(_CHOSEN, pa.table({_PLACE: positions}))
        rows = connection.execute(
            f"SELECT file_row_number, {select_list(self.rest, self.rest, names)}"
            f" FROM {source} SEMI JOIN {_CHOSEN} ON file_row_number = {_PLACE}"
        ).to_arrow_table()
        found = rows.column(0).to_numpy()
        if len(found) != len(positions):
            raise RuntimeError(f"{location} has {len(found)} of {len(positions)} rows that were found in it before")
        rest = rows.drop_columns([rows.column_names[0]]).rename_columns(self.schema.names).cast(self.schema)
        if np.array_equal(found, positions):
            return rest
        order = np.argsort(found)
        return rest.take(order[np.searchsorted(found, positions, sorter=order)])

    def _joined(self, rows: pa.RecordBatch, rest: pa.Table) -> pa.RecordBatch:
        given = with_decimals(rows, self.decimals).columns
        new, others = given[: len(self.changed)], given[len(self.changed) :]
        kept = [chunked.combine_chunks() for chunked in rest.columns]
        by_place = dict(zip(self.changed, new, strict=True))
        left = iter(kept)
        width = len(new) + len(kept)
        columns = [by_place[place] if place in by_place else next(left) for place in range(width)]
        return pa.RecordBatch.from_arrays([*columns, *others], names=[f"c{i}" for i in range(width + len(others))])


def _by_file(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of one file after another, as they come, and no more than can be held at once."""
    held: list[pa.RecordBatch] = []
    count, current = 0, -1
    for batch in batches:
        files = batch.column(-_CONTROLS).to_numpy()
        starts = [0, *(np.flatnonzero(np.diff(files)) + 1), len(files)] if len(files) else []
        for start, end in pairwise(starts):
            if held and (files[start] != current or count >= ROWS_AT_ONCE):
                yield current, pa.concat_batches(held)
                held, count = [], 0
            current = int(files[start])
            held.append(batch.slice(start, end - start))
            count += int(end - start)
    if held:
        yield current, pa.concat_batches(held)
