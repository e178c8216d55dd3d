"""Runs the job that changes a table's rows: its tasks write the new ones, and report where the old ones are."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Row

from penstock.ducklake.changing.row_places import MATCH_COLUMNS, Numbers, Place, RowPlaces, pack, pack_matches
from penstock.ducklake.reading.scan_columns import FILE
from penstock.spark.arrow_transfer import run_in_batches
from penstock.spark.file_tasks import file_writing_job, interruptible_job
from penstock.spark.found_rows import found_rows
from penstock.spark.kept_rows import Keep
from penstock.spark.projection import SqlColumn, projected
from penstock.spark.workers import Mapping, map_in_workers
from penstock.spark.write_job import WRITE_RESULT, GatherJob, WriteJob, Written, collect_written, gather_rows
from penstock.storage.parquet.names import new_write_id

# What conditions and values may call the rows that are merged into a table.
SOURCE_NAME = "source"
POSITION = "_penstock_position"
# Whether the row is written anew, and the number of the source's row that it matched.
WRITTEN, SOURCE = "_penstock_written", "_penstock_source"
CONTROL_COLUMNS = (FILE, POSITION, WRITTEN, SOURCE)
_RESULT = (
    "file binary, rows binary, touched bigint, positions binary, repeated boolean, matches binary,"
    " match_count bigint, sources array<bigint>, source_count bigint"
)
_ARROW = pa.schema(
    [
        ("file", pa.binary()), ("rows", pa.binary()), ("touched", pa.int64()), ("positions", pa.binary()),
        ("repeated", pa.bool_()), ("matches", pa.binary()), ("match_count", pa.int64()),
        ("sources", pa.list_(pa.int64())), ("source_count", pa.int64()),
    ]
)  # fmt: skip
_NO_FILE = -1
_SOURCES_A_RESULT = 100_000


@dataclass
class _Places:
    """Collects where the rows that went by are, and which rows of a source they matched."""

    positions: dict[int, list[Numbers]] = field(default_factory=dict)
    matches: dict[int, list[pa.RecordBatch]] = field(default_factory=dict)
    sources: list[Numbers] = field(default_factory=list)

    def add(self, files: pa.Array, positions: pa.Array, sources: pa.Array) -> None:
        placed = positions.is_valid()
        numbers = positions.filter(placed).to_numpy()
        owners = files.filter(placed).fill_null(_NO_FILE).to_numpy()
        for owner in np.unique(owners):
            self.positions.setdefault(int(owner), []).append(numbers[owners == owner])
        if sources.null_count < len(sources):
            self.sources.append(sources.drop_null().to_numpy())

    def add_matches(self, files: pa.Array, matches: pa.RecordBatch) -> None:
        owners = files.fill_null(_NO_FILE)
        for owner in owners.unique().to_pylist():
            self.matches.setdefault(owner, []).append(matches.filter(pc.equal(owners, owner)))

    def results(self) -> Iterator[pa.RecordBatch]:
        for owner, parts in self.positions.items():
            touched = None if owner == _NO_FILE else owner
            found = np.concatenate(parts)
            yield _result(touched=touched, positions=pack(found), repeated=len(np.unique(found)) < len(found))
        for owner, batches in self.matches.items():
            touched = None if owner == _NO_FILE else owner
            for count, packed in pack_matches(batches):
                yield _result(touched=touched, matches=packed, match_count=count)
        matched = np.unique(np.concatenate(self.sources)) if self.sources else ()
        for start in range(0, len(matched), _SOURCES_A_RESULT):
            piece = matched[start : start + _SOURCES_A_RESULT]
            yield _result(sources=piece, source_count=len(piece))


@dataclass(frozen=True)
class ChangeJob:
    """Does the work of a task on rows that change.

    Batches end in the `CONTROL_COLUMNS`; what is before them is for the writer, if there is one. With `matches`, it is
    what is to be told of the rows that are to be written: `MATCH_COLUMNS` but for the place. A completion makes such
    batches of what comes.
    """

    writer: WriteJob | None
    matches: bool = False
    completion: Mapping | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        places = _Places()
        written = self._written(self.completion(batches) if self.completion else batches, places)
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
            if self.matches:
                found = pa.RecordBatch.from_arrays([positions, *columns], names=list(MATCH_COLUMNS))
                places.add_matches(files.filter(written), found.filter(written))
            if self.writer is None:
                continue
            rows = pa.RecordBatch.from_arrays(columns, names=[f"c{i}" for i in range(len(columns))])
            yield rows if pc.all(written).as_py() else rows.filter(written)


@dataclass(frozen=True)
class ChangeResult:
    """What the tasks did: the new rows, and the places of those that go."""

    written: Written
    touched: frozenset[int]  # the files that lose rows
    removes: bool  # rows of files or inlined ones
    results: DataFrame
    at_hand: Sequence[Place] | None
    repeated: bool = False  # whether a task met a row twice
    match_count: int = 0  # how many matches there are, where they were asked for
    source_count: int = 0  # how many numbers `sources` has

    @property
    def count(self) -> int:
        """How many rows go, where their places are at hand."""
        return sum(map(len, (self.places.by_file or {}).values()))

    @property
    def repeats(self) -> bool:
        """Whether a row goes twice, where the places are at hand."""
        return self.repeated or self.places.repeats

    @cached_property
    def places(self) -> RowPlaces:
        """Where the rows are that go."""
        return RowPlaces(self.results, self.at_hand)

    @property
    def matches(self) -> DataFrame:
        """FILE and packed matches, where they were asked for."""
        return self.results.where("matches IS NOT NULL").selectExpr(f"touched AS {FILE}", "matches")

    @property
    def sources(self) -> DataFrame:
        """The numbers of the source's rows that matched, with repetitions."""
        told = self.results.where("sources IS NOT NULL")
        return projected(told, [SqlColumn(SOURCE, "explode(`sources`)")])


