"""Does the work of a task that makes one data file of many: DuckDB reads them and writes it, batch by batch.

No row crosses into the JVM, nor is a column converted: the file holds what the others hold, with the ids of its rows.
"""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import duckdb
import numpy as np
import pyarrow as pa

from penstock.ducklake.files.delete_files import DeletableFile, Positions, read_deleted_positions
from penstock.ducklake.files.sealed_keys import Seal
from penstock.ducklake.maintenance.file_shapes import ROW_ID_READ, SNAPSHOT_ID_READ, Shape, file_shape
from penstock.errors import PenstockError
from penstock.schema.columns import Column
from penstock.schema.embedded_columns import (
    EMBEDDED_ROW_ID,
    EMBEDDED_ROW_ID_FIELD,
    EMBEDDED_SNAPSHOT_ID,
    EMBEDDED_SNAPSHOT_ID_FIELD,
)
from penstock.schema.statistics import WrittenFile
from penstock.storage.duckdb_files import connect_duckdb, load_httpfs, path_literal
from penstock.storage.duckdb_sql import duckdb_quoted, text_literal
from penstock.storage.filesystems import delete_file
from penstock.storage.parquet import FileOptions
from penstock.storage.parquet.duckdb_copy import KEY, copy_options, copy_rows, new_key
from penstock.storage.parquet.duckdb_statistics import DuckDBStatistics
from penstock.storage.parquet.names import new_file_name

RESULT = "bin bigint, file binary"
_RESULT_ARROW = pa.schema([("bin", pa.int64()), ("file", pa.binary())])
_ROW_GROUP_BYTES = 128 * 1024 * 1024  # in files, of which DuckDB holds one for each thread
_COPIED = "_penstock_v"
_POSITION = "file_row_number"


@dataclass(frozen=True)
class SourceFile:
    """A file that is read, without the positions that its delete file has."""

    path: str
    key: str | None  # sealed
    shape: int
    row_id_start: int | None
    begin_snapshot: int
    size: int
    deletes: DeletableFile | None = None
    deleted: tuple[int, ...] = ()  # positions that are deleted in the catalog itself


@dataclass(frozen=True)
class FileBin:
    """What one task makes a file of."""

    number: int
    columns: tuple[Column, ...]
    shapes: tuple[Shape, ...]
    sources: tuple[SourceFile, ...]
    folder: str  # below the table's directory
    record_count: int  # of all sources, with what is deleted
    with_nan: frozenset[int] = frozenset()  # the columns and fields that may have NaN
    current_names: tuple[str | None, ...] = ()  # what the sort order calls the columns


@dataclass(frozen=True)
class CompactionJob:
    """Makes a file of each bin that comes to a task. Bins come pickled, with the keys of encrypted files sealed."""

    directory: str
    options: FileOptions
    write_id: str
    encrypted: bool
    snapshot_ids: bool
    sort: tuple[tuple[str, str], ...] = ()  # expressions, each with direction and place of NULLs
    macros: tuple[str, ...] = ()
    threads: int = 1
    memory: str = "600MB"
    seal: Seal = field(default_factory=Seal)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for packed in batch.column(0).to_pylist():
                work: FileBin = pickle.loads(packed)
                written = _Compaction(self, work).run()
                result = {"bin": [work.number], "file": [pickle.dumps(written)]}
                yield pa.RecordBatch.from_pydict(result, schema=_RESULT_ARROW)


