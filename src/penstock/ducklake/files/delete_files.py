"""Writes delete files: the positions of a data file's deleted rows, all of them anew with every delete."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.schema.columns import Column
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


def _write_vector(directory: str, write_id: str, positions: Positions, key: str | None) -> WrittenDelete:
    """In an encrypted lake the extension wants a key in the catalog, and uses it for nothing."""
    path = new_file_name(write_id, _SUFFIX, "puffin")
    blob = encode_deletion_vector(positions)
    make_directory(directory)
    with open_output(directory + path) as sink:
        sink.write(blob)
    return WrittenDelete(path, "puffin", len(positions), len(blob), 0, key)


def _batches(path: str, positions: Positions) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(positions), _POSITIONS_A_BATCH):
        part = pa.array(positions[start : start + _POSITIONS_A_BATCH], pa.int64())
        paths = pa.repeat(pa.scalar(path, pa.string()), len(part))
        yield pa.RecordBatch.from_arrays([paths, part], names=["file_path", "pos"])


def read_deleted_positions(file: DeletableFile) -> Positions:
    """The positions in the delete file that a data file has."""
    if file.delete_path is None:
        return np.empty(0, np.int64)
    if file.delete_format == "puffin":
        return read_deletion_vector(file.delete_path)
    if file.delete_key is not None:
        connection = connect_duckdb()
        rows = connection.execute(f"SELECT pos FROM {read_parquet(connection, file.delete_path, file.delete_key)}")
        return np.asarray(rows.fetchnumpy()["pos"], np.int64)
    with open_file(file.delete_path) as source:
        return np.asarray(pq.read_table(source, columns=["pos"])["pos"].to_numpy(), np.int64)
