"""Completes rows that change: the columns that a statement leaves as they are go from the files to the writer.

Spark reads what conditions and new values need, and only that goes from its JVM to Python. There DuckDB reads the other
columns of the rows that change, in the task that writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812

from penstock.ducklake.catalog.file_pruning import Condition
from penstock.ducklake.changing.change_job import CONTROL_COLUMNS
from penstock.ducklake.changing.placed_rows import possible_files, reads_places, rest_is_large
from penstock.ducklake.changing.target_table import TargetTable
from penstock.ducklake.files.sealed_keys import Seal
from penstock.ducklake.reading.row_conversion import FROM_ARROW, Reading
from penstock.predicates.implication import Implication
from penstock.schema.columns import Column
from penstock.spark.arrow_transfer import Decimals, with_decimals
from penstock.spark.column_assignment import writer_type
from penstock.spark.releases import arrow_schema_of
from penstock.spark.types import has_nanoseconds
from penstock.storage.duckdb_files import connect_duckdb, read_parquet
from penstock.storage.duckdb_sql import duckdb_quoted, select_list

# What every task is sent the names of, and what it reads of a file at once.
MOST_FILES = 10_000
ROWS_AT_ONCE = 200_000
_CONTROLS = len(CONTROL_COLUMNS)
_CHOSEN, _PLACE = "_penstock_chosen", "_penstock_place"
_READING = Reading(conversions=FROM_ARROW)


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


def completion_of(
    table: TargetTable, untouched: Sequence[Column], possible: Callable[[], Implication]
) -> Completion | None:
    """What completes rows with the columns that do not change; None where Spark is to read them too.

    `possible` says what is true of all rows that change.
    """
    if not (untouched and reads_places(table) and all(map(_is_plain, untouched))):
        return None
    kept = possible_files(table, possible)
    groups, scope = table.contents.groups, table.scan.scope
    count = sum(scope.count(group, kept) for group in groups)
    if count > MOST_FILES or not rest_is_large(table, count, len(untouched)):
        return None
    seal = Seal()
    rest = tuple(untouched)
    columns = table.target.columns
    names = [f"v{i}" for i in range(len(rest))]
    schema = T.StructType([T.StructField(name, writer_type(c)) for name, c in zip(names, rest, strict=True)])
    changed = tuple(place for place, column in enumerate(columns) if column not in rest)
    return Completion(changed, rest, arrow_schema_of(schema), _files(table, kept, seal), seal)


def _files(table: TargetTable, kept: Condition, seal: Seal) -> dict[int, tuple[str, str | None]]:
    files = (file for group in table.contents.groups for file in table.scan.scope.data_files(group, kept))
    return {file.id: (file.path, seal.close(file.encryption_key, file.path)) for file in files}


def _is_plain(column: Column) -> bool:
    """Whether what DuckDB reads of a column is what the writer takes."""
    return _READING.is_shown_as_read(column) and not has_nanoseconds(column)
