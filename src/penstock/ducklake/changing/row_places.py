"""Says where rows are that a statement changes: files and packed positions, at hand or kept by the executors."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap64
from pyspark.sql import DataFrame

from penstock.ducklake.reading.scan_columns import FILE

Numbers = npt.NDArray[np.int64]
Place = tuple[int | None, bytes]  # a file, or None for the rows that the catalog keeps, and packed positions
# The positions of so many rows take at most 16 MB, a bit for each row, when they come to the driver.
MOST_ROWS_AT_HAND = 2**27
# The position of a row that is written anew, the clause of a merge that says so, and the source's row that it matched.
PLACE, CLAUSE, MATCHED = MATCH_COLUMNS = ("_penstock_place", "_penstock_clause", "_penstock_matched")
_MATCHES = pa.schema([(name, pa.int64()) for name in MATCH_COLUMNS])
_MOST_MATCHES = 1_000_000  # that are packed together


def pack(positions: Numbers) -> bytes:
    """Pack positions: as a bitmap, so that those of any rows of a file take at most a bit for each row that it has."""
    packed: bytes = BitMap64(array("Q", positions.astype(np.int64).tobytes())).serialize()
    return packed


def unpack(parts: Iterable[bytes]) -> Numbers:
    """The positions that were packed, in order."""
    return numbers_of(join(parts))


def join(parts: Iterable[bytes]) -> BitMap64:
    """The positions that were packed, which still take little room."""
    return BitMap64.union(BitMap64(), *map(BitMap64.deserialize, parts))


def numbers_of(positions: BitMap64) -> Numbers:
    """Positions in order, each with a number of its own."""
    return np.frombuffer(positions.to_array(), np.int64)


def pack_matches(batches: Sequence[pa.RecordBatch]) -> Iterator[tuple[int, bytes]]:
    """Pack batches of the `MATCH_COLUMNS`, not too many rows in a piece; with their count."""
    table = pa.Table.from_batches(batches).cast(_MATCHES)
    for start in range(0, len(table), _MOST_MATCHES):
        sink, piece = pa.BufferOutputStream(), table.slice(start, _MOST_MATCHES)
        with pa.ipc.new_stream(sink, _MATCHES) as stream:
            stream.write_table(piece)
        yield len(piece), bytes(sink.getvalue())


def unpack_matches(matches: bytes) -> pa.Table:
    """The matches that were packed."""
    return pa.ipc.open_stream(matches).read_all()


@dataclass(frozen=True)
class RowPlaces:
    """The places of rows, as tasks packed them."""

    results: DataFrame  # of the tasks
    at_hand: Sequence[Place] | None = None  # the places, where they are little

    @property
    def kept(self) -> DataFrame:
        """The places as rows of `PLACES`, which the executors keep or find again."""
        return self.results.where("positions IS NOT NULL").selectExpr(f"touched AS {FILE}", "positions")

    @cached_property
    def by_file(self) -> Mapping[int | None, BitMap64] | None:
        """The positions in each file, where they are at hand: as bitmaps, since they may be many."""
        if self.at_hand is None:
            return None
        parts: dict[int | None, list[bytes]] = {}
        for file, packed in self.at_hand:
            parts.setdefault(file, []).append(packed)
        return {file: join(packed) for file, packed in parts.items()}

    @property
    def repeats(self) -> bool:
        """Whether two tasks found the same row, where the places are at hand."""
        found = sum(len(BitMap64.deserialize(packed)) for _, packed in self.at_hand or ())
        return found > sum(map(len, (self.by_file or {}).values()))


PLACES = f"{FILE} bigint, positions binary"
