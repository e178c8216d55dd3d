"""Hands the files of a Delta table to a table of another format that links them."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import types as T  # noqa: N812

from penstock.delta.log.table_log import TableLog
from penstock.delta.reading.file_scan import FileScan
from penstock.delta.reading.verification import verify_files
from penstock.delta.writing.metadata_changes import note_link


@dataclass(frozen=True)
class LinkableFiles:
    """The live files of one version of a Delta table, as plain values."""

    log: TableLog
    scan: FileScan

    @property
    def table_path(self) -> str:
        """Where the Delta table is."""
        return self.log.path

    @property
    def paths(self) -> list[str]:
        """The absolute paths of the files."""
        return [self.scan.path_of(file) for file in self.scan.files]

    @property
    def columns(self) -> T.StructType:
        """The table's columns as its users see them."""
        return self.scan.schema.struct

    @property
    def columns_in_files(self) -> T.StructType:
        """The same columns, at every depth under the names that they have in files."""
        return self.scan.schema.physical_struct()

    @property
    def found_by_id(self) -> bool:
        """Whether files know their columns by ids, so that a name alone does not tell which column is missing."""
        return self.scan.schema.mapping == "id"

    @property
    def have_deletion_vectors(self) -> bool:
        """Whether files hold rows that the table does not show."""
        return any(file.deletion_vector is not None for file in self.scan.files)

    def partition_column_problems(self) -> str | None:
        """Looks into every file, and reports what is wrong with its partition columns; None where nothing is."""
        if not self.scan.schema.partition_columns:
            return None
        report = verify_files(self.scan)
        return None if report.ok else str(report)

    def note_link(self, into: str) -> None:
        """Notes in the log that the table `into` shows these files: `vacuum` then asks before it deletes any.

        Raises:
            UnsupportedError: Penstock may not write to the table.
            ConflictError: Other writers were in the way.
        """
        note_link(self.log, into)
