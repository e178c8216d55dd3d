"""The verbs of a table that link files which others wrote: no row is copied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.ducklake.files.name_matching import MatchingRules
from penstock.ducklake.model.snapshots import Snapshot
from penstock.ducklake.table_maintenance import TableMaintenance
from penstock.ducklake.transaction import Transaction
from penstock.ducklake.writing import added_files, iceberg_files
from penstock.ducklake.writing.write_target import WriteTarget, target_of, write_target

if TYPE_CHECKING:
    import pyiceberg.table


@dataclass(frozen=True)
class TableLinks(TableMaintenance):
    """A table by name, and the files of others that it can show."""

    def add_files(
        self,
        paths: added_files.Paths,
        *,
        allow_missing: bool = False,
        ignore_extra_columns: bool = False,
        hive_partitioning: bool | None = None,
    ) -> Snapshot | None:
        """Links Parquet files into the table as they are; no row is copied. Columns go by name, in any case.

        Types must be the table's or narrower ones. A directory like `region=EU` gives that column's value, whatever
        the file says. The files are the lake's from then on: DuckLake's clean-up, this one's or DuckDB's, may delete
        them when no snapshot shows them any more. Nobody else may change, move or delete them.

        Args:
            paths: Files, folders (all below them that end in `.parquet`, but for what is in folders like `_temporary`),
                or patterns: `/data/2026-*/**/*.parquet`.
            allow_missing: Whether a column that a file lacks reads as NULL or as the default it was added with.
            ignore_extra_columns: Whether columns that the table lacks are hidden.
            hive_partitioning: False takes no values from directories.

        Returns:
            The snapshot; inside a transaction, None.

        Raises:
            InvalidError: A file is no Parquet file, is linked already, or has other columns; it names file and column.
            NotFoundError: There is no such file.
            UnsupportedError: A file has what DuckLake cannot show.
        """
        rules = MatchingRules(allow_missing, ignore_extra_columns, hive_partitioning)
        given = added_files.given_paths(paths)
        with self._attachment.statement() as transaction:
            added_files.add_files(transaction, self._attachment.spark, self._target(transaction), given, rules)
        return transaction.snapshot

    def add_delta(self, table: added_files.LinkableTable) -> Snapshot | None:
        """Links the live files of a Delta table's newest version into this one; no row is copied.

        How either is partitioned does not matter: every file must hold its partition columns, as those of a table
        with materialized partition columns do (`table.backfill()` writes them into older files).

        Two owners share the files then. Delta's VACUUM deletes those that the Delta table has replaced or dropped
        since, and this lake still shows them: the link is noted in Delta's log (a version without a change), and
        Penstock's `vacuum` asks, but other programs do not know of it. DuckLake's clean-up (after a delete, a
        compaction and the expiry of snapshots, here or in DuckDB) deletes those that the Delta table may still show.
        While both are in use, neither vacuum the one nor clean up the other; where the Delta table is to go for good,
        remove its log, not its files. Rows that come to the Delta table later are not here.

        Args:
            table: The Delta table, as `penstock.delta.open` gives it; it has the same columns by name.

        Returns:
            The snapshot; inside a transaction, None.

        Raises:
            InvalidError: The tables do not have the same columns, a file lacks its partition columns or does not fit,
                or is in this table already.
            UnsupportedError: The Delta table has deletion vectors, which DuckLake does not know.
        """
        with self._attachment.statement() as transaction:
            added_files.add_delta(transaction, self._attachment.spark, self._target(transaction), table)
        return transaction.snapshot

    def add_iceberg(self, table: pyiceberg.table.Table) -> Snapshot | None:
        """Links the live files of an Iceberg table into this one; no row is copied.

        Columns are found by Iceberg's field ids: what was renamed, added or promoted there since a file was written
        reads here as it does there. How either is partitioned does not matter.

        Two owners share the files then. Iceberg's `expire_snapshots` and `remove_orphan_files` delete those that its
        table has replaced since, and this lake still shows them; DuckLake's clean-up (after a delete, a compaction and
        the expiry of snapshots, here or in DuckDB) deletes those that the Iceberg table may still show. Neither knows
        of the other. Rows that come to the Iceberg table later are not here.

        Args:
            table: A table of pyiceberg's (`pip install 'penstock[iceberg]'`) as it was loaded or last refreshed; it has
                the same columns by name. `lake.create_table("t", table.schema().as_arrow())` makes one like it.

        Returns:
            The snapshot; inside a transaction, None.

        Raises:
            InvalidError: The tables do not have the same columns, or a file does not fit, lacks a column that it is
                partitioned by, or is in this table already.
            UnsupportedError: The Iceberg table has delete files, files that are not Parquet, or a column of a type that
                DuckLake does not have.
        """
        with self._attachment.statement() as transaction:
            iceberg_files.add_iceberg(transaction, self._attachment.spark, self._target(transaction), table)
        return transaction.snapshot

    def _target(self, transaction: Transaction) -> WriteTarget:
        shown, options = transaction.shown(), self._attachment.options
        if not transaction.staging.is_empty:
            return write_target(transaction, self._info(shown), options)
        base, known = transaction.staging.base, self._attachment.known_tables
        table = known.find(shown.database, base, shown.data_path, self.schema_name, self.name)
        transaction.staging.histories[table.info.id] = table.history
        return target_of(transaction, table, options)
