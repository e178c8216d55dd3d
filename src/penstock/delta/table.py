"""A Delta table: the verbs."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from penstock.delta.log.actions import Action, AddFile, Metadata, Protocol, Txn
from penstock.delta.log.commits import Read, commit, everything, nothing
from penstock.delta.log.features import (
    check_readable,
    check_writable,
    materializes,
    with_materialized,
    without_materialized,
)
from penstock.delta.log.links import with_link
from penstock.delta.log.properties import ENABLED, checkpoint_interval, defined, indexed_columns
from penstock.delta.log.schema import TableSchema, check_supported, new_schema, to_json
from penstock.delta.log.table_log import Log, Snapshot
from penstock.delta.reading.file_scan import FILE, Scan
from penstock.delta.writing import maintenance
from penstock.delta.writing.materialization import filled, lacking, verified
from penstock.delta.writing.verification import Report
from penstock.delta.writing.write_job import Writer
from penstock.errors import ConflictError, InvalidError, PenstockError
from penstock.spark.expressions import as_column, has_subquery, spark_quoted
from penstock.spark.schemas import SchemaLike
from penstock.spark.session import prepare
from penstock.spark.versions import chosen_version
from penstock.spark.write_job import Distribution
from penstock.storage.filesystems import delete_file
from penstock.storage.paths import absolute, folder

_HISTORY = "version bigint, timestamp timestamp, operation string, parameters map<string,string>, info string"
_FILES = "path string, partition map<string,string>, size bigint, rows bigint, modified timestamp, deleted bigint"
_FILES_A_COMMIT = 1000
_FILES_NAMED = 10  # in an error
_TRIES = 3


class DeltaTable:
    """A Delta table at a path. Verbs that write return the version they made."""

    def __init__(self, path: str, spark: SparkSession) -> None:
        self._spark = spark
        self._log = Log(folder(absolute(path)))
        self._log.snapshot()

    @property
    def path(self) -> str:
        return self._log.path

    @property
    def version(self) -> int:
        """The newest version."""
        return self._log.latest_version()

    @property
    def schema(self) -> T.StructType:
        return self._schema(self._log.snapshot()).struct

    @property
    def protocol(self) -> Protocol:
        return self._log.snapshot().protocol

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return tuple(self._log.snapshot().metadata.partition_columns)

    @property
    def materializes_partition_columns(self) -> bool:
        """Whether every new file has to hold its partition columns."""
        return materializes(self._log.snapshot().protocol)

    def read(self, *, version: int | None = None, timestamp: str | datetime | None = None) -> DataFrame:
        """The rows, now or as of a version or a time; partition values are the log's, whatever the files say."""
        wanted = chosen_version(self._spark, version, timestamp, self._log.version_at)
        return self._scan(self._log.snapshot(wanted)).frame()

    def append(
        self, frame: DataFrame, *, txn: tuple[str, int] | None = None, distribution: Distribution = "auto"
    ) -> int:
        """Add rows; columns go by name. With `txn`, an application and its version, what was done is skipped."""
        base = self._writable()
        if txn is not None and base.txns.get(txn[0], -1) >= txn[1]:
            return base.version
        writer = self._writer(base)
        added = writer.write(writer.given(frame), distribution)
        return self._commit(base, added, [], "WRITE", {"mode": "Append"}, txn=txn)

    def overwrite(
        self, frame: DataFrame, *, where: str | SparkColumn | None = None, distribution: Distribution = "auto"
    ) -> int:
        """Put rows in place of all, or of those that a predicate is true for: the new rows must satisfy it too."""
        base = self._writable()
        writer = self._writer(base)
        rows = writer.given(frame)
        if where is None:
            added = writer.write(rows, distribution)
            return self._commit(base, added, base.files.values(), "WRITE", {"mode": "Overwrite"}, read=everything)
        predicate, scan = as_column(where), self._scan(base)
        read = self._matching(scan, predicate)
        gone, kept = self._rewritten(scan, writer, predicate)
        try:
            added = [*kept, *writer.write(_satisfying(rows, predicate, str(where)), distribution)]
        except BaseException:
            self._discard(kept)
            raise
        parameters = {"mode": "Overwrite", "predicate": str(where)}
        return self._commit(base, added, gone, "WRITE", parameters, read=read)

    def delete(self, where: str | SparkColumn | None = None) -> int:
        """Delete the rows that a predicate is true for, or all. Files that go whole are not read."""
        base = self._writable()
        if where is None:
            return self._commit(base, [], base.files.values(), "DELETE", {"predicate": "[]"}, read=everything)
        predicate, scan = as_column(where), self._scan(base)
        read = self._matching(scan, predicate)
        gone, kept = self._rewritten(scan, self._writer(base), predicate)
        if not gone:
            return base.version
        parameters = {"predicate": json.dumps([str(where)])}
        return self._commit(base, kept, gone, "DELETE", parameters, read=read)

    def history(self) -> DataFrame:
        """The commits, the newest first."""
        rows = [
            (
                one.version,
                one.timestamp,
                one.info.get("operation"),
                _texts(one.info.get("operationParameters")),
                json.dumps(one.info),
            )
            for one in self._log.history()
        ]
        return self._spark.createDataFrame(rows, _HISTORY)

    def files(self, *, version: int | None = None) -> DataFrame:
        """The data files: their paths, partition values by the names in the log, sizes and rows."""
        rows = [_file_row(file) for file in self._log.snapshot(version).files.values()]
        return self._spark.createDataFrame(rows, _FILES)

    def enable_materialized_partition_columns(self) -> int:
        """From now on every new file holds its partition columns. Writers under way that do not know fail."""
        base = self._writable()
        if materializes(base.protocol):
            return base.version
        configuration = {**base.metadata.configuration, ENABLED: "true"}
        actions: list[Action] = [with_materialized(base.protocol), replace(base.metadata, configuration=configuration)]
        parameters = {"properties": json.dumps({ENABLED: "true"})}
        return commit(self._log, base, actions, "SET TBLPROPERTIES", parameters).version

    def drop_materialized_partition_columns(self) -> int:
        """Files need not hold their partition columns any more; those that do stay as they are."""
        base = self._writable()
        if not materializes(base.protocol):
            return base.version
        configuration = {key: value for key, value in base.metadata.configuration.items() if key != ENABLED}
        actions: list[Action] = [
            without_materialized(base.protocol),
            replace(base.metadata, configuration=configuration),
        ]
        return commit(self._log, base, actions, "DROP FEATURE", {"featureName": "materializePartitionColumns"}).version

    def verify(self) -> Report:
        """Look into every file, by Spark's tasks: are its partition columns there, last, of their type,
        constant, and the log's?"""
        return verified(self.scan())

    def backfill(self) -> int:
        """Write files anew whose partition columns are missing or not as they should be: they get the log's values, and
        the other columns stay what they were. Can be stopped and run again at any time; the newest version.

        Files that cannot be read stay as they are; `verify` names them. A PenstockError names those that could not be
        copied, when all others are."""
        paths = [file.decoded_path for file in lacking(self._scan(self._writable()))]
        left: dict[str, str] = {}
        for start in range(0, len(paths), _FILES_A_COMMIT):
            left |= self._fill(frozenset(paths[start : start + _FILES_A_COMMIT]))
        if left:
            named = "; ".join(f"{path}: {error}" for path, error in sorted(left.items())[:_FILES_NAMED])
            raise PenstockError(
                f"{len(left)} of the files of Delta table {self.path} could not be copied and stay as they are (all "
                f"others have their partition columns); overwrite their rows with Spark: {named}"
            )
        return self.version

    def checkpoint(self) -> None:
        """Write a checkpoint of the newest version, by `deltalake`."""
        maintenance.checkpoint(self._log)

    def vacuum(
        self, *, retention: timedelta | None = None, dry_run: bool = False, even_linked: bool = False
    ) -> list[str]:
        """Delete files that no version of the last week, or of a time of your own, has any more, by `deltalake`.

        Where files were linked into a DuckLake table, which may show them still, it wants `even_linked`. Links that
        other programs made do not show in the log.
        """
        return maintenance.vacuum(
            self._log,
            retention=retention,
            dry_run=dry_run,
            enforce_retention=retention is None,
            even_linked=even_linked,
        )

    def scan(self) -> Scan:
        """The files of the newest version, for those who link them."""
        return self._scan(self._log.snapshot())

    def note_link(self, into: str) -> int:
        """Note in the log that a table elsewhere shows files of this one: `vacuum` then asks before it deletes any."""
        base = self._writable()
        metadata = with_link(base, into)
        if metadata == base.metadata:
            return base.version
        return commit(self._log, base, [metadata], "LINK", {"into": into}).version

    def _fill(self, paths: Collection[str]) -> Mapping[str, str]:
        """Write those of the files anew that are in the table still; errors by the paths of those that cannot be."""
        for _ in range(_TRIES):
            base = self._writable()
            scan = self._scan(base)
            filling = filled(scan, [file for file in scan.files if file.decoded_path in paths])
            if not filling.pairs:
                return filling.left
            now = int(time.time() * 1000)
            removed = [old.removed(now, data_change=False) for old, _ in filling.pairs]
            try:
                with self._or_discarded(base, [new for _, new in filling.pairs]) as added:
                    commit(self._log, base, [*removed, *added], "REORG", {"materialize": "partition columns"})
                return filling.left
            except ConflictError as error:
                conflict = error  # a file has gone meanwhile: look again
        raise conflict

    def _rewritten(self, scan: Scan, writer: Writer, predicate: SparkColumn) -> tuple[list[AddFile], list[AddFile]]:
        """Files with rows that a predicate is true for, and new ones with their other rows."""
        others = ~predicate | predicate.isNull()
        subquery = has_subquery(scan.frame().where(predicate))
        possible = list(scan.files) if subquery else self._files_for(scan, predicate)
        remaining = {file.key for file in (possible if subquery else self._files_for(scan, others))}
        whole = [file for file in possible if file.key not in remaining]
        partly = scan.only(file for file in possible if file.key in remaining)
        matched = partly.frame(with_file=True).where(predicate).select(FILE).distinct() if partly.files else None
        read = partly.only(partly.files[row[0]] for row in (matched.collect() if matched else ()))
        return [*whole, *read.files], writer.write(read.frame().where(others)) if read.files else []

    def _files_for(self, scan: Scan, predicate: SparkColumn) -> list[AddFile]:
        implication = scan.implied(predicate)
        return [file for file in scan.files if scan.skipping.can_hold(file, implication)]

    def _matching(self, scan: Scan, predicate: SparkColumn) -> Read:
        """What a statement has read: the files that can match its predicate."""
        if has_subquery(scan.frame().where(predicate)):
            return everything
        implication = scan.implied(predicate)
        return lambda file: scan.skipping.can_hold(file, implication)

    def _commit(
        self,
        base: Snapshot,
        added: Sequence[AddFile],
        removed: Iterable[AddFile],
        operation: str,
        parameters: Mapping[str, str],
        *,
        read: Read = nothing,
        txn: tuple[str, int] | None = None,
    ) -> int:
        now = int(time.time() * 1000)
        actions: list[Action] = [Txn(txn[0], txn[1], now)] if txn else []
        actions += [file.removed(now) for file in removed]
        actions += added
        with self._or_discarded(base, added):
            done = commit(self._log, base, actions, operation, parameters, read=read)
        if done.skipped:
            self._discard(added)
        else:
            self._checkpoint_after(done.version, base)
        return done.version

    def _checkpoint_after(self, version: int, base: Snapshot) -> None:
        """Write a checkpoint if the table asks for one after this version; that it fails does not undo the commit."""
        interval = checkpoint_interval(base.metadata)
        if interval is not None and version % interval == 0:
            try:
                self.checkpoint()
            except Exception as error:
                warnings.warn(f"no checkpoint was written of Delta table {self.path}: {error}", stacklevel=2)

    @contextmanager
    def _or_discarded(self, base: Snapshot, added: Sequence[AddFile]) -> Iterator[Sequence[AddFile]]:
        """Delete new files where their commit fails, unless it came into the log before it broke off."""
        try:
            yield added
        except PenstockError:
            self._discard(added)
            raise
        except BaseException:
            if not self._has_come_in(base, added):
                self._discard(added)
            raise

    def _has_come_in(self, base: Snapshot, added: Sequence[AddFile]) -> bool:
        own = {file.key for file in added}
        since = range(base.version + 1, self._log.latest_version() + 1)
        actions = (action for version in since for action in self._log.actions(version))
        return any(isinstance(action, AddFile) and action.key in own for action in actions)

    def _discard(self, files: Sequence[AddFile]) -> None:
        for file in files:
            delete_file(folder(self.path) + file.decoded_path)

    def _scan(self, snapshot: Snapshot) -> Scan:
        check_readable(snapshot.protocol, self.path)
        return Scan(self._spark, folder(self.path), self._schema(snapshot), tuple(snapshot.files.values()))

    def _writer(self, snapshot: Snapshot) -> Writer:
        schema = self._schema(snapshot)
        check_supported(self._spark, schema)
        indexed = indexed_columns(snapshot.metadata)
        return Writer(self._spark, folder(self.path), schema, materializes(snapshot.protocol), indexed)

    def _writable(self) -> Snapshot:
        snapshot = self._log.snapshot()
        check_writable(snapshot.protocol, snapshot.metadata, self.path)
        return snapshot

    def _schema(self, snapshot: Snapshot) -> TableSchema:
        metadata = snapshot.metadata
        return TableSchema.of(metadata.schema_string, metadata.partition_columns, dict(metadata.configuration))


