"""Completes rows that change, in the tasks that write them: DuckDB reads the columns that do not change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.ducklake.changing.change_job import CONTROL_COLUMNS
from penstock.ducklake.files.sealed_keys import Seal
from penstock.schema.columns import Column
from penstock.spark.arrow_transfer import Decimals, with_decimals
from penstock.storage.duckdb_files import connect_duckdb, read_parquet
from penstock.storage.file_columns import file_columns, select_of

BYTES_AT_ONCE = 16 * 2**20  # of what changes, until the rest of it is read
_BATCH_ROWS = 8192
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
        connection.execute("SET threads = 1")  # a task is to take one core
        for file, rows in _by_file(batches):
            positions = rows.column(-_CONTROLS + 1)
            in_order = pc.sort_indices(positions) if len(rows) > 1 else None
            yield from self._completed(connection, file, rows.take(in_order) if in_order else rows)

    def _completed(
        self, connection: duckdb.DuckDBPyConnection, file: int, rows: pa.RecordBatch
    ) -> Iterator[pa.RecordBatch]:
        """Rows of a file in the order of their positions, with their rest: as much at once as DuckDB gives."""
        positions = rows.column(-_CONTROLS + 1).to_numpy()
        done = 0
        for piece in self._read(connection, file, positions):
            found = piece.column(0).to_numpy()
            if not np.array_equal(found, positions[done : done + len(found)]):
                raise RuntimeError(f"{self.files[file][0]} has other rows than those that were found in it")
            yield self._joined(rows.slice(done, len(found)), piece.columns[1:])
            done += len(found)
        if done != len(positions):
            raise RuntimeError(
                f"{self.files[file][0]} has {done} of {len(positions)} rows that were found in it before"
            )

    def _read(
        self, connection: duckdb.DuckDBPyConnection, file: int, positions: npt.NDArray[np.int64]
    ) -> Iterator[pa.RecordBatch]:
        """The positions and the rest of rows of a file, in its order, which DuckDB keeps."""
        location, key = self.files[file]
        source = read_parquet(connection, location, self.seal.open(key, location))
        select = select_of(file_columns(connection, source), self.rest)
        connection.register(_CHOSEN, pa.table({_PLACE: positions}))
        found = connection.execute(
            f"SELECT file_row_number, {select} FROM {source} SEMI JOIN {_CHOSEN} ON file_row_number = {_PLACE}"
        )
        yield from found.to_arrow_reader(_BATCH_ROWS)

    def _joined(self, rows: pa.RecordBatch, rest: Sequence[pa.Array]) -> pa.RecordBatch:
        given = with_decimals(rows, self.decimals).columns
        new = dict(zip(self.changed, given[: len(self.changed)], strict=True))
        kept = iter([array.cast(kind) for array, kind in zip(rest, self.schema.types, strict=True)])
        columns = [new[place] if place in new else next(kept) for place in range(len(new) + len(rest))]
        columns += given[len(self.changed) :]
        return pa.RecordBatch.from_arrays(columns, names=[f"c{i}" for i in range(len(columns))])


def _by_file(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of one file after another, as they come, and no more than can be held at once."""
    held: list[pa.RecordBatch] = []
    size, current = 0, -1
    for batch in batches:
        files = batch.column(-_CONTROLS).to_numpy()
        starts = [0, *(np.flatnonzero(np.diff(files)) + 1), len(files)] if len(files) else []
        for start, end in pairwise(starts):
            if held and (files[start] != current or size >= BYTES_AT_ONCE):
                yield current, pa.concat_batches(held)
                held, size = [], 0
            current = int(files[start])
            held.append(batch.slice(start, end - start))
            size += held[-1].nbytes
    if held:
        yield current, pa.concat_batches(held)
