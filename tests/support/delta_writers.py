"""Writers of a Delta table that need no Spark: they do themselves what tasks do, and commit as the verbs do."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyspark.sql import types as T  # noqa: N812

from penstock.delta.format.actions import Action, AddFile, Metadata, Protocol, Txn
from penstock.delta.format.features import materializes, with_materialized
from penstock.delta.format.file_paths import partition_directory
from penstock.delta.format.partition_values import array_texts
from penstock.delta.format.schema import TableSchema, new_schema, schema_string
from penstock.delta.log.commits import Committed, commit
from penstock.delta.log.snapshot import LogSnapshot
from penstock.delta.log.table_log import TableLog
from penstock.delta.reading.partition_column_checks import Finding, check_file
from penstock.delta.writing.file_writer import FileWriter
from penstock.errors import ConflictError
from penstock.spark.write_job import WriteJob
from penstock.storage import filesystems
from penstock.storage.parquet import FileOptions, WritePlan
from support.duckdb_connection import duckdb_with
from support.processes import READY

STRUCT = T.StructType(
    [
        T.StructField("country", T.StringType()),
        T.StructField("id", T.LongType(), False),
        T.StructField("batch", T.StringType()),
    ]
)
ARROW = pa.schema([("id", pa.int64()), ("batch", pa.string()), ("country", pa.string())])  # as in files
COLUMNS = "id, batch, country"

Row = tuple[int, str | None, str | None]


@dataclass(frozen=True)
class Writer:
    """One client of a table in a directory, partitioned by country."""

    root: str

    @classmethod
    def create(cls, root: Path, **properties: str) -> Writer:
        configuration = {f"delta.{name}": value for name, value in properties.items()}
        metadata = Metadata(
            str(uuid4()),
            schema_string(new_schema(STRUCT, ["country"]).struct),
            partition_columns=("country",),
            configuration=configuration,
            created_time=0,
        )
        commit(TableLog(str(root)), None, [Protocol(1, 2), metadata], "CREATE TABLE", {})
        return cls(str(root))

    @property
    def log(self) -> TableLog:
        return TableLog(self.root)

    def append(self, batch: str, rows: Iterable[tuple[int, str | None]], txn: tuple[str, int] | None = None) -> int:
        """Rows of id and country."""
        base = self.log.snapshot()
        return self.commit(base, self.written(base, batch, rows), txn).version

    def written(self, base: LogSnapshot, batch: str, rows: Iterable[tuple[int, str | None]]) -> list[AddFile]:
        """What tasks leave behind: files that are in no version yet."""
        ids, countries = zip(*rows, strict=True)
        arrays = [pa.array(ids, pa.int64()), pa.array([batch] * len(ids)), pa.array(countries, pa.string())]
        writer = FileWriter(cast(Any, None), self.root + "/", _schema(base), materializes(base.protocol), 32)
        columns = writer.schema.written_columns(writer.spark, materialized=True)
        plan = WritePlan(
            columns=columns if writer.materialized else columns[:-1],
            directory=writer.root,
            options=FileOptions(target_file_size=2**20, row_group_size=1000, row_group_bytes=2**20),
            partition_names=("country",),
            extra_columns=0 if writer.materialized else 1,
            prefix="part-",
            field_ids=False,
            folder=partition_directory,
        )
        files = WriteJob(plan, writer._keys(columns)).files([pa.RecordBatch.from_arrays(arrays, schema=ARROW)])
        return [writer.added(file) for file in files]

    def commit(self, base: LogSnapshot, added: list[AddFile], txn: tuple[str, int] | None = None) -> Committed:
        """Files that do not come into the table are removed, as the verbs do it."""
        actions: list[Action] = [*([Txn(*txn)] if txn else []), *added]
        try:
            done = commit(self.log, base, actions, "WRITE", {"mode": "Append"})
        except ConflictError:
            self._discard(added)
            raise
        if done.skipped:
            self._discard(added)
        return done

    def _discard(self, files: Iterable[AddFile]) -> None:
        for file in files:
            Path(self.root, file.decoded_path).unlink()

    def enable(self) -> int:
        base = self.log.snapshot()
        return commit(self.log, base, [with_materialized(base.protocol)], "SET TBLPROPERTIES", {}).version

    def set_property(self, name: str, value: str) -> int:
        base = self.log.snapshot()
        metadata = replace(base.metadata, configuration={**base.metadata.configuration, name: value})
        return commit(self.log, base, [metadata], "SET TBLPROPERTIES", {}).version

    def rows(self, version: int | None = None) -> list[Row]:
        """All rows, whose countries are the log's, in order."""
        found: list[Row] = []
        for file in self.log.snapshot(version).files.values():
            table = pq.read_table(Path(self.root, file.decoded_path), columns=["id", "batch"], partitioning=None)
            found += [(row["id"], row["batch"], file.partition_values["country"]) for row in table.to_pylist()]
        return in_order(found)

    def ids(self, version: int | None = None) -> list[int]:
        return [row[0] for row in self.rows(version)]

    def data_files(self) -> list[str]:
        """Those on the disk, whether a version has them or not."""
        return sorted(str(path.relative_to(self.root)) for path in Path(self.root).rglob("*.parquet"))

    def live_files(self) -> list[str]:
        return sorted(path for path, _ in self.log.snapshot().files)

    def added_by(self, version: int) -> list[AddFile]:
        return [action for action in self.log.actions(version) if isinstance(action, AddFile)]

    def findings(self, file: AddFile) -> list[Finding]:
        """What is wrong with the partition columns inside a file."""
        path = str(Path(self.root, file.decoded_path))
        return check_file(path, ["id", "batch"], {"country": "string"}, file.partition_values, _texts)

    def unfinished(self) -> list[Path]:
        """Temporary files of commits."""
        return list(Path(self.root, "_delta_log").glob("*.tmp"))


