"""Runs the job that changes a table's rows: its tasks write the new ones, and report where the old ones are."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from penstock.ducklake.reading.table_scan import FILE
from penstock.spark.arrow_transfer import run_in_batches
from penstock.spark.file_tasks import file_writing_job
from penstock.spark.kept_rows import Keep
from penstock.spark.workers import map_in_workers
from penstock.spark.write_job import GatherJob, WriteJob, Written, collect_written, gather_rows
from penstock.storage.parquet.names import new_write_id

# What conditions and values may call the rows that are merged into a table.
SOURCE_NAME = "source"
POSITION = "_penstock_position"
# Whether the row is written anew, and the number of the source's row that it matched.
WRITTEN, SOURCE = "_penstock_written", "_penstock_source"
CONTROL_COLUMNS = (FILE, POSITION, WRITTEN, SOURCE)
_RESULT = "file binary, rows binary, touched bigint, positions binary, sources binary"
_ARROW = pa.schema(
    [
        ("file", pa.binary()), ("rows", pa.binary()), ("touched", pa.int64()), ("positions", pa.binary()),
        ("sources", pa.binary()),
    ]
)  # fmt: skip
_NO_FILE = -1
Numbers = npt.NDArray[np.int64]


@dataclass
class _Places:
    """Collects where the rows that went by are, and which rows of a source they matched."""

    positions: dict[int, list[Numbers]] = field(default_factory=dict)
    sources: list[Numbers] = field(default_factory=list)

    def add(self, files: pa.Array, positions: pa.Array, sources: pa.Array) -> None:
        placed = positions.is_valid()
        numbers = positions.filter(placed).to_numpy()
        owners = files.filter(placed).fill_null(_NO_FILE).to_numpy()
        for owner in np.unique(owners):
            self.positions.setdefault(int(owner), []).append(numbers[owners == owner])
        if sources.null_count < len(sources):
            self.sources.append(sources.drop_null().to_numpy())

    def results(self) -> Iterator[pa.RecordBatch]:
        for owner, parts in self.positions.items():
            touched = None if owner == _NO_FILE else owner
            yield _result(touched=touched, positions=_joined(parts))
        if self.sources:
            yield _result(sources=_joined(self.sources))


@dataclass(frozen=True)
class ChangeJob:
    """Does the work of a task on rows that change.

    Batches end in the `CONTROL_COLUMNS`; what is before them is for the writer, if there is one.
    """

    writer: WriteJob | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        places = _Places()
        written = self._written(batches, places)
        if self.writer is None:
            for _ in written:
                pass
        else:
            for batch in self.writer(written):
                yield _result(**batch.to_pylist()[0])
        yield from places.results()

    def _written(self, batches: Iterable[pa.RecordBatch], places: _Places) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            *columns, files, positions, written, sources = batch.columns
            places.add(files, positions, sources)
            if self.writer is None:
                continue
            rows = pa.RecordBatch.from_arrays(columns, names=[f"c{i}" for i in range(len(columns))])
            yield rows if pc.all(written).as_py() else rows.filter(written)


@dataclass(frozen=True)
class ChangeResult:
    """What the tasks did: the new rows, the files that lose rows, and, kept, which rows those are."""

    written: Written
    touched: frozenset[int]
    removes: bool  # rows of files or inlined ones
    results: DataFrame

    @property
    def places(self) -> DataFrame:
        """File (NULL for inlined rows) and positions, as `positions_of` reads them."""
        return self.results.where("positions IS NOT NULL").select(F.col("touched").alias(FILE), "positions")

    @property
    def sources(self) -> DataFrame:
        """The numbers of the source's rows that matched, with repetitions."""
        found = self.results.where("sources IS NOT NULL").select("sources")
        return map_in_workers(found, _unpacked, f"{SOURCE} bigint")


def change_rows(frame: DataFrame, writer: WriteJob | None, directory: str, keep: Keep) -> ChangeResult:
    """Let the tasks write the new rows. The results are kept, so that no row is looked at twice."""
    write_id = writer.plan.write_id if writer else new_write_id()

    def attempt(rows: DataFrame) -> ChangeResult:
        with file_writing_job(rows.sparkSession, directory, write_id) as files:
            results = keep(map_in_workers(rows, ChangeJob(writer), _RESULT))
            flags = [F.col(name).isNotNull().alias(f"has_{name}") for name in ("rows", "positions")]
            told = results.where("sources IS NULL").select("file", "touched", *flags).collect()
            written = Written([pickle.loads(row.file) for row in told if row.file is not None])
            if writer and any(row.has_rows for row in told):
                held = results.where("rows IS NOT NULL").select("file", "rows")
                few = collect_written(gather_rows(held, GatherJob(writer, others=bool(written.files))).collect())
                written = Written([*written.files, *few.files], few.held)
            files.report(written.paths)
        touched = frozenset(row.touched for row in told if row.touched is not None)
        return ChangeResult(written, touched, any(row.has_positions for row in told), results)

    return run_in_batches(frame, attempt)


def positions_of(packed: bytes) -> Numbers:
    """The positions in bytes that a task returned."""
    return np.frombuffer(packed, np.int64)


def _unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for packed in batch.column(0):
            yield pa.RecordBatch.from_arrays([pa.array(positions_of(packed.as_py()))], names=[SOURCE])


def _joined(parts: list[Numbers]) -> bytes:
    return np.concatenate(parts).astype(np.int64).tobytes()


def _result(**values: object) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([values], schema=_ARROW)