class _Compaction:
    """One bin in one DuckDB."""

    def __init__(self, job: CompactionJob, work: FileBin) -> None:
        self._job, self._work = job, work
        self._path = work.folder + new_file_name(job.write_id)
        self._key = new_key() if job.encrypted else None

    def run(self) -> WrittenFile | None:
        """Write the file; None where no row is left."""
        with tempfile.TemporaryDirectory(prefix="penstock-") as directory, connect_duckdb() as connection:
            connection.execute(f"SET threads = {self._job.threads}")
            connection.execute(f"SET memory_limit = '{self._job.memory}'")
            connection.execute(f"SET temp_directory = {text_literal(directory)}")
            for statement in self._job.macros:
                connection.execute(statement)
            left = self._work.record_count - self._register_deleted(connection)
            if not left:
                return None
            return self._written(connection, left)

    def _written(self, connection: duckdb.DuckDBPyConnection, rows: int) -> WrittenFile:
        location = self._job.directory + self._path
        copied = copy_rows(connection, self._select(connection), location, self._options(), self._key)
        without_id = copied.statistics.get(duckdb_quoted(EMBEDDED_ROW_ID), {}).get("null_count")
        if copied.rows != rows or without_id != "0":
            delete_file(location)
            raise PenstockError(
                f"files of {self._job.directory} hold {copied.rows} rows where the catalog says {rows}, {without_id} "
                "of them without a row id; they are left as they are"
            )
        found = DuckDBStatistics(self._work.columns, copied.statistics, with_nan=self._work.with_nan)
        return WrittenFile(
            path=self._path,
            record_count=copied.rows,
            size=copied.size,
            footer_size=copied.footer_size,
            encryption_key=self._key,
            columns=found.columns(),
            variants=found.variants(),
        )

    def _options(self) -> str:
        options = self._job.options
        a_row = max(1, sum(source.size for source in self._work.sources) // max(1, self._work.record_count))
        fitting = min(options.row_group_bytes or _ROW_GROUP_BYTES, _ROW_GROUP_BYTES) // a_row
        group_rows = max(1, min(options.row_group_size, fitting))
        embedded = [(EMBEDDED_ROW_ID, EMBEDDED_ROW_ID_FIELD)]
        if self._job.snapshot_ids:
            embedded.append((EMBEDDED_SNAPSHOT_ID, EMBEDDED_SNAPSHOT_ID_FIELD))
        return copy_options(self._work.columns, options, group_rows, embedded=embedded, encrypted=self._key is not None)

    def _register_deleted(self, connection: duckdb.DuckDBPyConnection) -> int:
        """Tell DuckDB which rows are deleted: the number of each one's source, and its position there."""
        sources, positions = [], []
        for number, source in enumerate(self._work.sources):
            stored = self._stored_positions(source.deletes) if source.deletes else np.empty(0, np.int64)
            gone = np.union1d(stored, np.array(source.deleted, np.int64))
            sources.append(np.full(len(gone), number, np.int64))
            positions.append(gone)
        deleted = pa.table({"source": np.concatenate(sources), "position": np.concatenate(positions)})
        connection.register("deleted", deleted)
        return int(deleted.num_rows)

    def _stored_positions(self, file: DeletableFile) -> Positions:
        key = self._job.seal.open(file.delete_key, file.delete_path or "")
        return read_deleted_positions(replace(file, delete_key=key))

    def _select(self, connection: duckdb.DuckDBPyConnection) -> str:
        """SQL of the rows, in their order: that of the sources, or the table's own."""
        branches = " UNION ALL ".join(self._branches(connection))
        copied = [f"{_COPIED}{position} AS {duckdb_quoted(c.name)}" for position, c in enumerate(self._work.columns)]
        copied.append(f"{ROW_ID_READ} AS {EMBEDDED_ROW_ID}")
        if self._job.snapshot_ids:
            copied.append(f"{SNAPSHOT_ID_READ} AS {EMBEDDED_SNAPSHOT_ID}")
        rows = f"({branches})"
        if not self._job.sort or not self._work.current_names:
            return f"SELECT {', '.join(copied)} FROM {rows}"
        names = [
            f"{_COPIED}{position} AS {duckdb_quoted(name)}"
            for position, name in enumerate(self._work.current_names)
            if name is not None
        ]
        keys = [f"{expression} AS _penstock_k{i}" for i, (expression, _) in enumerate(self._job.sort)]
        order = [f"_penstock_k{i} {order}" for i, (_, order) in enumerate(self._job.sort)]
        keyed = f"(SELECT *, {', '.join(keys)} FROM (SELECT *, {', '.join(names)} FROM {rows}))"
        return f"SELECT {', '.join(copied)} FROM {keyed} ORDER BY {', '.join(order)}"

    def _branches(self, connection: duckdb.DuckDBPyConnection) -> Iterator[str]:
        """Sources that are read alike come in one branch; those with a key or names of their own, each in its own."""
        shapes = [self._shape(source) for source in self._work.sources]

        def alike(number: int) -> tuple[Shape, int]:
            named = shapes[number].schema is None and shapes[number].signature is None
            return shapes[number], number if named or self._work.sources[number].key is not None else -1

        for (shape, _), members in groupby(range(len(shapes)), key=alike):
            numbers = list(members)
            yield self._branch(connection, numbers[0], [self._work.sources[number] for number in numbers], shape)

    def _shape(self, source: SourceFile) -> Shape:
        shape = self._work.shapes[source.shape]
        return file_shape(source.path, self._work.columns) if shape.checked else shape

    def _branch(
        self, connection: duckdb.DuckDBPyConnection, first: int, sources: Sequence[SourceFile], shape: Shape
    ) -> str:
        read = self._read(connection, first, sources, shape)
        embedded = {ROW_ID_READ, SNAPSHOT_ID_READ}
        names = embedded if shape.schema is not None else _names(connection, read) - embedded
        position = "(row_number() OVER () - 1)" if _POSITION in names else _POSITION
        row_id = f"{_nth([source.row_id_start for source in sources])} + {position}"
        snapshot = _nth([source.begin_snapshot for source in sources])
        for name in names & {ROW_ID_READ, EMBEDDED_ROW_ID}:
            row_id = f"coalesce({name}, {row_id})"
        for name in names & {SNAPSHOT_ID_READ, EMBEDDED_SNAPSHOT_ID}:
            snapshot = f"coalesce({name}, {snapshot})"
        items = [f"{value} AS {_COPIED}{place}" for place, value in enumerate(shape.values)]
        items += [f"{row_id} AS {ROW_ID_READ}", f"{snapshot} AS {SNAPSHOT_ID_READ}"]
        if not any(source.deletes or source.deleted for source in sources):
            return f"SELECT {', '.join(items)} FROM {read}"
        file = str(first) if len(sources) == 1 else f"{first} + CAST(file_index AS BIGINT)"
        placed = f"SELECT {', '.join(items)}, {file} AS _penstock_source, {position} AS _penstock_position FROM {read}"
        return (
            f"SELECT * EXCLUDE (_penstock_source, _penstock_position) FROM ({placed}) placed ANTI JOIN deleted"
            " ON deleted.source = placed._penstock_source AND deleted.position = placed._penstock_position"
        )

    def _read(
        self, connection: duckdb.DuckDBPyConnection, first: int, sources: Sequence[SourceFile], shape: Shape
    ) -> str:
        arguments = [f"[{', '.join(path_literal(source.path) for source in sources)}]", "hive_partitioning = false"]
        if shape.schema is not None:
            arguments.append(f"schema = {shape.schema}")
        key = self._job.seal.open(sources[0].key, sources[0].path)
        if key:
            load_httpfs(connection)
            name = f"{KEY}_{first}"
            connection.execute(f"SET VARIABLE {name} = from_base64(?)", [key])
            arguments.append(f"encryption_config = {{footer_key_value: getvariable({text_literal(name)})}}")
        return f"read_parquet({', '.join(arguments)})"


def _names(connection: duckdb.DuckDBPyConnection, read: str) -> set[str]:
    """The names of a file's columns, of which one may hide DuckDB's own of a row's position."""
    return {row[0].lower() for row in connection.execute(f"DESCRIBE SELECT * FROM {read}").fetchall()}


def _nth(numbers: Sequence[int | None]) -> str:
    """SQL of the number that belongs to the file which a row is of."""
    if len(set(numbers)) == 1:
        return f"CAST({'NULL' if numbers[0] is None else numbers[0]} AS BIGINT)"
    listed = ", ".join("NULL" if number is None else str(number) for number in numbers)
    return f"list_extract(CAST([{listed}] AS BIGINT[]), CAST(file_index AS BIGINT) + 1)"


def idle_threads(cores: int, tasks: int) -> int:
    """How many threads each of few tasks may take, of the cores that would be idle."""
    return max(1, min(cores // max(1, tasks), os.cpu_count() or 1))