def change_rows(
    frame: DataFrame,
    writer: WriteJob | None,
    directory: str,
    keep: Keep | None,
    at_hand: bool = False,
    *,
    matches: bool = False,
    completion: Mapping | None = None,
) -> ChangeResult:
    """Let the tasks write the new rows. The results are kept, so that no row is looked at twice.

    Without `keep` all of them come to the driver in one go instead: for few tasks that hold few rows. With `at_hand`,
    where the positions of all rows are little, these do. With `matches` and no writer, what rows are to be written of
    is kept for later. A completion adds what the frame lacks of the rows.
    """
    write_id = writer.plan.write_id if writer else new_write_id()

    def attempt(rows: DataFrame) -> ChangeResult:
        with file_writing_job(rows.sparkSession, directory, write_id) as files:
            results = map_in_workers(rows, ChangeJob(writer, matches, completion), _RESULT)
            results = keep(results) if keep else results
            told = _told(results, at_hand, rows=keep is None)
            written = Written([pickle.loads(row.file) for row in told if row.file is not None])
            if writer and any(row.has_rows for row in told):
                gather = GatherJob(writer, others=bool(written.files))
                few = _gathered(results, gather) if keep else _gathered_here(told, gather)
                written = Written([*written.files, *few.files], few.held)
            files.report(written.paths)
        return _changed(written, told, results, at_hand)

    return run_in_batches(frame, attempt)


def _gathered(results: DataFrame, gather: GatherJob) -> Written:
    held = results.where("rows IS NOT NULL").select("file", "rows")
    return collect_written(gather_rows(held, gather).collect())


def _gathered_here(told: Sequence[Row], gather: GatherJob) -> Written:
    held = [{"file": None, "rows": bytes(row.rows)} for row in told if row.has_rows]
    batches = gather([pa.RecordBatch.from_pylist(held, schema=WRITE_RESULT)])
    return collect_written([Row(**one) for batch in batches for one in batch.to_pylist()])


def find_rows(frame: DataFrame) -> ChangeResult:
    """Find rows by their files and positions, in one job: the positions of all of them are little."""
    with interruptible_job(frame.sparkSession):
        places = found_rows(frame.select(FILE, POSITION))
    touched = frozenset(file for file, _ in places if file is not None)
    return ChangeResult(Written(), touched, bool(places), frame, places)


def _told(results: DataFrame, at_hand: bool, *, rows: bool = False) -> list[Row]:
    positions = "positions" if at_hand else "CAST(NULL AS BINARY) AS positions"
    held = "rows" if rows else "CAST(NULL AS BINARY) AS rows"
    flags = [f"{name} IS NOT NULL AS has_{name}" for name in ("rows", "positions")]
    plain = ("file", "touched", "repeated", "match_count", "source_count")
    return results.selectExpr(*plain, *flags, positions, held).collect()


def _changed(written: Written, told: Sequence[Row], results: DataFrame, at_hand: bool) -> ChangeResult:
    removing = [row for row in told if row.has_positions]
    touched = frozenset(row.touched for row in removing if row.touched is not None)
    places = [(row.touched, bytes(row.positions)) for row in removing] if at_hand else None
    repeated = any(row.repeated for row in removing)
    matches, sources = (sum(row[name] or 0 for row in told) for name in ("match_count", "source_count"))
    return ChangeResult(written, touched, bool(removing), results, places, repeated, matches, sources)


def _result(**values: object) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([values], schema=_ARROW)
