"""Delta tables: opening and creating them, and what can be done with one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812

from penstock.delta.format.actions import Protocol
from penstock.delta.format.features import materializes
from penstock.delta.format.schema import TableSchema
from penstock.delta.log.table_log import TableLog
from penstock.delta.reading.file_scan import FileScan
from penstock.delta.reading.listings import list_files, list_history
from penstock.delta.reading.partition_column_checks import Report
from penstock.delta.reading.verification import verify_files
from penstock.delta.writing import maintenance, metadata_changes, statements
from penstock.delta.writing.backfill import backfill
from penstock.delta.writing.compaction import compact
from penstock.delta.writing.creation import create_table
from penstock.delta.writing.linkable_files import LinkableFiles
from penstock.spark.schemas import SchemaLike
from penstock.spark.session import prepare
from penstock.spark.stores import prepare_store
from penstock.spark.versions import chosen_version
from penstock.spark.write_job import Distribution
from penstock.storage.options import options_on_trial
from penstock.storage.paths import absolute, folder
from penstock.storage.progress import titled


class DeltaTable:
    """A Delta table at a path. Verbs that write return the version they made.

    Each call looks at the log anew, so that it sees what other programs have committed.
    """

    def __init__(self, path: str, spark: SparkSession) -> None:
        """Opens a table; `penstock.delta.open` finds the session by itself.

        Args:
            path: The table's directory.
            spark: The session that reads and writes its rows.

        Raises:
            NotFoundError: There is no Delta table at the path.
            UnsupportedError: The table has a feature that readers must know and Penstock does not.
            PenstockError: The table's log is damaged.
        """
        self._spark = spark
        self._log = TableLog(folder(absolute(path)))
        self._log.snapshot()

    @property
    def path(self) -> str:
        """The table's directory, absolute; it ends in a slash."""
        return self._log.path

    @property
    def version(self) -> int:
        """The newest version."""
        return self._log.latest_version()

    @property
    def schema(self) -> T.StructType:
        """The columns, with Delta's metadata of each."""
        return TableSchema.of(self._log.snapshot().metadata).struct

    @property
    def protocol(self) -> Protocol:
        """What the table asks of its readers and writers: `min_reader`, `min_writer` and the features of both."""
        return self._log.snapshot().protocol

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The names of the columns that the table is partitioned by."""
        return tuple(self._log.snapshot().metadata.partition_columns)

    @property
    def materializes_partition_columns(self) -> bool:
        """Whether every new file has to hold its partition columns."""
        return materializes(self._log.snapshot().protocol)

    def read(self, *, version: int | None = None, timestamp: str | datetime | None = None) -> DataFrame:
        """Reads the rows, now or as of a version or a time.

        Partition values are the log's, whatever the files say. Files are chosen when Spark plans a query.

        Args:
            version: The version to read; the newest by default.
            timestamp: The time whose newest version to read, as `2026-11-15 12:00:00+00:00` or a datetime. One without
                a zone is in that of the Spark session.

        Returns:
            The rows, as a plain DataFrame.

        Raises:
            NotFoundError: The table does not have that version, or none so old, or the text is no time.
            InvalidError: Both version and timestamp are given.
            UnsupportedError: The version has a feature that readers must know and Penstock does not.
        """
        wanted = chosen_version(self._spark, version, timestamp, self._log.version_at)
        return FileScan.of(self._spark, self._log, self._log.snapshot(wanted)).frame()

    @titled("append")
    def append(
        self, frame: DataFrame, *, txn: tuple[str, int] | None = None, distribution: Distribution = "auto"
    ) -> int:
        """Adds rows.

        Args:
            frame: The rows. Columns go by name, and those that are not given are NULL.
            txn: An application and its version. Where the table has that version of the application, or a newer one,
                nothing is written: a write that is run again is done once.
            distribution: How rows come to the tasks that write files: "auto", "none" (every task of the DataFrame
                writes files of its own) or "partition" (a shuffle brings the rows of a partition together).

        Returns:
            The version that the rows are in.

        Raises:
            InvalidError: The DataFrame does not have the table's columns, or a row breaks a rule of theirs: NULL where
                none is taken, a text that is too long, a value that does not fit.
            ConflictError: Another writer changed the schema, the protocol or the same `txn` meanwhile; run it again.
            UnsupportedError: Penstock cannot write to the table, because of a feature, a type or where it is.
        """
        return statements.append(self._spark, self._log, frame, txn, distribution)

    @titled("overwrite")
    def overwrite(
        self, frame: DataFrame, *, where: str | SparkColumn | None = None, distribution: Distribution = "auto"
    ) -> int:
        """Puts rows in place of all rows, or of those that a predicate is true for.

        Args:
            frame: The new rows. Columns go by name, and those that are not given are NULL.
            where: The predicate, which the new rows must satisfy too; all rows are replaced by default.
            distribution: How rows come to the tasks that write files, as with `append`.

        Returns:
            The version that the rows are in.

        Raises:
            InvalidError: The DataFrame does not have the table's columns, or a row breaks a rule of theirs or does not
                satisfy the predicate.
            ConflictError: Another writer added or removed rows that this one has read, or changed the schema or the
                protocol, meanwhile; run it again.
            UnsupportedError: The table is append-only, or Penstock cannot write to it.
        """
        if where is None:
            return statements.overwrite(self._spark, self._log, frame, distribution)
        return statements.overwrite_where(self._spark, self._log, frame, where, distribution)

    @titled("delete")
    def delete(self, where: str | SparkColumn | None = None) -> int:
        """Deletes rows. Files that go whole are not read, others that hold such rows are written anew.

        Args:
            where: The predicate that is true for the rows to delete; all rows by default.

        Returns:
            The version without the rows; the newest one where no row matched, and nothing was committed.

        Raises:
            ConflictError: Another writer added or removed rows that this one has read, or changed the schema or the
                protocol, meanwhile; run it again.
            UnsupportedError: The table is append-only, or Penstock cannot write to it.
        """
        if where is None:
            return statements.delete_all(self._log)
        return statements.delete(self._spark, self._log, where)

    def history(self) -> DataFrame:
        """Lists the commits that are still in the log, the newest first.

        Returns:
            A row for each: `version`, `timestamp`, `operation`, its `parameters`, and all that its writer told about
            it as JSON, `info`.
        """
        return list_history(self._spark, self._log)

    def files(self, *, version: int | None = None) -> DataFrame:
        """Lists the data files.

        Args:
            version: The version whose files to list; the newest by default.

        Returns:
            A row for each: `path`, `partition` values by the names in the log, `size` in bytes, `rows` (NULL where the
            log does not say), when it was `modified`, and how many rows its deletion vector has `deleted`.

        Raises:
            NotFoundError: The table does not have that version.
        """
        return list_files(self._spark, self._log.snapshot(version))

    def enable_materialized_partition_columns(self) -> int:
        """Demands of all writers that every new file holds its partition columns.

        Writers under way that do not know fail. Files that are there stay as they are: `backfill` writes them anew.

        Returns:
            The version from which on it holds; the newest where it did already.

        Raises:
            ConflictError: Another writer changed the schema or the protocol meanwhile; run it again.
            UnsupportedError: Penstock cannot write to the table.
        """
        return metadata_changes.enable_materialized_partition_columns(self._log)

    def drop_materialized_partition_columns(self) -> int:
        """No longer demands that files hold their partition columns; those that do stay as they are.

        Returns:
            The version from which on it holds; the newest where it did already.

        Raises:
            ConflictError: Another writer changed the schema or the protocol meanwhile; run it again.
            UnsupportedError: Penstock cannot write to the table.
        """
        return metadata_changes.drop_materialized_partition_columns(self._log)

    def verify(self) -> Report:
        """Looks into every file, by Spark's tasks, for its partition columns.

        They must be there, last, of their type, constant, and have the log's value.

        Returns:
            What was found: `ok` says whether that is nothing.
        """
        return verify_files(FileScan.of(self._spark, self._log, self._log.snapshot()))

    @titled("backfill")
    def backfill(self) -> int:
        """Writes files anew whose partition columns are missing or not as they should be.

        They get the log's values, and the other columns stay what they were, which is proved before the commit. It can
        be stopped and run again at any time. Files that cannot be read stay as they are; `verify` names them.

        Returns:
            The newest version.

        Raises:
            PenstockError: Some files, which it names, could not be copied; all others are.
            ConflictError: Other writers were in the way again and again; what was done stays.
            UnsupportedError: Penstock cannot write to the table.
        """
        return backfill(self._spark, self._log)

    @titled("compact")
    def compact(self, where: str | SparkColumn | None = None, *, target_file_size: int | None = None) -> int:
        """Puts the small files of each partition together into larger ones, by Spark's tasks.

        Rows stay what they are, `dataChange` is false, and old versions keep the old files until `vacuum`. The new
        files have no deletion vectors, and hold the partition columns where the table demands it. A file that holds a
        column in another form than the table has it stays as it is, with a warning in the log of `logging`.

        Args:
            where: A predicate: files take part whose partition values and statistics allow rows that it is true for;
                all by default.
            target_file_size: The bytes up to which files are put together; larger ones do not take part. By default
                what the table's property `delta.targetFileSize` says, or else 128 MiB.

        Returns:
            The version with the new files; the newest one where there is nothing to put together.

        Raises:
            InvalidError: `target_file_size` is no number of bytes, or `where` has a subquery.
            ConflictError: Another writer removed one of the files, or changed the schema or the protocol, meanwhile;
                nothing is left behind: run it again. Rows that others add are not in the way.
            UnsupportedError: Penstock cannot write to the table.
            pyspark.errors.AnalysisException: Spark does not understand the predicate.
        """
        return compact(self._spark, self._log, where, target_file_size)

    def checkpoint(self) -> None:
        """Writes a checkpoint of the newest version, by `deltalake`, which spares readers the commits before it.

        Raises:
            UnsupportedError: `deltalake` is not installed.
        """
        maintenance.checkpoint(self._log)

    def vacuum(
        self, *, retention: timedelta | None = None, dry_run: bool = False, even_linked: bool = False
    ) -> list[str]:
        """Deletes files that no version within the retention has, which `deltalake` finds.

        Args:
            retention: How long files are kept after their removal; by default what the table says, or else a week. It
                is rounded up to whole hours.
            dry_run: Whether to delete nothing, and only say which files would go.
            even_linked: Whether to delete files of a table whose files were linked into a DuckLake table, which may
                show them still. Links that other programs made do not show in the log.

        Returns:
            The paths of the deleted files in the table.

        Raises:
            InvalidError: Files were linked into other tables, or the table's own retention is no duration.
            UnsupportedError: `deltalake` is not installed, or Penstock cannot write to the table.
        """
        return maintenance.vacuum(
            self._log,
            retention=retention,
            dry_run=dry_run,
            enforce_retention=retention is None,
            even_linked=even_linked,
        )

    def linkable_files(self) -> LinkableFiles:
        """Hands out the files of the newest version, for a table of another format that links them.

        DuckLake's `Table.add_delta` asks for them.

        Returns:
            The paths of the files, and what a reader that does not know Delta has to know of them.
        """
        return LinkableFiles(self._log, FileScan.of(self._spark, self._log, self._log.snapshot()))


@options_on_trial()
def create(
    path: str,
    schema: SchemaLike,
    *,
    partitioned_by: Sequence[str] = (),
    materialize_partition_columns: bool = False,
    properties: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
    spark: SparkSession | None = None,
) -> DeltaTable:
    """Makes a Delta table.

    Args:
        path: The table's directory, which is made where it is missing.
        schema: The columns, as Spark's DDL or `StructType` or as an Arrow schema.
        partitioned_by: The names of the columns to partition by.
        materialize_partition_columns: Whether every file has to hold its partition columns, after the others.
        properties: Properties of the table. Those of Delta's are refused by name where Penstock does not keep what they
            ask for; features that they need are listed in the protocol.
        storage_options: Keys and address of the path's bucket; see `penstock.attach`.
        spark: The session that reads and writes rows; by default the one that runs, or else a local one.

    Returns:
        The table, which has no rows.

    Raises:
        InvalidError: There is a table at the path, the schema is none or has a name that Delta does not take, the table
            cannot be partitioned so, or a property has no sense.
        NotFoundError: The schema does not have a column to partition by.
        UnsupportedError: A type that Delta does not have or Penstock does not write, a property whose rules it does not
            keep, a path on an object store that is not S3, or a session of Spark Connect or of another version of
            Spark.
        ConflictError: Another writer created a table at the path meanwhile.
    """
    session = prepare(spark)
    prepare_store(session, path, storage_options)
    log = TableLog(folder(absolute(path)))
    create_table(
        session,
        log,
        schema,
        partitioned_by,
        properties or {},
        materialize_partition_columns=materialize_partition_columns,
    )
    return DeltaTable(path, session)


@options_on_trial()
def open_table(
    path: str, *, storage_options: Mapping[str, str] | None = None, spark: SparkSession | None = None
) -> DeltaTable:
    """Opens a Delta table; exported as `penstock.delta.open`.

    Args:
        path: The table's directory.
        storage_options: Keys and address of the path's bucket; see `penstock.attach`.
        spark: The session that reads and writes rows; by default the one that runs, or else a local one.

    Returns:
        The table.

    Raises:
        NotFoundError: There is no Delta table at the path.
        UnsupportedError: The table has a feature that readers must know and Penstock does not, or the session is one of
            Spark Connect or of another version of Spark.
        PenstockError: The table's log is damaged.
    """
    session = prepare(spark)
    prepare_store(session, path, storage_options)
    return DeltaTable(path, session)