def _satisfying(rows: DataFrame, predicate: SparkColumn, text: str) -> DataFrame:
    """The rows, of which one that does not satisfy a predicate makes the job fail."""
    message = f"penstock.errors.InvalidError: a row of the DataFrame does not satisfy {text}, which it is to replace"
    first, *others = rows.columns
    failure = F.raise_error(F.lit(message)).cast(rows.schema[0].dataType)
    checked = F.when(predicate, F.col(spark_quoted(first))).otherwise(failure)
    return rows.select(checked.alias(first), *(F.col(spark_quoted(name)) for name in others))


def _texts(parameters: object) -> dict[str, str]:
    if not isinstance(parameters, Mapping):
        return {}
    return {str(key): value if isinstance(value, str) else json.dumps(value) for key, value in parameters.items()}


def _file_row(file: AddFile) -> tuple[object, ...]:
    told = json.loads(file.stats) if file.stats else {}
    modified = datetime.fromtimestamp(file.modification_time / 1000, UTC)
    deleted = file.deletion_vector.cardinality if file.deletion_vector else 0
    return file.decoded_path, dict(file.partition_values), file.size, told.get("numRecords"), modified, deleted


def create(
    path: str,
    schema: SchemaLike,
    *,
    partitioned_by: Sequence[str] = (),
    materialize_partition_columns: bool = False,
    properties: Mapping[str, str] | None = None,
    spark: SparkSession | None = None,
) -> DeltaTable:
    """Make a Delta table. The schema is Spark's DDL or `StructType`, or an Arrow schema.

    With `materialize_partition_columns`, every file will hold its partition columns, after the others. Properties of
    Delta's are refused by name where Penstock does not keep what they ask for; features that they need are listed.
    """
    session = prepare(spark)
    own = new_schema(schema, partitioned_by)
    check_supported(session, own)
    log = Log(folder(absolute(path)))
    if log.exists():
        raise InvalidError(f"there is a Delta table at {log.path} already; open it, or choose another path")
    definition = defined(own.struct, properties or {}, materialize_partition_columns)
    now = int(time.time() * 1000)
    metadata = Metadata(
        str(uuid4()),
        to_json(own.struct),
        partition_columns=tuple(partitioned_by),
        configuration=definition.configuration,
        created_time=now,
    )
    check_writable(definition.protocol, metadata, log.path)
    commit(
        log, None, [definition.protocol, metadata], "CREATE TABLE", {"partitionBy": json.dumps(list(partitioned_by))}
    )
    return DeltaTable(path, session)


def open_table(path: str, *, spark: SparkSession | None = None) -> DeltaTable:
    """Open a Delta table."""
    return DeltaTable(path, prepare(spark))
