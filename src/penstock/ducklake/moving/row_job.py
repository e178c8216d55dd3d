"""Does the work of a task that brings rows of a DuckDB table: DuckDB reads them, and they go to files batch by batch.

No row crosses into the JVM.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from penstock.ducklake.moving.duckdb_source import open_source
from penstock.errors import InvalidError, NotFoundError, PenstockError
from penstock.spark.write_job import WRITE_RESULT, WriteJob
from penstock.storage.duckdb_sql import text_literal

RESULT = "number long, file binary, rows binary"
_RESULT_ARROW = pa.schema([pa.field("number", pa.int64()), *WRITE_RESULT])
_BATCH_ROWS = 8192


@dataclass(frozen=True)
class RowRange:
    """What one task reads, as a query, and what it does with the rows; `number` is the table's."""

    number: int
    query: str
    job: WriteJob


@dataclass(frozen=True)
class RowJob:
    """Brings the rows of each range that comes to a task. Ranges come pickled."""

    path: str
    memory: str = "600MB"

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with tempfile.TemporaryDirectory(prefix="penstock-") as directory, self._opened() as connection:
            connection.execute("SET threads = 1")  # a task has one core
            connection.execute(f"SET memory_limit = '{self.memory}'")
            connection.execute(f"SET temp_directory = {text_literal(directory)}")
            for batch in batches:
                for packed in batch.column(0).to_pylist():
                    work: RowRange = pickle.loads(packed)
                    for result in work.job(_rows(connection, work.query)):
                        number = pa.array([work.number] * result.num_rows, pa.int64())
                        yield pa.RecordBatch.from_arrays([number, *result.columns], schema=_RESULT_ARROW)

    def _opened(self) -> duckdb.DuckDBPyConnection:
        try:
            return open_source(self.path)
        except NotFoundError:
            raise InvalidError(
                f"an executor of Spark's does not see {self.path}; copy the database to a path that all of them see"
            ) from None


def _rows(connection: duckdb.DuckDBPyConnection, query: str) -> Iterator[pa.RecordBatch]:
    try:
        yield from connection.execute(query).to_arrow_reader(_BATCH_ROWS)
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        raise PenstockError(f"DuckDB cannot read these rows: {str(error).splitlines()[0]}") from None
