"""Writes delete files: the positions of a data file's deleted rows, all of them anew with every delete."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.schema.columns import Column
from penstock.schema.embedded_columns import EMBEDDED_SNAPSHOT_ID, EMBEDDED_SNAPSHOT_ID_FIELD
from penstock.schema.types import Type
from penstock.storage.deletion_vectors import encode_deletion_vector, read_deletion_vector
from penstock.storage.duckdb_files import connect_duckdb, read_parquet
from penstock.storage.filesystems import make_directory, open_file, open_output
from penstock.storage.parquet import FileOptions, WritePlan, write_files
from penstock.storage.parquet.duckdb_copy import new_key
from penstock.storage.parquet.names import new_file_name

Positions = npt.NDArray[np.int64]
_COLUMNS = (
    Column(2147483646, "file_path", Type("varchar"), 0),
    Column(2147483645, "pos", Type("int64"), 0),
)
_DATED_COLUMNS = (*_COLUMNS, Column(EMBEDDED_SNAPSHOT_ID_FIELD, EMBEDDED_SNAPSHOT_ID, Type("int64"), 0))
_SUFFIX = "-delete"
_POSITIONS_A_BATCH = 100_000
_ONE_FILE = 2**62


@dataclass(frozen=True)
class DeletableFile:
    """A data file that loses rows, and what it lost before."""

    id: int
    path: str  # absolute
    record_count: int
    delete_file_id: int | None = None
    delete_path: str | None = None  # absolute
    delete_format: str | None = None
    delete_key: str | None = field(default=None, repr=False)
    inlined_deletes: int = 0  # positions that are deleted in the catalog itself
    delete_begin: int | None = None  # the snapshot that the delete file begins with
    deleted: int = 0  # how many positions the delete file has


@dataclass(frozen=True)
class DatedPositions:
    """Positions of deleted rows, in order, and the snapshot that deleted each."""

    positions: Positions
    snapshots: Positions

    @staticmethod
    def of(positions: Positions, snapshots: Positions) -> DatedPositions:
        """Positions in any order; of one that comes twice, the first snapshot counts."""
        order = np.lexsort((snapshots, positions))
        kept = np.ones(len(order), bool)
        kept[1:] = positions[order][1:] != positions[order][:-1]
        return DatedPositions(positions[order][kept], snapshots[order][kept])

    def joined(self, other: DatedPositions) -> DatedPositions:
        """The positions of both."""
        return DatedPositions.of(
            np.concatenate([self.positions, other.positions]), np.concatenate([self.snapshots, other.snapshots])
        )


@dataclass(frozen=True)
class WrittenDelete:
    """A delete file that is complete on storage and that no snapshot shows yet."""

    path: str  # relative to the table's directory
    format: str
    count: int
    size: int
    footer_size: int
    encryption_key: str | None = field(default=None, repr=False)


def write_delete_file(
    directory: str, write_id: str, file: DeletableFile, positions: Positions, *, vectors: bool, encrypted: bool
) -> WrittenDelete:
    """Write all positions of one data file, in order: as a deletion vector, which nothing encrypts, or as Parquet."""
    if vectors:
        return _write_vector(directory, write_id, positions, new_key() if encrypted else None)
    options = FileOptions(target_file_size=_ONE_FILE)
    plan = WritePlan(_COLUMNS, directory, options, encrypted=encrypted, suffix=_SUFFIX, write_id=write_id)
    [written] = write_files(plan, _batches(file.path, positions), _ONE_FILE)
    return WrittenDelete(
        written.path, "parquet", len(positions), written.size, written.footer_size, written.encryption_key
    )


def write_dated_delete_file(
    directory: str, write_id: str, path: str, deleted: DatedPositions, *, encrypted: bool
) -> WrittenDelete:
    """Write all positions of the data file at a path, each with the snapshot that deleted it."""
    options = FileOptions(target_file_size=_ONE_FILE)
    plan = WritePlan(_DATED_COLUMNS, directory, options, encrypted=encrypted, suffix=_SUFFIX, write_id=write_id)
    [written] = write_files(plan, _batches(path, deleted.positions, deleted.snapshots), _ONE_FILE)
    count = len(deleted.positions)
    return WrittenDelete(written.path, "parquet", count, written.size, written.footer_size, written.encryption_key)


def _write_vector(directory: str, write_id: str, positions: Positions, key: str | None) -> WrittenDelete:
    """In an encrypted lake the extension wants a key in the catalog, and uses it for nothing."""
    path = new_file_name(write_id, _SUFFIX, "puffin")
    blob = encode_deletion_vector(positions)
    make_directory(directory)
    with open_output(directory + path) as sink:
        sink.write(blob)
    return WrittenDelete(path, "puffin", len(positions), len(blob), 0, key)


def _batches(path: str, *columns: Positions) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(columns[0]), _POSITIONS_A_BATCH):
        parts = [pa.array(column[start : start + _POSITIONS_A_BATCH], pa.int64()) for column in columns]
        paths = pa.repeat(pa.scalar(path, pa.string()), len(parts[0]))
        names = [column.name for column in _DATED_COLUMNS[: 1 + len(parts)]]
        yield pa.RecordBatch.from_arrays([paths, *parts], names=names)


def read_deleted_positions(file: DeletableFile) -> Positions:
    """The positions in the delete file that a data file has."""
    return read_dated_positions(file).positions


def read_dated_positions(file: DeletableFile) -> DatedPositions:
    """The positions in the delete file that a data file has, with the snapshots that deleted them.

    Where the file does not tell, they are of the snapshot that the delete file begins with.
    """
    if file.delete_path is None:
        return DatedPositions(np.empty(0, np.int64), np.empty(0, np.int64))
    if file.delete_format == "puffin":
        positions = read_deletion_vector(file.delete_path)
        return DatedPositions.of(positions, np.full(len(positions), file.delete_begin or 0, np.int64))
    table = _stored_positions(file, file.delete_path)
    positions = np.asarray(table["pos"].to_numpy(), np.int64)
    begin = pa.scalar(file.delete_begin or 0, pa.int64())
    if EMBEDDED_SNAPSHOT_ID not in table.column_names:
        return DatedPositions.of(positions, np.full(len(positions), begin.as_py(), np.int64))
    snapshots = table[EMBEDDED_SNAPSHOT_ID].cast(pa.int64()).fill_null(begin)
    return DatedPositions.of(positions, np.asarray(snapshots.to_numpy(), np.int64))


def _stored_positions(file: DeletableFile, path: str) -> pa.Table:
    if file.delete_key is not None:
        connection = connect_duckdb()
        source = read_parquet(connection, path, file.delete_key)
        return connection.execute(f"SELECT * EXCLUDE (file_path, file_row_number) FROM {source}").to_arrow_table()
    with open_file(path) as stored:
        parquet = pq.ParquetFile(stored)
        wanted = [name for name in parquet.schema_arrow.names if name in ("pos", EMBEDDED_SNAPSHOT_ID)]
        return parquet.read(wanted)