def _schema(snapshot: LogSnapshot) -> TableSchema:
    return TableSchema.of(snapshot.metadata)


def in_order(rows: Iterable[Any]) -> list[Row]:
    return sorted((tuple(row) for row in rows), key=lambda row: (row[0], str(row)))


def by_deltalake(root: str) -> list[Row]:
    return in_order(tuple(row[name] for name in ARROW.names) for row in DeltaTable(root).to_pyarrow_table().to_pylist())


def by_duckdb(root: str) -> list[Row]:
    return in_order(duckdb_with("delta").execute(f"SELECT {COLUMNS} FROM delta_scan('{root}')").fetchall())


# What runs in processes of its own.


@dataclass(frozen=True)
class Attempt:
    """One try of an append: the version it began with, and the one it made or what it was told."""

    base: int
    version: int | None
    told: str = ""


def appends(root: str, number: int, batches: int, held: int | None, pipe: Connection) -> None:
    """Append batches, again and again where others are in the way. `held` is the batch whose first try waits, its
    files written, until the test says more."""
    writer, attempts = Writer(root), []
    pipe.send(READY)
    pipe.recv()
    for batch in range(batches):
        first = (number * batches + batch) * 4
        rows = list(zip(range(first, first + 4), ["US", "a/b=%", None, f"of {number}"], strict=True))
        waits = batch == held
        while True:
            base = writer.log.snapshot()
            files = writer.written(base, f"{number}.{batch}", rows)
            if waits:
                pipe.send(READY)
                pipe.recv()
                waits = False
            try:
                attempts.append(Attempt(base.version, writer.commit(base, files).version))
                break
            except ConflictError as error:
                attempts.append(Attempt(base.version, None, str(error)))
    pipe.send(attempts)


def switches_at(root: str, version: int, pipe: Connection) -> None:
    """Switch the feature on when the table has come to a version."""
    writer = Writer(root)
    pipe.send(READY)
    pipe.recv()
    while writer.log.latest_version() < version:
        time.sleep(0.001)
    pipe.send(writer.enable())


def transacts(root: str, number: int, versions: int, pipe: Connection) -> None:
    """Write all versions of one application, as others do at the same time."""
    writer, told = Writer(root), []
    pipe.send(READY)
    pipe.recv()
    for version in range(versions):
        for _ in range(2):
            try:
                writer.append(f"by {number}", [(version, "US"), (version, None)], ("app", version))
                break
            except ConflictError as error:
                told.append(str(error))
    pipe.send(told)


def dies(root: str, moment: str, pipe: Connection) -> None:
    """Append, and stop at a moment of the commit."""

    def stop(*_: Any) -> None:
        pipe.send(READY)
        time.sleep(600)
        sys.exit("nobody killed it")

    class Half:
        """A file that takes half of what it is given."""

        def __init__(self, *arguments: Any) -> None:
            self._file = open(*arguments)  # noqa: SIM115

        def __enter__(self) -> Half:
            return self

        def __exit__(self, *_: object) -> None:
            raise AssertionError("it is still being written")

        def write(self, content: bytes) -> None:
            self._file.write(content[: len(content) // 2])
            self._file.flush()
            stop()

    owner, name, instead = {
        "written in part": (filesystems, "open", Half),
        "written": (os, "link", stop),
        "linked": (os, "unlink", stop),
        "linked and tidied": (filesystems, "_sync_directory", stop),
    }[moment]
    setattr(owner, name, instead)
    Writer(root).append("dead", [(100, "US"), (101, "new"), (102, None)])


def described(attempts: Iterable[Attempt]) -> str:
    return json.dumps([(one.base, one.version, one.told) for one in attempts])


def attempts_of(text: str) -> list[Attempt]:
    return [Attempt(*one) for one in json.loads(text)]


def _texts(array: pa.Array, column: str) -> pa.StringArray:
    return array_texts(array, "string")
