"""The maintenance of a table: verbs that make few large files of many small ones, and files without deleted rows."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from penstock.ducklake.attachment import Attachment
from penstock.ducklake.maintenance import compacted_tables, inlined_flush
from penstock.ducklake.maintenance.compaction import Compacted
from penstock.ducklake.maintenance.inlined_flush import FlushedTable
from penstock.ducklake.readable_table import ReadableTable
from penstock.spark.local_rows import local_frame

_FLUSHED = "schema_name string, table_name string, rows_flushed long"
_COMPACTED = "schema_name string, table_name string, files_processed long, files_created long"


def compacted_frame(attachment: Attachment, lines: list[Compacted]) -> DataFrame:
    """What a compaction did, as the extension tells it."""
    return local_frame(attachment.spark, lines, _COMPACTED)


def flushed_frame(attachment: Attachment, lines: list[FlushedTable]) -> DataFrame:
    """What a flush did, as the extension tells it."""
    return local_frame(attachment.spark, lines, _FLUSHED)


@dataclass(frozen=True)
class TableMaintenance(ReadableTable):
    """A table by name, and what keeps it small and quick. Each verb makes a snapshot if there is something to do."""

    def flush_inlined_data(self) -> DataFrame:
        """Writes the table's rows and deletes that the catalog keeps to files, as `Lake.flush_inlined_data` does.

        Returns:
            A row if there were rows: schema_name, table_name, rows_flushed.

        Raises:
            InvalidError: The thread is inside a transaction.
            ConflictError: Other writers changed the same rows, again and again.
        """
        self._attachment.check_changes_at_once("flush_inlined_data")
        return flushed_frame(self._attachment, inlined_flush.flush_inlined_data(self._attachment, [self.info]))

    def merge_adjacent_files(
        self,
        *,
        min_file_size: int | None = None,
        max_file_size: int | None = None,
        max_compacted_files: int | None = None,
        where: str | None = None,
    ) -> DataFrame:
        """Merges the table's small files, as `Lake.merge_adjacent_files` does, also where `auto_compact` is false.

        Args:
            min_file_size: The bytes from which on files take part.
            max_file_size: The bytes from which on they do not; by default the option `target_file_size`.
            max_compacted_files: How many files are made at most.
            where: A predicate: files take part whose partition values and statistics allow rows that it is true for.

        Returns:
            A row for each file that was made: schema_name, table_name, files_processed, files_created.

        Raises:
            InvalidError: A size or number is out of range, or the thread is inside a transaction.
            ConflictError: Other writers changed the same files, again and again.
        """
        self._attachment.check_changes_at_once("merge_adjacent_files")
        lines = compacted_tables.merge_adjacent_files(
            self._attachment, [self.info], min_file_size, max_file_size, max_compacted_files, where
        )
        return compacted_frame(self._attachment, lines)

    def rewrite_data_files(self, *, delete_threshold: float | None = None, where: str | None = None) -> DataFrame:
        """Writes the table's files anew that have lost many rows, as `Lake.rewrite_data_files` does.

        Args:
            delete_threshold: The part of a file's rows that must be deleted; by default the option
                `rewrite_delete_threshold`, or 0.95.
            where: A predicate: files take part whose partition values and statistics allow rows that it is true for.

        Returns:
            A row for each file that was made: schema_name, table_name, files_processed, files_created.

        Raises:
            InvalidError: The threshold is not between 0 and 1, or the thread is inside a transaction.
            ConflictError: Other writers changed the same files, again and again.
        """
        self._attachment.check_changes_at_once("rewrite_data_files")
        lines = compacted_tables.rewrite_data_files(self._attachment, [self.info], delete_threshold, where)
        return compacted_frame(self._attachment, lines)
